"""The layout of the formatter, which does not change a program."""

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from archlang.errors.source import Source, Span
from archlang.syntax import tree
from archlang.syntax.layout import WIDTH
from archlang.syntax.parser import parse, read
from archlang.syntax.printer import format_program, unparse


def program(text: str) -> tree.Program:
    return parse(Source("x.arch", text))


def formatted(text: str) -> str:
    return format_program(program(text))


def body(text: str) -> str:
    """The statements of a block after formatting, without its own lines."""
    lines = formatted(f"block b(h: s) -> s {{\n{text}\n}}").splitlines()
    return "\n".join(line.removeprefix("    ") for line in lines[1:-1])


# The layout


def test_everything_keeps_its_layout(everything: str) -> None:
    assert formatted(everything) == everything


def test_formatting_restores_the_layout_of_everything_on_one_line(everything: str) -> None:
    bare = re.sub(r" *#.*", "", everything)
    one_gap = re.sub(r"\n\n+(?!block|model|extern|recipe|table)", "\n", bare).lstrip("\n")
    assert formatted(re.sub(r"\s+", " ", bare)) == one_gap


def test_formatting_is_idempotent(program_file: Path) -> None:
    original = parse(read(program_file))
    text = format_program(original)
    again = program(text)
    assert again == original
    assert format_program(again) == text
    assert comments(text) == comments(read(program_file).text)
    assert max(map(len, re.sub(r" *#.*|\S*\".*", "", text).splitlines()), default=0) <= WIDTH


def comments(text: str) -> Counter[str]:
    return Counter(line.lstrip("#").strip() for line in re.findall(r"#.*", text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=f( h )", "a = f(h)"),
        ("a\n=\nf", "a = f"),
        ("h<-f[x=1,y](h)", "h <- f[x = 1, y](h)"),
        ("return ((a))", "return a"),
        ("return (a*b)+(c)", "return a * b + c"),
        ("return (a+b)*c-(d-e)", "return (a + b) * c - (d - e)"),
        ("return -(a*b)", "return -(a * b)"),
        ("return (1)..(n-1)", "return 1..n - 1"),
        ("return (a|>f)|>g", "return a |> f |> g"),
        ("return (a |> f) + b", "return (a |> f) + b"),
        ("return not (not a)", "return not not a"),
        (
            "return a when (b when c else d) else (e when f else g)",
            "return a when (b when c else d) else e when f else g",
        ),
        ("return [1,2,]", "return [1, 2]"),
        ("if a{b=c}else{b=d}", "if a { b = c } else { b = d }"),
        ("if a { } else { if b { c = d } }", "if a {} else if b { c = d }"),
        ("repeat 3 {\n h <- f(h)\n}", "repeat 3 { h <- f(h) }"),
        ("scan c in f(h) carry m,k { emit c }", "scan c in f(h) carry m, k {\n    emit c\n}"),
        ("scan c after  b [2*k] in f(h) carry m { emit c }", "scan c after b[2 * k] in f(h) carry m {\n    emit c\n}"),
        ("scan c in f(h) carry m  growing,k truncated 2 {}", "scan c in f(h) carry m growing, k truncated 2 {}"),
        ("scan c in f(h) carry growing growing {}", "scan c in f(h) carry growing growing {}"),
        ("scan c in f(h) carry growing, truncated {}", "scan c in f(h) carry growing, truncated {}"),
        ("y = scan v after b in h {emit v}", "y = scan v after b in h {\n    emit v\n}"),
        ("repeat 3 { repeat 2 { h <- f(h) } }", "repeat 3 {\n    repeat 2 { h <- f(h) }\n}"),
        ("a = b\n\n\n\nc = d", "a = b\n\nc = d"),
        ("\n\na = b\n\n", "a = b"),
        ("x = 30_000 y = 1.5E-4", "x = 30_000\ny = 1.5E-4"),
    ],
)
def test_statements_have_one_layout(text: str, expected: str) -> None:
    assert body(text) == expected


NAME, LONG = "n" * 50, "n" * 44
STATICS = [f"static_number_{index} = {index}" for index in range(8)]
LINES = "".join(f"    {static},\n" for static in STATICS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"if {LONG} {{ a = {LONG} }} else {{ a = b }}", f"if {LONG} {{ a = {LONG} }} else {{ a = b }}"),
        (f"if a {{ a = {NAME}{NAME} }} else {{ a = b }}", f"if a {{\n    a = {NAME}{NAME}\n}} else {{\n    a = b\n}}"),
        # Calls break their arguments before their statics.
        (f"a = f[{NAME}]({NAME}, {NAME})", f"a = f[{NAME}](\n    {NAME}, {NAME})"),
        (f"a = f[{NAME}, {NAME}, {NAME}](b)", f"a = f[\n    {NAME}, {NAME},\n    {NAME}](b)"),
        # Pipes and sums have a step a line.
        (f"a = {NAME} |> f[{NAME}] |> {NAME}", f"a = {NAME}\n    |> f[{NAME}]\n    |> {NAME}"),
        (f"a = {NAME} + {NAME} - {NAME}", f"a = {NAME}\n    + {NAME}\n    - {NAME}"),
    ],
)
def test_long_statements_get_lines_of_their_own(text: str, expected: str) -> None:
    assert body(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = b # one\nlong = c # two\n\nd = e # three", "a = b      # one\nlong = c   # two\n\nd = e   # three"),
        ("a = f(x, # one\n # two\n y) # three", "# one\n# two\na = f(x, y)   # three"),
        ("repeat 3 { # why\n h <- f(h) }", "repeat 3 {\n    # why\n    h <- f(h)\n}"),
        ("repeat 3 { h <- f(h)\n # done\n }", "repeat 3 {\n    h <- f(h)\n    # done\n}"),
    ],
)
def test_comments_beside_lines_are_aligned_and_those_inside_move_above_or_below(text: str, expected: str) -> None:
    assert body(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Inputs break before statics, and statics that need several lines get one each.
        (
            f"model m[{', '.join(STATICS[:4])}](x: tokens[n], y: tokens[m]) -> s {{ return x }}",
            f"model m[{', '.join(STATICS[:4])}](\n    x: tokens[n], y: tokens[m]) -> s {{\n    return x\n}}\n",
        ),
        (
            f"model m[{', '.join(STATICS)}](x: s) -> s {{ return x }}",
            f"model m[\n{LINES}](x: s) -> s {{\n    return x\n}}\n",
        ),
        # One empty line separates items other than `use` lines and recipes of one line each.
        (
            "use a use b\n\n\nuse c\nblock b() -> s {} recipe r {}",
            "use a\nuse b\n\nuse c\n\nblock b() -> s {}\n\nrecipe r {}\n",
        ),
        (
            "recipe b from a {model m}\nrecipe c from b {}\n\nrecipe d from a {model m vary s in a}",
            "recipe b from a { model m }\nrecipe c from b {}\n\nrecipe d from a {\n    model m\n    vary  s in a\n}\n",
        ),
        # Comments between statics move above their line, unless each static has a line.
        ("recipe r { train adamw[ # one\n lr = 1e-3 ] }", "recipe r {\n    # one\n    train adamw[lr = 1e-3]\n}\n"),
        ("recipe r { train adamw[lr = [1, # one\n 2]] }", "recipe r {\n    # one\n    train adamw[lr = [1, 2]]\n}\n"),
        ("##one\n##\n##  two\nuse a", "## one\n##\n##  two\nuse a\n"),
        # Marked lines inside an item do not become its documentation.
        ("block b( ## inside\n) -> s {}", "# inside\nblock b() -> s {}\n"),
        ("  \n ", ""),
        ("# only", "# only\n"),
    ],
)
def test_items_have_one_layout(text: str, expected: str) -> None:
    assert formatted(text) == expected


def test_claims_that_do_not_fit_on_the_line_of_their_row_fill_lines_of_their_own() -> None:
    number = ", ".join(["0.125 ± 0.001"] * 8)
    text = formatted(f'table t {{ row "{"x" * 30}" a at model.d = 3 claims {number} column "c" test.accuracy }}')
    lines = text.splitlines()
    assert lines[1] == f'    row    "{"x" * 30}" a at model.d = 3'
    assert lines[2].startswith("           claims 0.125 ± 0.001, 0.125 ± 0.001,")
    assert lines[3].startswith("                  0.125 ± 0.001")


@pytest.mark.parametrize(
    ("text", "other"),
    [
        (
            "model m[\n    d = 64,   # width\n    # of each layer\n    heads = 4,\n    ff = 256,   # hidden\n]"
            "(x: tokens[n]) -> s {\n    return x\n}\n",
            ("256,   #", "256 #"),
        ),
        (
            "recipe r from q {\n    train adamw[\n        lr = 1e-3,   # by search\n        batch = 64,\n    ]\n}\n",
            ("64,", "64 ,"),
        ),
        (
            "recipe r from q {\n    train adamw[\n        lr = 1e-3,\n        # lr = 3e-4,\n    ]\n}\n",
            ("1e-3,", "1e-3"),
        ),
        ("block b[\n    d = 1,\n    # e = 2,\n](h: s) -> s {\n    return h\n}\n", ("1,", "1")),
        ('extern block b[\n    d = 1,   # why\n](x: s) -> s\n    pure\n    python "m:C"\n', ("1,", "1")),
    ],
)
def test_statics_with_comments_keep_their_lines(text: str, other: tuple[str, str]) -> None:
    assert formatted(text) == text
    assert formatted(text.replace(*other)) == text


def test_parts_of_a_tree_are_printed_on_one_line() -> None:
    (block,) = program("block b[a: int = 3](x: s[n] = y) -> s[n] where a > 2, b { return x }").items
    assert isinstance(block, tree.Definition)
    assert unparse(block.signature) == "[a: int = 3](x: s[n] = y) -> s[n] where a > 2, b"
    assert unparse(block.signature.statics[0]) == "a: int = 3"
    assert unparse(block.signature.inputs[0]) == "x: s[n] = y"
    assert unparse(block.body) == "{\n    return x\n}"


# Any tree

NOWHERE = Span(Source("", ""), 0, 0)
# Words that are keywords elsewhere, and some so long that lines break.
WORDS = [
    "a",
    "heads",
    "task",
    "model",
    "reads",
    "causal",
    "carry",
    "test",
    "use",
    "random",
    "depends",
    "on",
    "costs",
    "into",
    "maps",
    "records",
    "sizes",
    "layer_" + "x" * 30,
    "y" * 60,
]
names = st.sampled_from(WORDS)
Tree = st.SearchStrategy[Any]  # Any: nodes of a kind


def node(kind: type, /, **parts: Any) -> Tree:  # Any: strategies, or values that are always the same
    fixed = {key: part if isinstance(part, st.SearchStrategy) else st.just(part) for key, part in parts.items()}
    return st.builds(kind, span=st.just(NOWHERE), **fixed)


def tuples(strategy: Tree, least: int = 0, most: int = 3) -> Tree:
    return st.lists(strategy, min_size=least, max_size=most).map(tuple)


plain_names = node(tree.Name, parts=names.map(lambda name: (name,)))
dotted_names = node(tree.Name, parts=tuples(names, 1))
literals = st.one_of(
    st.sampled_from([(0, "0"), (30_000, "30_000"), (0.5, "0.5"), (1.5e-4, "1.5e-4")]).flatmap(
        lambda pair: node(tree.Number, value=pair[0], text=pair[1])
    ),
    node(tree.Boolean, value=st.booleans()),
    node(tree.String, value=st.sampled_from(["", "a b", "# no comment", "{"])),
    dotted_names,
)


lines = tuples(st.sampled_from(["# one", "# two", "## three", "#"]), 0, 2)
commented: dict[str, Any] = {  # Any: strategies
    "leading": lines,
    "trailing": st.sampled_from(["", "", "# beside"]),
    "blank": st.booleans(),
}
# The comments of a static.
beside: dict[str, Any] = {"leading": lines, "trailing": commented["trailing"]}  # Any: strategies


def larger(inner: Tree) -> Tree:
    statics = tuples(node(tree.StaticArgument, name=st.none() | names, value=inner))
    call = node(tree.Call, callee=dotted_names, statics=statics, arguments=tuples(inner))
    configured = node(tree.Call, callee=dotted_names, statics=statics.filter(bool), arguments=None)
    operators = st.sampled_from(["+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "in", "and", "or"])
    return st.one_of(
        call,
        configured,
        node(tree.ListOf, items=tuples(inner)),
        node(tree.Range, low=inner, high=inner),
        node(tree.Unary, operator=st.sampled_from(["-", "not"]), operand=inner),
        node(tree.Binary, operator=operators, operator_span=NOWHERE, left=inner, right=inner),
        node(tree.Conditional, then=inner, test=inner, otherwise=inner),
        node(tree.Pipe, value=inner, stage=dotted_names | call | configured),
    )


expressions = st.recursive(literals, larger, max_leaves=12)
small = st.recursive(literals, larger, max_leaves=3)
stages = dotted_names | node(
    tree.Call, callee=dotted_names, statics=tuples(node(tree.StaticArgument, name=names, value=small), 1)
)
chosen = dotted_names | node(
    tree.Call,
    callee=dotted_names,
    statics=tuples(node(tree.StaticArgument, name=names, value=small, **beside), 1),
    closing=lines,
)
type_names = node(tree.TypeName, name=names, dimensions=tuples(small))
types = type_names | node(tree.ConditionalType, then=type_names, test=small, otherwise=type_names)
static_parameters = st.one_of(
    node(tree.StaticParameter, name=names, kind=names, default=st.none() | small, **beside),
    node(tree.StaticParameter, name=names, kind=None, default=small, **beside),
)
inputs = node(tree.InputParameter, name=names, type=type_names, default=st.none() | names, variadic=st.booleans())
signatures = node(
    tree.Signature,
    statics=tuples(static_parameters),
    inputs=tuples(inputs),
    result=types,
    where=tuples(small, 0, 2),
    closing=lines,
).map(lambda signature: signature if signature.statics else replace(signature, closing=()))
simple = st.one_of(
    node(tree.Let, name=names, name_span=NOWHERE, value=stages, **commented),
    node(tree.Assign, name=names, name_span=NOWHERE, value=expressions, **commented),
    node(tree.Update, name=names, name_span=NOWHERE, value=expressions, **commented),
    node(tree.Return, value=expressions, **commented),
    node(tree.Emit, value=expressions, **commented),
)


def bodies(statements: Tree) -> Tree:
    return node(tree.Body, statements=tuples(statements), closing=lines)


def compound(inner: Tree) -> Tree:
    body = bodies(inner)
    return st.one_of(
        node(tree.If, test=small, then=body, otherwise=st.none() | body, **commented),
        node(tree.Repeat, count=small, body=body, **commented),
        node(tree.Stack, count=small, body=body, **commented),
        node(
            tree.Halting,
            count=small,
            state=names,
            state_span=NOWHERE,
            mixture=st.none() | names,
            by=stages,
            body=body,
            **commented,
        ),
        node(
            tree.Scan,
            target=st.none() | names,
            variable=names,
            variable_span=NOWHERE,
            over=small,
            carry=tuples(plain_names),
            body=body,
            **commented,
        ).map(lambda scan: replace(scan, growing=frozenset(name.text for name in scan.carry[1:]))),
    )


statements = st.recursive(simple, compound, max_leaves=6)
documented: dict[str, Any] = {  # Any: strategies
    "leading": tuples(st.sampled_from(["# one", "# two"]), 0, 2),
    "trailing": commented["trailing"],
    "blank": st.booleans(),
    "documentation": tuples(st.sampled_from(["", "What it is.", "# odd"]), 0, 2),
}
named: dict[str, Any] = {"name": names, "name_span": NOWHERE, **documented}  # Any: strategies
externs: dict[str, Any] = {"python": "m:C", "python_span": NOWHERE, **named}  # Any: strategies
given_sizes = tuples(node(tree.StaticArgument, name=names, value=small))
manners = plain_names | node(tree.Conditional, then=plain_names, test=small, otherwise=plain_names)
caveats = st.sampled_from(["padding", "batch", "random", "training", "gradients"])
map_names = tuples(node(tree.MapName, name=names, input=names), 1)
paths = dotted_names
at = tuples(node(tree.Setting, path=paths, value=small))
parts = st.one_of(
    node(tree.Choice, word=st.sampled_from(["task", "model", "train"]), value=chosen, **commented),
    node(tree.AtTest, settings=at.filter(bool), **commented),
    node(tree.Vary, variations=tuples(node(tree.Variation, path=paths, values=small), 1), **commented),
    node(
        tree.Claim,
        metric=paths,
        index=st.none() | small,
        value=small,
        deviation=st.none() | small,
        at=at,
        origin=st.sampled_from(["PANM, Table 7", "x" * 70]),
        **commented,
    ),
)
no_inputs = node(tree.Signature, statics=tuples(static_parameters), where=tuples(small, 0, 2))
items = st.one_of(
    node(tree.Use, path="a.b", path_span=NOWHERE, alias=st.none() | names, **documented),
    node(tree.Use, path="./a b.arch", is_file=True, path_span=NOWHERE, **documented),
    node(
        tree.Definition,
        word=st.sampled_from(["block", "model"]),
        signature=signatures,
        body=bodies(statements),
        **named,
    ),
    node(
        tree.Extern,
        word="block",
        signature=signatures,
        reads=tuples(node(tree.Reads, input=names, manner=manners)),
        caveats=tuples(node(tree.Caveat, kind=caveats, test=st.none() | small)),
        pure=st.booleans(),
        sizes=given_sizes,
        costs=tuples(node(tree.Cost, quantity=names, value=small, test=st.none() | small)),
        maps=tuples(node(tree.Maps, names=map_names, width=small, test=st.none() | small)),
        records=tuples(node(tree.Record, kind=names, input=st.none() | names, test=st.none() | small)),
        cuts=tuples(node(tree.Cut, parts=st.none() | small, test=st.none() | small)),
        **externs,
    ),
    node(tree.Extern, word="task", signature=signatures, gives=given_sizes, causal=st.booleans(), **externs),
    node(tree.Extern, word="optimizer", signature=no_inputs, includes=tuples(plain_names, 0, 2), **externs),
    node(tree.Extern, word="settings", signature=no_inputs, python_span=NOWHERE, **named),
    node(tree.Recipe, parts=tuples(parts), closing=lines, **named),
)
programs = st.builds(tree.Program, items=tuples(items), source=st.just(NOWHERE.source), closing=lines)
thorough = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@thorough
@given(programs)
def test_printed_trees_parse_to_the_same_tree(original: tree.Program) -> None:
    assert program(format_program(original)) == original


@thorough
@given(programs)
def test_printing_again_changes_nothing_and_loses_no_comment(original: tree.Program) -> None:
    text = format_program(original)
    again = format_program(program(text))
    assert format_program(program(again)) == again
    assert comments(again) == comments(text)


@thorough
@given(expressions)
def test_printed_expressions_parse_to_the_same_expression(original: Any) -> None:  # Any: an expression
    text = unparse(original)
    assert "\n" not in text
    (block,) = program(f"block b(h: s) -> s {{ return {text}\n}}").items
    assert isinstance(block, tree.Definition)
    (statement,) = block.body.statements
    assert isinstance(statement, tree.Return)
    assert statement.value == original
