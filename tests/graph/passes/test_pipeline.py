"""The passes together."""

import pytest

from archlang.graph.passes import optimize
from archlang.graph.text import parse_graph
from archlang.graph.verifier import MalformedGraph
from tests.conftest import Becomes


def test_a_value_of_two_applied_blocks_is_computed_once(becomes: Becomes) -> None:
    becomes(
        optimize,
        """
        graph g
        instance @a.relu: relu axes () pure "m:Relu"
      - instance @b.relu: relu axes () pure "m:Relu"
        input %1 x: vec[4]
      - %4: vec[4] = apply[block = "half", path = "a"](%1) {
      -     input %5: vec[4]
      -     %6: vec[4] = call @a.relu(%5)
      + %6: vec[4] = call @a.relu(%1)
      -     return %6
      - }
      - %7: vec[4] = apply[block = "half", path = "b"](%1) {
      -     input %8: vec[4]
      -     %9: vec[4] = call @b.relu(%8)
      -     return %9
      - }
      - %10: vec[4] = add(%4, %7)
      + %10: vec[4] = add(%6, %6)
        return %10
        """,
    )


def test_an_unsound_graph_raises() -> None:
    with pytest.raises(MalformedGraph):
        optimize(parse_graph("graph g input %1: vec[4] return %2"))


def test_a_pass_that_is_unknown_cannot_be_omitted() -> None:
    graph = parse_graph("graph g input %1: vec[4] return %1")
    with pytest.raises(ValueError, match="unknown optional pass speed"):
        optimize(graph, ("speed",))
