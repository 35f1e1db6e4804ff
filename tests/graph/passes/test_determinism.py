"""Signatures decide which calls are deterministic, for the library's blocks and for others alike."""

import pytest

from archlang.graph.operations import Call
from archlang.graph.passes.common_subexpressions import is_deterministic
from archlang.graph.text import parse_graph


@pytest.mark.parametrize(
    ("block", "arguments", "expected"),
    [
        ('norm axes () "archlang.blocks.norm:Norm"', "%1", True),
        ('mine axes () "mine:Norm"', "%1", True),
        ('mine axes () caveats (batch, padding, gradients) "mine:Norm"', "%1", True),
        ('mine axes () caveats (random) "mine:Norm"', "%1", False),
        ('mine axes () caveats (training) "mine:Norm"', "%1", False),
        ('dropout axes () caveats (training) "archlang.blocks.dropout:Dropout"', "%1", False),
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
