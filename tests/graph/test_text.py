"""The text form of graphs."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archlang.errors import Source, Span
from archlang.graph import Graph, Input, Instance, Node, Region
from archlang.graph.operations import Call, Literal
from archlang.graph.text import parse_graph, print_graph
from archlang.types import Dim, Type
from archlang.types.statics import InstanceOf, Interval, StaticValue, Symbol

LOOPS = """\
graph loops

instance @embed: embed[d = 64, init = normal](vocab = 21) lengths (n) axes (n) reads (pointwise) caveats (batch) "m:E"
instance @ends: start_end(d = 64) lengths (n) axes (n) reads (causal) grows "archlang.blocks.positions:StartEnd"
instance @stack.*.attention: attention[heads = 4](d = 64, e = 2*k - 1) lengths (n, m) axes (n) (m, -) "mine:Attention"
instance @costly: c costs (parameters = 0, flops = 4*m) maps (key(1) = 8) records (gate(0), pointer) even 3 pure "m:C"
instance @relu: relu axes () pure "archlang.blocks.activations:Relu"
instance @unembed: unembed[e = @embed, order = (1, (a.b, 'true'), ()), name = "a \\"b\\"", r = -1..5] "mine:Unembed"

input %1 x: tokens[n, 21]
%2 h: seq[n, 64] = call @embed(%1)
%3: seq[n + 2, 64] = call @ends(%2)
%4: seq[n + 2, 64], prob[n], prob = stack[count = 3, path = "stack"](%3) {
    input %5 h: seq[n + 2, 64]
    input %6: vec[4]
    %7: number = number[value = 0.5]()
    %8: () = scan[carried = 0, emits = false](%5) {
        input %9 c: seq[c.length_2, 64]
        return
    }
    return %5, %7
}
%10 y: seq[n + 2, 64] = part[index = 0](%4)
return %10
"""

APPLY = """\
graph apply

input %1 x: vec[3]
%2: vec[3] = apply[block = "twice", path = "twice"](%1) {
    input %3: vec[3]
    %4: vec[3] = add(%3, %3)
    return %4
}
return %2
"""


@pytest.mark.parametrize("text", [LOOPS, APPLY])
def test_a_parsed_text_prints_as_itself(text: str) -> None:
    printed = print_graph(parse_graph(text))
    assert "".join(line.partition("  # ")[0] + "\n" for line in printed.splitlines()) == text


NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,5}", fullmatch=True)
POLYNOMIALS = st.lists(st.tuples(st.lists(NAMES, max_size=2), st.integers(-9, 9)), max_size=3).map(
    lambda terms: sum((math.prod(map(Dim.of, names), start=Dim.of(factor)) for names, factor in terms), start=Dim.of(0))
)
SIZES = st.one_of(POLYNOMIALS, st.builds(lambda size, k: size.over(k), POLYNOMIALS, st.integers(1, 5)))
STATICS: st.SearchStrategy[StaticValue] = st.recursive(
    st.one_of(
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False),
        st.text(st.characters(min_codepoint=32, max_codepoint=500)),
        st.builds(Symbol, st.one_of(NAMES, st.sampled_from(["true", "inf", "valid.accuracy", "2*d + 1", "?"]))),
        st.builds(Interval, st.integers(-9, 9), st.integers(-9, 9)),
        st.builds(InstanceOf, st.sampled_from(["e", "stack.*.norm_2"])),
    ),
    lambda items: st.lists(items, max_size=3).map(tuple),
)


@given(statics=st.dictionaries(NAMES, STATICS, max_size=3), size=SIZES)
def test_every_static_and_size_parses_as_itself(statics: dict[str, StaticValue], size: Dim) -> None:
    instance = Instance("f", "f", "m:F", statics, {"d": size}, reads=("full",), axes=(("n", ""),), lengths=("n",))
    kind = Type("map", (size, size, size))
    region = Region((Input("%1", kind),), (Node("%2", Call("f"), ("%1",), (kind,)),), ("%2",))
    graph = Graph("g", region, {"f": instance})
    parsed = parse_graph(print_graph(graph))
    assert parsed == graph
    # 1 == True == 1.0, so kinds are compared too.
    assert repr(parsed.instances["f"].statics) == repr(statics)


def test_a_value_is_printed_with_its_place_in_the_program() -> None:
    source = Source("gut.arch", "first\nsecond line")
    node = Node("%1", Literal(1), (), (Type("number"),), Span(source, 13, 17))
    printed = print_graph(Graph("g", Region((), (node,), ("%1",)), {}))
    assert "%1: number = number[value = 1]()  # gut.arch:2:8\n" in printed


def test_a_value_of_a_parsed_graph_points_into_the_text() -> None:
    node = parse_graph(APPLY).region.nodes[0]
    assert node.span is not None
    assert (node.span.line, node.span.text[:17]) == (4, "%2: vec[3] = appl")
    assert str(node.span) == "graph:4:1"


def test_a_value_of_a_parsed_graph_is_shown_at_the_place_in_the_program_that_its_comment_names() -> None:
    node = parse_graph(APPLY.replace("{\n", "{  # mine.arch:7:9\n", 1)).region.nodes[0]
    assert str(node.span) == "mine.arch:7:9"


def test_a_syntax_error_is_raised_with_its_line() -> None:
    with pytest.raises(ValueError, match="line 3"):
        parse_graph("graph g\n\ninput %1 x vec[3]\nreturn %1\n")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("power(%1, %1)", "power is no operation"),
        ("add[by = 2](%1, %1)", "add has attributes"),
        ("halting @f[limit = 3, mixture = true](%1)", "halting has attributes"),
        ("halting @f[limit = 3, state = 1, mixture = 1](%1)", "halting has mixture = 1"),
        ('number[value = "2"]()', "number has value = '2'"),
        ("repeat[count = true](%1)", "repeat has count = True"),
    ],
)
def test_an_unknown_operation_or_fact_raises(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        parse_graph(f"graph g\ninput %1: vec[3]\n%2: vec[3] = {text}\nreturn %2\n")
