"""Claims about where the captured values of a loop stand."""

from __future__ import annotations

import pytest

from archlang.graph.graph import Node
from archlang.graph.layout import Layout, layout
from archlang.types import Type
from archlang.types.statics import StaticValue


@pytest.mark.parametrize(
    ("op", "attributes", "wanted"),
    [
        ("repeat", {"count": 3}, Layout(2, 0, 0, 2, 2)),
        ("halting", {"mixture": False}, Layout(2, 0, 0, 2, 2)),
        ("halting", {"mixture": True}, Layout(2, 0, 0, 2, 3)),
        ("scan", {"carried": 1, "emits": True}, Layout(1, 1, 1, 2, 2)),
    ],
)
def test_captured_values_stand_behind_states_mixture_and_chunk(
    op: str, attributes: dict[str, StaticValue], wanted: Layout
) -> None:
    assert layout(Node("%1", op, (), (Type("prob"), Type("prob")), attributes=attributes)) == wanted
