"""The verifier accepts sound graphs, and names the broken rule of others; the layout of a loop's inputs."""

import pytest

from archlang.graph.graph import LoopLayout, Node, loop_layout
from archlang.graph.operations import Halting, Operation, Repeat, Scan
from archlang.graph.text import parse_graph, print_graph
from archlang.graph.verifier import MalformedGraph, verify
from archlang.types import Type

SOUND = """
graph sound
instance @e: embed[d = 4](vocab = 9) lengths (n) axes (n) reads (pointwise) "m:E"
instance @halt: halt(d = 4) lengths (n) axes (n) "m:H"
instance @chunks: chunks(d = 4) lengths (n) axes (n) "m:C"
instance @stack.*.f: f(d = 4) axes () "m:F"
instance @tied: tied[e = @e] "m:T"
input %x x: tokens[n, 9]
%h: seq[n, 4] = call @e(%x)
%k: number = number[value = 2]()
%s: seq[n, 4] = stack[count = 2, path = "stack"](%h, %k) {
    input %s1: seq[n, 4]
    input %s2: number
    %s3: seq[n, 4] = call @stack.*.f(%s1)
    %s4: seq[n, 4] = multiply(%s3, %s2)
    return %s4
}
%l: seq[n, 4], seq[n, 4] = halting @halt[limit = 3, state = 1, mixture = true](%s, %h) {
    input %l1: seq[n, 4]
    input %l2: seq[n, 4]
    input %l3: seq[n, 4]
    %l4: seq[n, 4] = subtract(%l2, %l3)
    return %l1, %l4
}
%p: seq[n, 4] = part[index = 1](%l)
%c: chunks[n, 4] = call @chunks(%p)
%y: seq[n, 4], seq[n, 4] = scan[carried = 1, emits = true](%c, %h) {
    input %y1: seq[c.length, 4]
    input %y2: seq[n, 4]
    %y3: seq[c.length, 4] = negate(%y1)
    return %y2, %y3
}
%z: seq[n, 4] = part[index = 1](%y)
return %z
"""


def verified(text: str, was: str, becomes: str, complaint: str | None) -> None:
    """Asserts that a changed graph is malformed for a reason, or sound without one."""
    assert was in text
    graph = parse_graph(text.replace(was, becomes))
    if complaint is None:
        verify(graph)
        assert parse_graph(print_graph(graph)) == graph
        return
    with pytest.raises(MalformedGraph) as error:
        verify(graph)
    assert complaint in str(error.value)


def test_a_sound_graph_passes() -> None:
    verify(parse_graph(SOUND))


@pytest.mark.parametrize(
    ("was", "becomes", "complaint"),
    [
        ("input %s1:", "input %h:", "two values are called %h"),
        ("multiply(%s3, %s2)", "multiply(%s3, %k)", "uses %k, which is made in another region"),
        ("multiply(%s3, %s2)", "multiply(%s3, %q)", "uses %q, which is made nowhere before"),
        ("= negate(%y1)", "= negate(%y3)", "uses %y3, which is made nowhere before"),
        ("= call @e(%x)", "= call @f(%x)", "uses @f, which does not exist"),
        ("e = @e", "e = @f", "uses @f, which does not exist"),
        ("= call @chunks(%p)", "= call @stack.*.f(%p)", "outside of its stack"),
        ('path = "stack"', 'path = "other.*.stack"', "outside of its stack"),
        ("= call @e(%x)", "= call @e(%x, %x)", "has 2 arguments"),
        ("= call @chunks(%p)", "= call @chunks(%l)", "has 2 results, not one"),
        ("axes (n) reads", "axes (m) reads", "its axes name"),
        ("count = 2", "count = -1", "takes -1 steps"),
        ("state = 1", "state = 2", "halts state 2 of 2"),
        ("mixture = true](%s", "mixture = true, emits = true](%s", "halts state 1 of 1"),
        ("limit = 3, state = 1, mixture", "emits = true, limit = 0, state = 0, mixture", "takes 0 steps"),
        ("index = 1](%l)", "index = 2](%l)", "number 2 of 2 results"),
        ("%p: seq[n, 4] =", "%p: seq[n, 5] =", "is seq[n, 5], not seq[n, 4]"),
        ("part[index = 1](%l)", "part[index = 0](%h)", "not of a node with several results"),
        ("input %l3: seq[n, 4]\n", "input %l3: vec[4]\n", "no mixture of its state's type"),
        ("return %s4", "return %s4, %s3", "has 2 results, not 1"),
        ("return %s4", "return %s2", "makes number"),
        ("return %l1, %l4", "return %l1", "has 1 results, not 2"),
        ("(%h, %k) {", "(%k, %h) {", "begins with number and ends with seq[n, 4]"),
        ("(%h, %k) {", "(%h, %h) {", "to a body of seq[n, 4], number"),
        ("carried = 1", "carried = 2", "carries 2 but has 2 results"),
        (
            "scan[carried = 1, emits = true](%c, %h)",
            "scan[carried = 1, emits = true](%h, %h)",
            "walks seq[n, 4] with a body",
        ),
        ("input %y1: seq[c.length, 4]", "input %y1: seq[c.length, 5]", "walks chunks[n, 4] with a body of"),
        ("return %y2, %y3", "return %y2, %y2", "emits seq[n, 4] for seq"),
        ("%y: seq[n, 4], seq[n, 4] =", "%y: seq[n, 4], seq[m, 4] =", "is seq[m, 4], not seq[n, 4]"),
        ("subtract(%l2, %l3)", "subtract(%l2)", "has 1 arguments"),
        (
            "%s4: seq[n, 4] = multiply(%s3, %s2)",
            "%s4: seq[n, 4] = multiply(%s2, %s2)",
            "of number, number is seq[n, 4]",
        ),
        ("input %x x: tokens[n, 9]", "input %x x: tokens[n]", "with the wrong number of sizes"),
        ("input %x x: tokens[n, 9]", "input %x x: token[n, 9]", "the unknown type token"),
        ("%k: number = number[value = 2]()", "%k: vec[1] = number[value = 2]()", "is no number"),
    ],
)
def test_a_broken_graph_raises_with_its_broken_rule(was: str, becomes: str, complaint: str) -> None:
    verified(SOUND, was, becomes, complaint)


BEFORE = """
graph scanned
input %h h: seq[n, 4]
%y: seq[n, 4] = scan[carried = 0, emits = true, before = 2](%h) {
    input %y1: vec[4]
    input %y2: seq[b.length, 4]
    return %y1
}
return %y
"""


@pytest.mark.parametrize(
    ("was", "becomes", "complaint"),
    [
        ("before = 2", "before = 0", None),
        ("before = 2", "before = -1", "looks at -1 positions before"),
        (", before = 2", "", "gives "),
        ("    input %y2: seq[b.length, 4]\n", "", "takes nothing as the positions before a part"),
        ("seq[b.length, 4]", "seq[b.length, 5]", "takes seq[b.length, 5] as the positions before a part"),
        ("seq[b.length, 4]", "seq[n, 4]", "takes seq[n, 4] as the positions before a part"),
        ("seq[b.length, 4]", "seq[3, 4]", "takes seq[3, 4] as the positions before a part"),
    ],
)
def test_the_positions_before_a_part_have_a_length_of_their_own(was: str, becomes: str, complaint: str | None) -> None:
    verified(BEFORE, was, becomes, complaint)


GROWING = """
graph remembering
instance @append: append(d = 4) lengths (n, m) axes (n) (m) grows pure "m:Append"
input %h h: seq[n, 4]
input %m m: seq[2, 4]
input %p p: seq[1, 4]
%last: seq[n + 2, 4] = scan[carried = 1, emits = false](%h, %m, %p) {
    input %1: vec[4]
    input %2 m: seq[m.length, 4]
    input %3: seq[1, 4]
    %4: seq[m.length + 1, 4] = call @append(%2, %3)
    return %4
}
return %last
"""


@pytest.mark.parametrize(
    ("was", "becomes", "complaint"),
    [
        ("seq[n + 2, 4]", "seq[n + 2, 4]", None),
        ("seq[n + 2, 4]", "seq[n, 4]", "grows seq[2, 4] to seq[n, 4], not seq[n + 2, 4]"),
        ("seq[n + 2, 4]", "seq[2, 4]", "grows seq[2, 4] to seq[2, 4], not seq[n + 2, 4]"),
        ("%4: seq[m.length + 1, 4]", "%4: seq[m.length, 4]", "grows seq[m.length, 4] to seq[m.length, 4]"),
        ("%4: seq[m.length + 1, 4]", "%4: seq[2*m.length, 4]", "grows seq[m.length, 4] to seq[2*m.length, 4]"),
        ("%4: seq[m.length + 1, 4]", "%4: seq[m.length + 1, 5]", "grows seq[m.length, 4] to seq[m.length + 1, 5]"),
        ("input %2 m: seq[m.length, 4]", "input %2 m: seq[n, 4]", "has a growing state of the length n"),
        ("input %2 m: seq[m.length, 4]", "input %2 m: seq[3, 4]", "has a growing state of the length 3"),
        ("input %2 m: seq[m.length, 4]", "input %2 m: seq[m.length, 5]", "begins with "),
    ],
)
def test_a_growing_state_has_the_length_of_all_its_pieces(was: str, becomes: str, complaint: str | None) -> None:
    verified(GROWING, was, becomes, complaint)


@pytest.mark.parametrize(
    ("type_", "complaint"),
    [("seq[n, 4]", None), ("vec[4]", "is vec[4]"), ("seq[n, 1]", "is seq[n, 1]"), ("seq[m, 4]", "is seq[m, 4]")],
)
def test_arithmetic_has_the_type_that_its_operands_broadcast_to(type_: str, complaint: str | None) -> None:
    text = "graph g input %1: seq[n, 1] input %2: vec[4] %3: TYPE = add(%1, %2) return %3"
    verified(text, "TYPE", type_, complaint)


def test_operands_that_do_not_broadcast_are_named() -> None:
    with pytest.raises(MalformedGraph, match=r"mixes seq\[n, 3\], vec\[4\]"):
        verify(parse_graph("graph g input %1: seq[n, 3] input %2: vec[4] %3: seq[n, 3] = add(%1, %2) return %3"))


def test_two_stacks_at_one_path_have_the_same_number_of_steps() -> None:
    text = """
    graph g
    input %1: vec[2]
    %2: vec[2] = stack[count = 2, path = "s"](%1) { input %3: vec[2] return %3 }
    %4: vec[2] = stack[count = 3, path = "s"](%2) { input %5: vec[2] return %5 }
    return %4
    """
    with pytest.raises(MalformedGraph, match="have 2 and 3 steps"):
        verify(parse_graph(text))


PRODUCTS = """
graph products
instance @f: f(d = 4) axes () "m:F"
instance @stack.*.f: f(d = 4) axes () "m:F"
input %1: vec[4]
input %2: seq[n, 4]
%3: vec[6] = product @f[name = "one"](%1)
%4: vec[8] = product @f[name = "two"](%1)
%5: vec[4] = call @f[given = ("one", "two")](%1, %3, %4)
return %5
"""


@pytest.mark.parametrize(
    ("was", "becomes", "complaint"),
    [
        ("product @f", "product @g", "uses @g, which does not exist"),
        ("product @f", "product @stack.*.f", "outside of its stack"),
        ("](%1)\n%4", "](%1, %2)\n%4", "has 2 arguments"),
        ("%3: vec[6]", "%3: seq[n, 6]", "of a vec[4] is seq[n, 6]"),
        ("(%1, %3, %4)", "(%4)", "is given 2 products of 1 inputs"),
        ("(%1, %3, %4)", "(%1, %3, %2)", "is given a seq[n, 4] as two"),
    ],
)
def test_products_belong_to_the_arguments_of_their_call(was: str, becomes: str, complaint: str) -> None:
    verify(parse_graph(PRODUCTS))
    verified(PRODUCTS, was, becomes, complaint)


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (Repeat(3), LoopLayout(2, 0, 0, 2, 2)),
        (Halting(3, "halt", 0, mixture=False), LoopLayout(2, 0, 0, 2, 2)),
        (Halting(3, "halt", 0, mixture=True), LoopLayout(2, 0, 0, 2, 3)),
        (Scan(carried=1, emits=True), LoopLayout(1, 1, 1, 2, 2)),
    ],
)
def test_captured_values_follow_states_mixture_and_chunk(operation: Operation, expected: LoopLayout) -> None:
    assert loop_layout(Node("%1", operation, (), (Type("prob"), Type("prob")))) == expected
