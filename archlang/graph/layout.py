"""Where the captured values stand among the inputs of a loop and of its body."""

from __future__ import annotations

from dataclasses import dataclass

from archlang.graph.graph import Node


@dataclass(frozen=True)
class Layout:
    """`states` states stand at `outer` and after it in a loop node's inputs, and at `inner` and after it in its body's;
    the captured values begin at `outer_captured` and `inner_captured`."""

    states: int
    outer: int
    inner: int
    outer_captured: int
    inner_captured: int


def layout(node: Node) -> Layout:
    """The layout of a loop."""
    if node.op == "scan":
        carried = node.attributes["carried"]
        assert isinstance(carried, int)
        return Layout(carried, 1, 1, 1 + carried, 1 + carried)
    states = len(node.types)
    mixture = node.op == "halting" and node.attributes["mixture"] is True
    return Layout(states, 0, 0, states, states + mixture)


def is_idle(node: Node) -> bool:
    """Whether a node is a loop that takes no step: its states keep their values."""
    return node.attributes.get("count", node.attributes.get("limit")) == 0


def has_halting_positions(loop: Node, state: int) -> bool:
    """Whether a state of a halting loop has the positions of the state that halts, and so moves where that does."""
    halted = loop.attributes["state"]
    assert isinstance(halted, int)
    return loop.types[state].lengths[:1] == loop.types[halted].lengths[:1] != ()
