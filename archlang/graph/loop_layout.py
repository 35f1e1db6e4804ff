"""Where the captured values stand among the inputs of a loop and of its body."""

from __future__ import annotations

from dataclasses import dataclass

from archlang.graph.graph import Node
from archlang.graph.operations import Halting, Scan, step_limit


@dataclass(frozen=True)
class LoopLayout:
    """`states` states stand at `outer` and after it in a loop node's inputs, and at `inner` and after it in its body's;
    the captured values begin at `outer_captured` and `inner_captured`."""

    states: int
    outer: int
    inner: int
    outer_captured: int
    inner_captured: int


def loop_layout(node: Node) -> LoopLayout:
    """The layout of a loop."""
    states = len(node.types)
    match node.operation:
        case Scan(carried=carried):
            return LoopLayout(carried, 1, 1, 1 + carried, 1 + carried)
        case Halting(mixture=True):
            return LoopLayout(states, 0, 0, states, states + 1)
    return LoopLayout(states, 0, 0, states, states)


def is_idle(node: Node) -> bool:
    """Whether a node is a loop that takes no step: its states keep their values."""
    return step_limit(node.operation) == 0


def has_halting_positions(loop: Node, state: int) -> bool:
    """Whether a state of a halting loop has the positions of the state that halts, and so moves where that does."""
    assert isinstance(loop.operation, Halting)
    halted = loop.operation.state
    return loop.types[state].lengths[:1] == loop.types[halted].lengths[:1] != ()
