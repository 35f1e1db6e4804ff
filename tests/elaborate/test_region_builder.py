"""Regions capture the values that they use from outside."""

from archlang.elaborate.region_builder import ModelSize, RegionBuilder
from archlang.errors import Source, Span
from archlang.graph.operations import Arithmetic
from archlang.types import Type

VEC, SPAN = Type("vec"), Span(Source("m.arch", "x"), 0, 1)


def test_a_value_from_outside_becomes_one_input_of_each_region_on_the_way() -> None:
    outer = RegionBuilder(ModelSize())
    middle = RegionBuilder(outer.size, outer)
    inner = RegionBuilder(outer.size, middle)
    x = outer.add_input(VEC, "x", SPAN)
    (total,) = inner.add_node(Arithmetic.ADD, [x, x], [VEC], SPAN)
    region = inner.finish([total.id])
    (captured,) = region.inputs
    assert region.nodes[0].inputs == (captured.id, captured.id)
    assert len(middle.inputs) == 1
    assert [value.id for value in inner.captured_flows(SPAN)] == [middle.inputs[0].id]
    assert [value.id for value in middle.captured_flows(SPAN)] == [x.id]
