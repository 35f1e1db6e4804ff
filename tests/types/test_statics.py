"""The instances among statics."""

from archlang.types.statics import InstanceOf, StaticValue, Symbol, instances_in


def test_instances_are_found_in_nested_lists() -> None:
    statics: list[StaticValue] = [1, Symbol("a"), InstanceOf("a"), (2, (InstanceOf("b"),))]
    assert list(instances_in(statics)) == ["a", "b"]
