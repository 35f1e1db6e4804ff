"""Inlining."""

from archlang.graph.inline import inline
from tests.conftest import Becomes


def test_an_applied_block_is_replaced_by_its_nodes_and_its_result_takes_the_name(becomes: Becomes) -> None:
    becomes(
        inline,
        """
        graph g
        instance @layer.f: f axes () "m:F"
        input %1 x: vec[4]
      - %2 h: vec[4] = apply[block = "layer", path = "layer"](%1) {
      -     input %3 y: vec[4]
      -     %4: vec[4] = call @layer.f(%3)
      + %4: vec[4] = call @layer.f(%1)
      -     %5: vec[4] = add(%3, %4)
      + %5 h: vec[4] = add(%1, %4)
      -     return %5
      - }
      - %6: vec[4] = negate(%2)
      + %6: vec[4] = negate(%5)
        return %6
        """,
    )


def test_blocks_in_blocks_and_in_loops_are_inlined(becomes: Becomes) -> None:
    becomes(
        inline,
        """
        graph g
        input %1 x: vec[4]
        %2: vec[4] = repeat[count = 2](%1) {
            input %3: vec[4]
      -     %4: vec[4] = apply[block = "a", path = "a"](%3) {
      -         input %5: vec[4]
      -         %6: vec[4] = apply[block = "b", path = "a.b"](%5) {
      -             input %7: vec[4]
      -             %8: vec[4] = negate(%7)
      +     %8: vec[4] = negate(%3)
      -             return %8
      -         }
      -         return %6
      -     }
      -     return %4
      +     return %8
        }
        return %2
        """,
    )


def test_a_block_that_returns_its_inputs_leaves_no_node(becomes: Becomes) -> None:
    becomes(
        inline,
        """
        graph g
        input %1 x: vec[4]
        input %2 y: vec[4]
      - %3: vec[4], vec[4] = apply[block = "swap", path = "swap"](%1, %2) {
      -     input %4: vec[4]
      -     input %5: vec[4]
      -     return %5, %4
      - }
      - %6: vec[4] = part[index = 0](%3)
      - %7: vec[4] = subtract(%6, %1)
      + %7: vec[4] = subtract(%2, %1)
        return %7
        """,
    )
