"""The positions of captured values among the inputs of a loop."""

import pytest

from archlang.graph.graph import Node
from archlang.graph.loop_layout import LoopLayout, loop_layout
from archlang.graph.operations import Halting, Operation, Repeat, Scan
from archlang.types import Type


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (Repeat(3), LoopLayout(2, 0, 0, 2, 2)),
        (Halting(3, "halt", 0, mixture=False), LoopLayout(2, 0, 0, 2, 2)),
        (Halting(3, "halt", 0, mixture=True), LoopLayout(2, 0, 0, 2, 3)),
        (Scan(carried=1, emits=True), LoopLayout(1, 1, 1, 2, 2)),
    ],
)
def test_captured_values_follow_states_mixture_and_chunk(operation: Operation, expected: LoopLayout) -> None:
    assert loop_layout(Node("%1", operation, (), (Type("prob"), Type("prob")))) == expected
