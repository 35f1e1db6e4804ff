"""The loop whose steps each give a result of the model: the model returns what it emits."""

from archlang.graph.graph import Graph, Node
from archlang.graph.operations import Halting, Part, Repeat, Stack, emits


def loop_of_results(graph: Graph) -> Node | None:
    """Returns the loop over steps whose emission is the result of a model, on which `inline` has run; None if it has
    none."""
    nodes = {node.id: node for node in graph.region.nodes}
    loop, index = nodes.get(graph.region.results[0]), 0
    match loop:
        case Node(operation=Part(index=part), inputs=(source,)):
            loop, index = nodes[source], part
    match loop:
        case Node(operation=Repeat() | Stack() | Halting() as operation) if emits(operation):
            return loop if index == len(loop.types) - 1 else None
    return None
