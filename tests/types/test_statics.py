"""The instances among statics."""

from __future__ import annotations

from archlang.types.statics import InstanceOf, Symbol, instances_in


def test_instances_are_found_in_nested_lists() -> None:
    statics = [1, Symbol("a"), InstanceOf("a"), (2, (InstanceOf("b"),))]
    assert list(instances_in(statics)) == ["a", "b"]
