"""A mistake does not reach beyond its item, and the words of items can be names."""

import pytest

from archlang.errors import Source
from archlang.syntax.parser import parse_tolerantly, read_tokens
from archlang.syntax.units import items

BEFORE = "block before(h: seq[n, d]) -> seq[n, d] {\n    return h\n}\n\n"
AFTER = "## The last block.\nblock final(h: seq[n, d]) -> seq[n, d] {\n    return norm(h)\n}\n"
CUT = (
    "block half",
    "block half(",
    "block half(h: seq[n, d]",
    "block half(h: seq[n, d]) ->",
    "block half(h: seq[n, d]) -> seq[n, d] {",
    "block half(h: seq[n, d]) -> seq[n, d] {\n    a = relu({",
    "block half(h: seq[n, d]) -> seq[n, d] {\n    if true {{\n        a = h\n",
    "block half(h: seq[n, d]) -> seq[n, d] {\n    return relu(h)\n}\n}",
    "model half[d = 8,",
    "extern block half(x: seq[n, d])\n    where",
    "recipe half {\n    task",
    "recipe half {\n    task ctl {",
    'table half from "p" {\n    row "A" at',
    "use",
    "block",
    "table",
)


@pytest.mark.parametrize("cut", CUT)
def test_a_mistake_does_not_reach_beyond_its_item(cut: str) -> None:
    text = f"{BEFORE}{cut}\n\n{AFTER}"
    program, diagnostics = parse_tolerantly(Source("p.arch", text))
    assert diagnostics
    alone, _ = parse_tolerantly(Source("p.arch", BEFORE + AFTER))
    assert program.items[0] == alone.items[0]
    assert program.items[-1] == alone.items[-1]
    assert all(text.index(cut) <= each.span.start <= text.index(AFTER) for each in diagnostics)


BODY = "block b(h: seq[n, d], use: vec[d]) -> seq[n, d] {{\n{}\n}}\n"
NAMED_AS_ITEMS = (
    "table = norm(h)\nreturn table",
    "table <- norm(h)\nreturn table",
    "y = h +\ntable\nreturn y",
    "y = h *\nuse # beside\nz = y\nreturn z",
    "y =\nuse\nreturn y",
    "y = h + linear[\nblock](h)\nreturn y",
    "y = h +\nmodel[4](h)\nreturn y",
    "y = h when table == 3 and\nblock in [1, 2] else\nrecipe\nreturn y",
    "y = h +\nblock return y",
)


@pytest.mark.parametrize("body", NAMED_AS_ITEMS)
def test_a_name_that_is_the_word_of_an_item_can_begin_a_line(body: str) -> None:
    text = BEFORE + BODY.format(body) + AFTER
    program, diagnostics = parse_tolerantly(Source("p.arch", text))
    assert diagnostics == ()
    assert [type(item).__name__ for item in program.items] == ["Definition"] * 3


def test_a_text_is_divided_at_the_heads_of_items_alone() -> None:
    parts = (
        BEFORE.rstrip() + "\n",
        "recipe r from s { }\n",
        "use archlang.models.ndr\n",
        'use "./a.arch" # beside\n',
        AFTER,
    )
    assert heads("".join(parts)) == [
        "block before",
        "recipe r",
        "use archlang.models.ndr",
        'use "./a.arch"',
        "block final",
    ]
    in_one = BODY.format("y = h + \ntable\nreturn y")
    assert heads(f"{in_one}block\n{AFTER}") == ["block b", "block", "block final"]


def heads(text: str) -> list[str]:
    """Returns the first two words of each item."""
    _, code = read_tokens(Source("p.arch", text))
    return [" ".join(item[:2]) for item in items(code)]
