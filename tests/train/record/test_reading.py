"""A graph of a run folder is held to the rules and the limits of programs."""

from pathlib import Path

import pytest

from archlang.graph.text import print_graph
from archlang.plan.from_file import plan_recipe
from archlang.train.record.reading import parse_stored_graph


def test_a_printed_graph_is_read_back(program: Path) -> None:
    graph = plan_recipe(program).graph
    assert parse_stored_graph(print_graph(graph)) == graph


LOOPS = """graph g
instance @linear: linear(d = 8) "archlang.blocks.feedforward:Linear"
input %0: vec[8]
%1: vec[8] = {loop}(%0) {{
    input %2: vec[8]
    %3: vec[8] = add(%2, %2)
    return %3
}}
return %1
"""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (LOOPS.format(loop="repeat[count = 2000000]"), "1,000,000 steps"),
        (LOOPS.format(loop='stack[path = "s", count = 30000]'), "20,000 operations or modules"),
        ("graph g\ninput %0: cake[n]\nreturn %0\n", "unknown type"),
        ("graph g\ninput %0: tokens[n, 8]\n%1: seq[n, 8] = call @embed(%0)\nreturn %1\n", "does not exist"),
        ("graph g\ninput %0: seq[n, 99999999999]\n%1: seq[n, 99999999999] = negate(%0)\nreturn %1\n", "size"),
        (f'graph g\ninstance @a: b[x = {"(" * 100}{")" * 100}] "c"\nreturn\n', "nested more than 64 levels"),
        (f'graph g\ninstance @a: b[x = {"9" * 5000}] "c"\nreturn\n', "4300 digits"),
        ("graph g\n" + "#" * (17 << 20), "characters"),
    ],
)
def test_another_text_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_stored_graph(text)


MODEL = """graph m
instance @embed: embed[d = 8, init = normal](vocab = 5) lengths (n) axes (n) "archlang.blocks.embed:Embed"
instance @attention: attention[heads = 2, dropout = 0.0](d = 8, e = 8) "archlang.blocks.attention:Attention"
input %0 x: tokens[n, 5]
%1 h: seq[n, 8] = call @embed(%0)
%2: seq[n, 8] = stack[path = "layers", count = 2](%1) {
    input %3 h: seq[n, 8]
    return %3
}
%4: seq[n, 8] = call @attention(%2, %2)
return %4
"""


def test_a_graph_of_the_signatures_and_the_words_of_the_language_is_read() -> None:
    assert parse_stored_graph(MODEL).name == "m"


@pytest.mark.parametrize(
    ("part", "other", "reason"),
    [
        ("init = normal", 'init = "normal"', "@embed: `embed` has no static init = 'normal'"),
        ("init = normal", r'init = "\"\"\"; import os; \"\"\""', "no static init"),
        ("init = normal", "init = inf", "no static init = inf"),
        ("init = normal", "init = (normal, normal)", "no static init"),
        ("init = normal", "init = @attention", "no static init"),
        ("init = normal", "init = 'a; b'", "'a; b' is no path"),
        ("init = normal", "init = nowhere", "@embed: .*init"),
        ("init = normal", "style = 1", "no static style"),
        ("embed: embed[d = 8, init = normal]", 'embed: mine[d = 8, init = "normal"]', "no static init"),
        ("heads = 2", "heads = 2.5", "no static heads"),
        ("heads = 2", "heads = true", "no static heads"),
        ("heads = 2", "heads = 3", "@attention: .*heads"),
        ("dropout = 0.0", "dropout = 1.5", "@attention: .*dropout"),
        ("graph m", "graph a.b", "'a.b' is no name"),
        ("graph m", "graph é", "line 1"),
        ("%1 h", "%1 a.b", "'a.b' is no name"),
        ("%3 h", "%3 a.b", "'a.b' is no name"),
        ("@attention", "@1st", "'1st' is no path"),
        ("@attention", "@a..b", "'a..b' is no path"),
        ('path = "layers"', r'path = "x: pass\nimport os"', "is no path"),
    ],
)
def test_statics_and_names_that_no_program_has_are_refused(part: str, other: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_stored_graph(MODEL.replace(part, other))
