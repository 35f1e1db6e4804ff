"""What an editor offers in each place of a block, a model and an `extern`, whose keywords the grammar allows."""

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from archlang.editor.completion import completions
from archlang.editor.document import Document
from archlang.resolve.values import KINDS
from archlang.syntax.stack import read_prefix
from tests.editor.conftest import at_cursor

BODY = """block b[k = 2, rate: float = 0.5, mode: symbol = plain, deep = false, mixer: block = norm](
    h: seq[n, d], v: vec[d]) -> seq[n, d]
    where mode in [plain, fancy] {
    let f = linear[d]
    memory = learned[4, d]()
    a = norm(h)
    repeat 2 {
        inner = f(a)
        a <- inner
    }
    …
    return a
}
"""
OPEN = """block b(h: seq[n, d]) -> seq[n, d] {
    a = norm(h)
    …

block other(h: seq[n, d]) -> seq[n, d] { return h }
"""
PAGE = """task longest[k = 2](x: tokens[n]) -> logits[classes]
    with length_ranges gives vocab = k, classes = k {
    symbols = draw(k, length)
    scan i in 1..4 carry symbols {
        run = 1
        …
    }
    best = max(symbols)
    x = symbols
    return best
}
"""
SIGNATURE = """extern block own[size: int, mode: symbol = plain, deep: bool = false](
    x: seq[n, d], memory: seq[m, d]) -> …
    reads x causal
    costs parameters = size, flops = 2 * n * d, activations = 0
    python "own:Own"
"""
CLAUSES = """extern block own[size: int, mode: symbol = plain, deep: bool = false](
    x: seq[n, d], memory: seq[m, d]) -> seq[n, d]
    …
    python "own:Own"
"""
TASK = """extern task own[size: int](x: tokens[n]) -> logits[classes]
    …
    python "own:Own"
"""
MODEL = """model m[width = 8](x: tokens[n]) -> logits[classes] {
    h = embed[width](x)
    …
}
"""
VALUES = ("a", "memory", "h", "v", "f", "k", "rate", "d")
STATICS = ("k", "rate", "mode", "deep", "d")
CLAUSE_WORDS = (
    "where", "reads", "depends on", "random", "stops gradients", "sizes", "costs", "maps", "records", "acts", "pure",
)  # fmt: skip
STATEMENTS = ("let", "loss", "return", "if", "repeat", "stack", "scan")
TYPES = ("tokens", "seq", "vec", "map", "data")
HALTING = ("token_halt", "global_halt", "act", "bernoulli_halt", "bernoulli_token_halt")

# The program, the line, some words that are offered there, and some that are not.
PLACES: tuple[tuple[str, str, Sequence[str], Sequence[str]], ...] = (
    # Statements
    (BODY, "¦", STATEMENTS, ("emit", "norm", "else", "when", "a <- ", "use")),
    (BODY, "let ¦", (), (*VALUES, "norm", "return")),
    (BODY, "let g = ¦", ("norm", "linear", "mixer"), ("a", "h", "k", "f", "m")),
    (BODY, "c = ¦", (*VALUES, "norm", "repeat", "stack", "scan", "experts"), ("inner", "n", "return", "mode", "c")),
    (BODY, "c = a ¦", ("when",), ("return", "and", "or", "in", "scan", *VALUES)),
    (BODY, "c = a + norm(h) ¦", ("when",), ("scan", "experts")),
    (BODY, "c = repeat 3 {\n        ¦", ("a <- ", "h <- ", "let", "emit", "scan"), ("return", "inner <- ", "c <- ")),
    (BODY, "repeat 3 {\n        c = norm(a)\n        ¦", ("a <- ", "emit"), ("return", "inner <- ", "c <- ")),
    (BODY, "if deep {\n        ¦", ("let", "return"), ("emit", "a <- ")),
    (BODY, "c = a |> ¦", ("norm", "mixer", "f"), ("a", "h", "k", "when")),
    (BODY, "c = a when ¦", (*STATICS, "not"), ("a", "h", "n", "norm")),
    (BODY, "c = a when deep else ¦", VALUES, ("mode", "return")),
    (BODY, "c = norm(¦", VALUES, ("mode", "when")),
    (BODY, "loss ¦", (), ("a", "balance", "norm")),
    (BODY, "loss balance = ¦", VALUES, ("mode",)),
    (BODY, "return ¦", VALUES, ("inner", "n", "return")),
    (BODY, "if ¦", (*STATICS, "not"), ("a", "norm")),
    (BODY, "if mode == ¦", ("plain", "fancy"), ("a", "norm")),
    (BODY, "if mode in [¦", ("plain", "fancy"), ("a", "norm")),
    # Loops
    (BODY, "repeat ¦", ("k", "d"), ("a", "norm", "halting")),
    (BODY, "repeat 2 ¦", ("halting", "drawn by", "truncated"), ("a", "k", "let", "and", "by")),
    (BODY, "repeat 2 halting ¦", ("a", "memory", "h", "v"), ("k", "f", "norm", "inner", "mode", *HALTING)),
    (BODY, "repeat 2 halting a by ¦", (*HALTING, "mixer", "f"), ("a", "norm", "linear", "k")),
    (BODY, "repeat 2 halting a as s by ¦", HALTING, ("s", "norm")),
    (BODY, "repeat 2 halting a by token_halt[¦", ("threshold = ",), ("a",)),
    (BODY, "repeat 2 drawn by ¦", ("uniform_steps",), ("a", "norm", "learned", *HALTING)),
    (BODY, "repeat 2 truncated ¦", ("k",), ("a", "norm")),
    (BODY, "repeat 2 {\n        ¦\n    }", ("emit", "a <- ", "h <- ", "let"), ("return", "inner <- ", "f <- ", "a")),
    (BODY, "repeat 2 {\n        z = a\n        ¦\n    }", ("a <- ",), ("z <- ",)),
    (BODY, "repeat 2 {\n        a <- ¦\n    }", VALUES, ("inner", "mode")),
    (BODY, "y = scan c after b2[¦", ("k",), ("a", "norm")),
    (BODY, "y = scan c in ¦", ("a", "h", "chunks"), ("c", "mode", "y")),
    (BODY, "y = scan c in a, e in ¦", ("a", "h"), ("c", "e", "mode", "y", "chunks[")),
    (BODY, "y = scan c in a, e in h carry memory {\n        memory <- ¦", ("a", "c", "e", "memory"), ("y",)),
    (BODY, "y = scan c in a carry ¦", ("memory", "h"), ("f", "k", "norm", "c")),
    (BODY, "y = scan c in a carry memory ¦", ("growing", "truncated"), ("a", "memory")),
    (BODY, "y = scan c in a carry memory, ¦", ("h",), ("memory", "f", "k", "norm")),
    (BODY, "y = scan c in a carry memory truncated ¦", ("k",), ("a",)),
    (BODY, "y = scan c in a {\n        emit ¦\n    }", ("c", *VALUES), ("y", "inner")),
    (BODY, "y = experts e in a by ¦", ("a", "v", "linear"), (*("e", "y"), "mode")),
    # Statics
    (BODY, "c = linear[¦", ("out = ", "k", "d"), ("a", "h", "n", "norm", "mode", "rate")),
    (BODY, "c = linear[2 * ¦", ("k", "d"), ("a", "out = ")),
    (BODY, "c = linear[d, bias = ¦", ("true", "false", "deep"), ("a", "k", "mode")),
    (BODY, "c = dropout[rate = ¦", ("rate", "k"), ("a", "deep", "norm")),
    (BODY, "c = b[mixer = ¦", ("norm", "mixer", "f"), ("a", "k")),
    (BODY, "c = b[mode = ¦", ("plain", "fancy", "mode"), ("a", "k", "d", "norm")),
    (MODEL, "return linear[¦", ("classes", "vocab", "width"), ("h", "n")),
    # Signatures
    ("block b[k: ¦", "", KINDS, ("k = ", "tokens")),
    ("block b[k: int, j: ¦", "", KINDS, ("k = ", "k")),
    ("block b[k: bool = ¦", "", ("true", "false"), ("norm",)),
    ("block b[k: block = ¦", "", ("norm",), ("true", "k")),
    ("block b[k: int](x: ¦", "", TYPES, ("k", "int")),
    ("block b[k: int](x: seq[n, ¦]) -> seq[n, k] {\n    return x\n}\n", "", ("k",), ("x", "norm")),
    ("block b[k: int](x: seq[n, d]) -> seq[¦", "", ("n", "d", "k"), ("x", "norm")),
    ("block b[k: int](x: seq[n, d]) -> seq[n, d] ¦", "", ("where", "when"), ("k", "use", "and")),
    ("block b[k: int](x: seq[n, d]) -> seq[n, d] when ¦", "", ("k", "d"), ("n", "x")),
    ("block b[k: int](x: seq[n, d]) -> seq[n, d] when k > 2 else ¦", "", TYPES, ("k", "x")),
    (BODY.replace("mode in [plain, fancy]", "¦"), "", STATICS, ("h", "n", "norm")),
    (BODY.replace("mode in [plain, fancy]", "k > 2, ¦"), "", STATICS, ("h", "n", "norm")),
    (BODY.replace("[plain, fancy]", "[plain, fancy], k > 2 ¦"), "", ("and", "or"), ("h", "k")),
    (CLAUSES, "where mode in [plain, ¦", ("plain", "mode"), ("size", "deep", "d", "x")),
    (CLAUSES, "where mode == ¦", ("plain", "mode"), ("size", "deep", "d", "x")),
    (CLAUSES, "where ¦", ("size", "mode", "deep", "d"), ("m", "x", "n", "norm")),
    # Clauses
    ("extern ¦", "", ("block", "task", "optimizer"), ("model", "use", "settings")),
    (SIGNATURE, "¦", TYPES, ("reads", "size")),
    (CLAUSES, "¦", (*CLAUSE_WORDS, "cuts evenly"), ("gives", "causal", "with", "use", "x")),
    (CLAUSES, "reads ¦", ("x", "memory"), ("size", "n", "pointwise")),
    (CLAUSES, "reads x ¦", ("pointwise", "causal", "full"), ("x", "size")),
    (CLAUSES, "reads x causal when ¦", ("deep", "mode"), ("x", "n", "causal")),
    (CLAUSES, "depends on ¦", ("padding", "batch", "targets"), ("x", "size")),
    (CLAUSES, "costs ¦", ("parameters = ", "flops = ", "activations = "), ("x", "size")),
    (CLAUSES, "costs flops = ¦", ("size", "n", "d", "positions"), ("x", "mode", "deep")),
    (CLAUSES, "maps query(¦", ("x", "memory"), ("size", "n")),
    (CLAUSES, "maps query(x) = ¦", ("size", "d"), ("x", "n")),
    (CLAUSES, "records ¦", ("attention", "gate", "pointer"), ("x",)),
    (CLAUSES, "records gate = ¦", ("x", "memory"), ("size", "gate")),
    (CLAUSES, "cuts evenly into ¦", ("size", "d"), ("x", "n")),
    (CLAUSES, "sizes half = ¦", ("size", "d"), ("x", "n")),
    (TASK, "¦", ("where", "gives", "causal"), ("reads", "pure", "with", "use")),
    (TASK, "gives ¦", ("vocab = ", "classes = "), ("size",)),
    (TASK, "gives vocab = ¦", ("size",), ("x", "vocab")),
    # The page of a task
    (PAGE, "¦", ("symbols <- ", "scan", "if"), ("run <- ",)),
    (
        PAGE,
        "symbols <- ¦",
        ("symbols", "run", "i", "k", "length", "draw", "sort"),
        ("norm", "linear", "gradient", "best"),
    ),
    (PAGE, "symbols <- sum(symbols[0..i] + ¦", ("symbols", "run", "length", "reverse"), ("norm", "classes")),
    ("extern optimizer own[lr: float = 1.0]\n    ¦\n", "", ("where", "with", "python"), ("reads", "gives", "lr")),
)


def offered(program: str, line: str) -> list[str]:
    return [each.word for each in completions(*at_cursor(program.replace("…", line)))]


@pytest.mark.parametrize(
    ("program", "line", "words", "others"),
    PLACES,
    ids=[line or program.splitlines()[-1][-40:] for program, line, _, _ in PLACES],
)
def test_a_place_is_offered_what_can_stand_there(
    program: str, line: str, words: Sequence[str], others: Sequence[str]
) -> None:
    found = offered(program, line)
    assert [word for word in words if word not in found] == []
    assert [word for word in others if word in found] == []
    assert words or not found


@pytest.mark.parametrize(
    "tail", ["\n", "\n}\n", "\n    return a\n}\n", "\n  # a comment\n}\n", OPEN[OPEN.index("\n\n") :]]
)
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("y = scan c after before[2] in chunks[8](h) carry a {\n        z = ¦", ("c", "before", "a", "h")),
        ("y = experts chosen in h by h {\n        emit norm(¦", ("chosen", "a", "h")),
        ("repeat 8 halting a as mixture by token_halt {\n        a <- ¦", ("mixture", "a", "h")),
        ("y = scan c in h {\n        repeat 2 {\n            z = norm(c)\n            z <- z + ¦", ("c", "z", "h")),
    ],
)
def test_the_names_that_a_loop_binds_are_offered_before_it_is_closed(
    line: str, words: Sequence[str], tail: str
) -> None:
    begin = OPEN[: OPEN.index("    …")]
    found = offered(f"{begin}    {line}{tail}", "")
    assert [word for word in words if word not in found] == []


def test_a_half_written_line_before_leaves_what_is_offered() -> None:
    for before in ("c = attention[2", "c = = a", "x = norm(h", "repeat 2 halting"):
        assert {"a", "h", "norm"} <= set(offered(BODY, f"{before}\n    z = ¦"))
    assert "memory" in offered(CLAUSES, "reads x = 2\n    reads ¦")


SHIPPED = sorted(file for folder in ("archlang/blocks", "recipes") for file in Path(folder).rglob("*.arch"))


@pytest.mark.parametrize("file", random.Random(5).sample(SHIPPED, 12), ids=lambda file: file.stem)
def test_every_keyword_of_a_shipped_program_is_offered_at_its_place(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    prefix = read_prefix(text)
    assert prefix is not None
    keywords = [token for token in prefix.tokens if str(token).isalpha() and token.type not in ("NAME", "DOTTED")]
    for token in random.Random(5).sample(keywords, min(len(keywords), 8)):
        start, end = token.start_pos, token.end_pos
        assert start is not None
        words = [each.word for each in completions(Document(str(file), text[:start] + text[end:]), start)]
        assert str(token) in [word.partition(" ")[0] for word in words], text[max(start - 60, 0) : start]
