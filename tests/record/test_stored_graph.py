"""A graph of a run folder is held to the rules and the limits of programs."""

from pathlib import Path

import pytest

from archlang.graph.text import print_graph
from archlang.plan.from_file import plan_recipe
from archlang.record.stored_graph import parse_stored_graph


def test_a_printed_graph_is_read_back(program: Path) -> None:
    graph = plan_recipe(program).graph
    assert parse_stored_graph(print_graph(graph)) == graph


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("graph g\ninput %0: cake[n]\nreturn %0\n", "unknown type"),
        ("graph g\ninput %0: tokens[n, 8]\n%1: seq[n, 8] = call @embed(%0)\nreturn %1\n", "does not exist"),
        ("graph g\ninput %0: tokens[n, 99999999999]\n%1: tokens[n, 99999999999] = negate(%0)\nreturn %1\n", "size"),
        (f'graph g\ninstance @a: b[x = {"(" * 100}{")" * 100}] "c"\nreturn\n', "nested more than 64 levels"),
        (f'graph g\ninstance @a: b[x = {"9" * 5000}] "c"\nreturn\n', "4300 digits"),
        ("graph g\n" + "#" * (17 << 20), "characters"),
    ],
)
def test_another_text_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_stored_graph(text)


LOOPS = """graph g
instance @linear: linear(d = 8) "archlang.blocks.linear:Linear"
input %0: vec[8]
%1: vec[8] = {loop}(%0) {{
    input %2: vec[8]
    %3: vec[8] = add(%2, %2)
    return %3
}}
return %1
"""


@pytest.mark.parametrize(
    ("loop", "reason"),
    [
        ("repeat[count = 2000000]", "1,000,000 steps"),
        ('stack[path = "s", count = 30000]', "20,000 operations or modules"),
    ],
)
def test_a_model_that_no_program_may_have_is_refused(loop: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_stored_graph(LOOPS.format(loop=loop))
