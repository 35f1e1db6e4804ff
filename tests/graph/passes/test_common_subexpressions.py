"""Values that are computed twice become one if their calls are deterministic."""

import pytest

from archlang.graph.operations import Call
from archlang.graph.passes.loop_invariants import is_deterministic, share_common
from archlang.graph.text import parse_graph
from tests.conftest import Becomes


def test_equal_arithmetic_and_equal_calls_of_pure_blocks_are_computed_once(becomes: Becomes) -> None:
    becomes(
        share_common,
        """
        graph g
        instance @relu: relu[slope = 0.5] axes () pure "m:Relu"
        instance @relu_2: relu[slope = 0.5] axes () pure "m:Relu"
        instance @relu_3: relu[slope = 0.1] axes () pure "m:Relu"
        instance @norm: norm axes () "m:Norm"
        instance @norm_2: norm axes () "m:Norm"
        input %1 x: vec[4]
        input %2 y: vec[4]
      - %3: vec[4] = add(%1, %2)
      + %3 sum: vec[4] = add(%1, %2)
      - %4 sum: vec[4] = add(%2, %1)
        %5: vec[4] = subtract(%1, %2)
        %6: vec[4] = subtract(%2, %1)
        %7: vec[4] = call @relu(%3)
      - %8: vec[4] = call @relu_2(%4)
      - %9: vec[4] = call @relu_3(%4)
      + %9: vec[4] = call @relu_3(%3)
      - %10: vec[4] = call @norm(%8)
      + %10: vec[4] = call @norm(%7)
        %11: vec[4] = call @norm_2(%7)
        %12: vec[4] = multiply(%10, %11)
        return %12
        """,
    )


def test_a_body_shares_values_within_itself_but_not_with_its_surroundings(becomes: Becomes) -> None:
    becomes(
        share_common,
        """
        graph g
        input %1 x: vec[4]
        %2: vec[4] = negate(%1)
        %3: vec[4] = repeat[count = 2](%2, %1) {
            input %4: vec[4]
            input %5: vec[4]
            %6: vec[4] = negate(%5)
      -     %7: vec[4] = negate(%5)
            %8: number = number[value = 1]()
            %9: number = number[value = 1.0]()
      -     %10: vec[4] = add(%6, %7)
      +     %10: vec[4] = add(%6, %6)
            return %10
        }
        return %3
        """,
    )


def test_a_deterministic_instance_reads_a_value_once(becomes: Becomes) -> None:
    instances = """
        instance @norm: norm axes () "archlang.blocks.features:Norm"
        instance @norm_2: norm axes () "archlang.blocks.features:Norm"
        instance @drop: dropout[rate = 0.1] axes () caveats (training) "archlang.blocks.noise:Dropout"
        instance @own: own axes () caveats (random) "mine:Own"
    """
    becomes(
        share_common,
        f"""
        graph g
        {instances}
        input %1 x: vec[4]
        %2: vec[4] = call @norm(%1)
      - %3: vec[4] = call @norm(%1)
        %4: vec[4] = call @norm_2(%1)
      - %5: vec[4] = add(%2, %3)
      + %5: vec[4] = add(%2, %2)
        %6: vec[4] = add(%5, %4)
        %7: vec[4] = call @drop(%6)
        %8: vec[4] = call @drop(%6)
        %9: vec[4] = call @own(%7)
        %10: vec[4] = call @own(%7)
        %11: vec[4] = add(%9, %10)
        %12: vec[4] = add(%8, %11)
        return %12
        """,
    )


@pytest.mark.parametrize(
    ("block", "arguments", "expected"),
    [
        ('norm axes () "archlang.blocks.features:Norm"', "%1", True),
        ('mine axes () "mine:Norm"', "%1", True),
        ('mine axes () caveats (batch, padding, gradients) "mine:Norm"', "%1", True),
        ('mine axes () caveats (random) "mine:Norm"', "%1", False),
        ('mine axes () caveats (training) "mine:Norm"', "%1", False),
        ('dropout axes () caveats (training) "archlang.blocks.noise:Dropout"', "%1", False),
        ('mine axes () grows "mine:Norm"', "%1", False),
        ('mine "mine:Norm"', "", False),
    ],
)
def test_a_call_is_deterministic_if_its_signature_draws_nothing(block: str, arguments: str, expected: bool) -> None:
    graph = parse_graph(
        f"graph g\ninstance @b: {block}\ninput %1: vec[4]\n%2: vec[4] = call @b({arguments})\nreturn %2"
    )
    (node,) = graph.region.nodes
    assert isinstance(node.operation, Call)
    assert is_deterministic(node, node.operation, graph.instances) is expected
