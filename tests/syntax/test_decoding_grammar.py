"""The grammars for constrained decoding: what they write is parsed, and what is shipped can be written."""

import json
import random
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from lark import Lark
from lark.exceptions import LarkError

import archlang
from archlang.errors import Source
from archlang.syntax.decoding_grammar import decoding_grammar
from archlang.syntax.parser import parse
from archlang.syntax.tokens import RESERVED

Node = tuple[str, object]
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|[A-Za-z][A-Za-z0-9-]*|[()|*+?]')


@cache
def rules() -> dict[str, Node]:
    """Reads the grammar as llama.cpp does: alternatives, sequences, repetitions, literals, classes and names."""
    read = {}
    for line in decoding_grammar("gbnf").splitlines():
        name, _, text = line.partition(" ::= ")
        tokens = _TOKEN.findall(text)
        assert "".join(tokens) == re.sub(r'("(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\])|\s', r"\1", text), line
        read[name], left = alternatives(tokens)
        assert left == []
    return read


def alternatives(tokens: list[str]) -> tuple[Node, list[str]]:
    options: list[list[Node]] = [[]]
    while tokens and tokens[0] != ")":
        token, *tokens = tokens
        if token == "|":
            options.append([])
            continue
        if token == "(":
            node, tokens = alternatives(tokens)
            assert tokens.pop(0) == ")"
        elif token.startswith('"'):
            node = ("text", json.loads(token))
        elif token.startswith("["):
            node = ("class", token)
        else:
            node = ("rule", token)
        if tokens and tokens[0] in ("*", "+", "?"):
            node = (tokens.pop(0), node)
        options[-1].append(node)
    return ("any", options), tokens


ALL = [chr(code) for code in (9, 10, 13, *range(32, 127))]


@cache
def members(written: str) -> list[str]:
    pattern = re.compile(written)
    return [sign for sign in ALL if pattern.fullmatch(sign)]


@cache
def depths() -> dict[str, int]:
    """How deep the shallowest text of each rule is."""
    found = dict.fromkeys(rules(), 1_000)
    for _ in range(40):
        found |= {name: 1 + depth(node, found) for name, node in rules().items()}
    return found


def depth(node: Node, known: dict[str, int]) -> int:
    kind, value = node
    if kind == "any":
        assert isinstance(value, list)
        return min(max((depth(each, known) for each in option), default=0) for option in value)
    if kind == "rule":
        return known[str(value)]
    return depth(value, known) if kind == "+" else 0  # type: ignore[arg-type]  # a repetition has a node


def sample(node: Node, draw: random.Random, room: int) -> Iterator[str]:
    kind, value = node
    if kind == "text":
        yield str(value)
    elif kind == "class":
        yield draw.choice(members(str(value)))
    elif kind == "rule":
        if value == "NAME" and draw.random() < 0.8:
            yield draw.choice(("h", "norm", "x_1", "returns", "i", "letter", "whenever"))
        else:
            yield from sample(rules()[str(value)], draw, room - 1)
    elif kind == "any":
        assert isinstance(value, list)
        cost = [max((depth(each, depths()) for each in option), default=0) for option in value]
        affordable = [option for option, each in zip(value, cost, strict=True) if each <= max(room, min(cost))]
        for each in draw.choice(affordable):
            yield from sample(each, draw, room)
    else:
        least, most = {"*": (0, 2), "+": (1, 2), "?": (0, 1)}[kind]
        for _ in range(draw.randint(least, most) if room > 0 or kind == "+" else least):
            yield from sample(value, draw, room - 1)  # type: ignore[arg-type]  # a repetition has a node


@pytest.mark.parametrize("seed", range(300))
def test_what_the_grammar_writes_is_parsed(seed: int) -> None:
    draw = random.Random(seed)
    text = "".join(sample(rules()["root"], draw, draw.randint(8, 22)))
    parse(Source("sampled.arch", text))


def test_names_are_no_reserved_words() -> None:
    name = re.compile(
        re.sub(r"\bWORD\b", "[A-Za-z0-9_]", decoding_grammar("gbnf").partition("NAME ::= ")[2].strip())
        .replace(" ", "")
        .replace('"', "")
    )
    assert not [word for word in RESERVED if name.fullmatch(word)]
    others = ["r", "ret", "returns", "return_", "Return", "stacks", "i", "i1", "h_2", "_", "whenever", "orange", "note"]
    assert [word for word in others if name.fullmatch(word)] == others
    assert not name.fullmatch("2h")


@cache
def earley() -> Lark:
    return Lark(decoding_grammar("lark"), parser="earley", lexer="dynamic")


SHIPPED = Path(archlang.__file__).parents[1]
SMALL = ("recipes/ndr.arch", "docs/examples/blur.arch", "docs/examples/training.arch")


@pytest.mark.parametrize("path", SMALL)
def test_shipped_pages_can_be_written(path: str) -> None:
    earley().parse((SHIPPED / path).read_text(encoding="utf-8"))


@pytest.mark.slow
def test_all_recipes_can_be_written() -> None:
    for file in sorted((SHIPPED / "recipes").rglob("*.arch")):
        earley().parse(file.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "text",
    [
        "block b(h: seq[n, d]) -> seq[n, d] { return return h }",
        "block b(h: seq[n, d]) -> seq[n, d] { a = h b = h return b }",
        "recipe r { task ctl model m }",
        "block b(h: seq[n, d]) { return h }",
    ],
)
def test_other_texts_cannot(text: str) -> None:
    with pytest.raises(LarkError):
        earley().parse(text)
