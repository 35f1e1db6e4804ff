"""The layout of the formatter, which does not change a program."""

import re
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from archlang.errors import Source
from archlang.syntax import tree
from archlang.syntax.layout import WIDTH
from archlang.syntax.parser import parse, read
from archlang.syntax.printer import format_program, one_line, unparse
from archlang.syntax.tokens import tokens


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


def assert_formatted(text: str) -> None:
    """Formatting changes no tree and no comment, and formatting again changes nothing."""
    original = program(text)
    written = format_program(original)
    if written == text:
        return
    assert program(written) == original
    assert formatted(written) == written
    assert comments(written) == comments(text)


def test_formatting_is_idempotent(program_file: Path) -> None:
    text = read(program_file).text
    assert_formatted(text)
    assert max(map(len, re.sub(r" *#.*|\S*\".*", "", formatted(text)).splitlines()), default=0) <= WIDTH


@pytest.mark.parametrize("width", range(90, 102))
def test_a_body_before_else_stands_on_a_line_that_has_room(width: int) -> None:
    name = "x" * width
    assert_formatted(
        f"block b(h: s) -> s {{\n    if a and c {{ {name} = f(h) }} else {{\n        b = h\n    }}\n    return h\n}}\n"
    )


@pytest.mark.parametrize("seed", range(20))
def test_line_ends_and_comments_may_stand_anywhere(seed: int, everything: str) -> None:
    random = Random(seed)
    text = ""
    for token in tokens(Source("x.arch", everything))[0]:
        ends = random.choice((" ", "\n", "  # why\n", "\n# why\n", "\n\n\n## why\n\n"))
        text += token + (ends if token in (",", "(", "[", "{", "}", ")", "|>", "+") and random.random() < 0.3 else " ")
    assert_formatted(text)


def comments(text: str) -> Counter[str]:
    return Counter(line.lstrip("#").strip() for line in re.findall(r"#.*", text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=f( h )", "a = f(h)"),
        ("a\n=\nf", "a = f"),
        ("h<-f[x=1,y](h)", "h <- f[x = 1, y](h)"),
        ("return ((a))", "return ((a))"),
        ("return (a*b)+(c)", "return (a * b) + (c)"),
        ("return (a+b)*c-(d-e)", "return (a + b) * c - (d - e)"),
        ("return -(a*b)", "return -(a * b)"),
        ("return (1)..(n-1)", "return (1)..(n - 1)"),
        ("return (a |> f) + b", "return (a |> f) + b"),
        ("return not (not a)", "return not (not a)"),
        ("return a when[1,2]==b else-[3]", "return a when [1, 2] == b else -[3]"),
        ("return [1,2,]", "return [1, 2]"),
        ("if a{b=c}else{b=d}", "if a { b = c } else { b = d }"),
        ("if a { } else if b { c = d }", "if a {} else if b { c = d }"),
        ("if a { u = b c = d }", "if a {\n    u = b\n    c = d\n}"),
        ("repeat 3 {\n h <- f(h)\n}", "repeat 3 {\n    h <- f(h)\n}"),
        ("scan c in f(h) carry m,k { emit c }", "scan c in f(h) carry m, k { emit c }"),
        ("scan c after  b [2*k] in f(h) carry m { emit c }", "scan c after b[2 * k] in f(h) carry m { emit c }"),
        ("scan c in f(h) carry m  growing,k truncated 2 {}", "scan c in f(h) carry m growing, k truncated 2 {}"),
        ("scan c in f(h) carry growing growing {}", "scan c in f(h) carry growing growing {}"),
        ("scan c in f(h) carry growing, truncated {}", "scan c in f(h) carry growing, truncated {}"),
        ("y = scan v after b in h {emit v}", "y = scan v after b in h { emit v }"),
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
        (f"if aaa {{ a = {NAME}{NAME}{LONG} }}", f"if aaa {{\n    a = {NAME}{NAME}{LONG}\n}}"),
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
        ("repeat 3 { # why\n h <- f(h) }", "repeat 3 {   # why\n    h <- f(h)\n}"),
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
        # Comments in a list that are not between statics move above its line.
        ("recipe r { train adamw[lr = [1, # one\n 2]] }", "recipe r {\n    # one\n    train adamw[lr = [1, 2]]\n}\n"),
        ("##one\n##\n##  two\nuse a", "##one\n##\n##  two\nuse a\n"),
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
    assert lines[2].startswith("        claims 0.125 ± 0.001, 0.125 ± 0.001,")
    assert lines[3].startswith("            0.125 ± 0.001")


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
        ('extern block b[\n    d = 1,   # why\n](x: s) -> s pure python "m:C"\n', ("1,", "1")),
    ],
)
def test_statics_with_comments_keep_their_lines(text: str, other: tuple[str, str]) -> None:
    assert formatted(text) == text
    assert formatted(text.replace(*other)) == text


def test_parts_of_a_tree_are_printed_on_one_line() -> None:
    (block,) = program("block b[a: int = 3](x: s[n] = y) -> s[n] where a > 2, b { return x }").items
    assert isinstance(block, tree.Definition)
    assert unparse(block.signature.statics[0]) == "a: int = 3"
    assert unparse(block.signature.inputs[0]) == "x: s[n] = y"


def test_one_line_of_a_text_has_no_comments_and_no_last_commas() -> None:
    text = "recipe r {\n    task  t[\n        a = -1,   # why\n    ]\n    # note\n}\n"
    assert one_line(text) == "recipe r { task t[a = -1] }"
