"""Lines about parameters and FLOPs for the boxes of a picture."""

from collections.abc import Mapping

from archlang.graph.graph import Graph
from archlang.graph.summary import summarize

LENGTH = 64  # positions of the sample whose FLOPs are counted


def cost_notes(graph: Graph) -> Mapping[str, tuple[str, ...]]:
    """Returns the lines for each node by its id, and those for the model by the id "".

    `parameters` counts one set of weights, `executed` the weights of all steps."""
    summary = summarize(graph, LENGTH)
    notes: dict[str, tuple[str, ...]] = {}
    for node in graph.region.walk():
        cost = summary.nodes.get(node.id)
        if node.instance is None or cost is None:
            continue
        count = graph.instances[node.instance].costs.parameters
        lines = []
        if count:
            executed = f", {cost.parameters:,} executed" if cost.parameters > count and not node.regions else ""
            lines.append(f"{count:,} parameters{executed}")
        if cost.flops:
            lines.append(f"{cost.flops:,} FLOPs")
        notes[node.id] = tuple(lines)
    notes[""] = (
        f"{'at least ' if summary.unknown else ''}{summary.unique:,} parameters, {summary.executed:,} executed",
        f"{'at least ' if summary.uncounted else ''}{summary.flops:,} FLOPs for a sample of {LENGTH} positions",
    )
    return notes
