"""The positions of states and captured values among the inputs of a loop and of its body; the loop of the result."""

from collections.abc import Iterator
from dataclasses import dataclass

from archlang.graph.graph import Graph, Node, Region
from archlang.graph.operations import Experts, Halting, Part, Repeat, Scan, Stack, emits, step_limit


@dataclass(frozen=True)
class LoopLayout:
    """The first index of the states and of the captured values: `outer` and `outer_captured` among the inputs of the
    loop node, `inner` and `inner_captured` among those of its body. `states` is the number of states."""

    states: int
    outer: int
    inner: int
    outer_captured: int
    inner_captured: int


def loop_layout(node: Node) -> LoopLayout:
    """Returns the layout of a loop."""
    states = len(node.types) - emits(node.operation)
    match node.operation:
        case Scan(carried=carried, before=before):
            inner = 1 if before is None else 2
            return LoopLayout(carried, 1, inner, 1 + carried, inner + carried)
        case Experts():
            return LoopLayout(0, 2, 1, 2, 1)
        case Halting(mixture=True):
            return LoopLayout(states, 0, 0, states, states + 1)
    return LoopLayout(states, 0, 0, states, states)


def takes_positions(loop: Node) -> bool:
    """Whether a scan or experts take one position at a time, as a vector; other scans take chunks."""
    return loop.regions[0].inputs[0].type.name == "vec"


def step_loops(region: Region) -> Iterator[Node]:
    """Yields the outermost loops over steps: those that are in no other."""
    for node in region.nodes:
        if isinstance(node.operation, Repeat | Stack | Halting):
            yield node
        else:
            for body in node.regions:
                yield from step_loops(body)


def is_idle(node: Node) -> bool:
    """Whether a node is a loop without steps: its states keep their values."""
    return step_limit(node.operation) == 0


def has_halting_positions(loop: Node, state: int) -> bool:
    """Whether a state of a halting loop has the positions of the halting state, and so is updated where that is."""
    assert isinstance(loop.operation, Halting)
    halted = loop.operation.state
    return loop.types[state].lengths[:1] == loop.types[halted].lengths[:1] != ()


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
