"""Claims about the instances that statics hold."""

from __future__ import annotations

from archlang.graph.references import held
from archlang.types.statics import InstanceOf, Symbol


def test_instances_are_found_in_lists_in_lists() -> None:
    assert list(held([1, Symbol("a"), InstanceOf("a"), (2, (InstanceOf("b"),))])) == ["a", "b"]
