"""A form of other languages, or half a form, is one mistake, whose remedy says what the words around it mean."""

import pytest

from archlang.diagnostics import Diagnostic
from archlang.diagnostics.edits import apply_edits
from archlang.source import Source
from archlang.syntax.parser import parse_tolerantly


def mistakes(text: str) -> tuple[Diagnostic, ...]:
    return parse_tolerantly(Source("x.arch", text))[1]


def in_block(line: str, header: str = "block b[k: symbol](h: seq[n, d]) -> seq[n, d]") -> str:
    return f"{header} {{\n    a = h\n    {line}\n}}\n"


def in_recipe(line: str) -> str:
    return f"recipe r {{\n    task  t\n    model m\n    {line}\n    train adamw\n}}\n"


CLAIM = 'claim test.accuracy = 0.5 at model.d {} 64 from "x"'
ROW = 'table t {{\n    row "A" r{}\n    column "B" test.accuracy\n}}\n'


@pytest.mark.parametrize(
    ("half", "whole"),
    [
        (in_block("norm(h)"), in_block("return norm(h)")),
        (in_block("repeat k // 8 { a <- norm(a) }"), in_block("repeat k / 8 { a <- norm(a) }")),
        (in_block("return attention(1)(h)"), in_block("return attention[1](h)")),
        (in_block("return attention(k, 0.5)(h)"), in_block("return attention[k, 0.5](h)")),
        (in_block("for k { a <- norm(a) }"), in_block("repeat k { a <- norm(a) }")),
        (in_block("return linear[k(h)"), in_block("return linear[k](h)")),
        (
            in_block("repeat 4 halting by token_halt { a <- norm(a) }"),
            in_block("repeat 4 halting a by token_halt { a <- norm(a) }"),
        ),
        (
            in_block("repeat 4 halting by token_halt {\n        b = norm(a)\n        a <- b\n    }"),
            in_block("repeat 4 halting a by token_halt {\n        b = norm(a)\n        a <- b\n    }"),
        ),
        (
            in_block("repeat 4 halting a with token_halt { a <- norm(a) }"),
            in_block("repeat 4 halting a by token_halt { a <- norm(a) }"),
        ),
        (
            in_block("repeat 4 halting a by token_halt[1] as s { a <- norm(a + s) }"),
            in_block("repeat 4 halting a as s by token_halt[1] { a <- norm(a + s) }"),
        ),
        (
            in_block("return h", "def block b(h: seq[n, d]) -> seq[n, d]"),
            in_block("return h", "block b(h: seq[n, d]) -> seq[n, d]"),
        ),
        (
            in_block("return h", "block b[k: 32](h: seq[n, d]) -> seq[n, d]"),
            in_block("return h", "block b[k = 32](h: seq[n, d]) -> seq[n, d]"),
        ),
        (in_block("return f[drop-out = 0.1](h)"), in_block("return f[drop_out = 0.1](h)")),
        (
            "extern block b(x: seq[n, d]) -> seq[n, d]\n    python mine:Shift\n    reads causal\n",
            'extern block b(x: seq[n, d]) -> seq[n, d]\n    python "mine:Shift"\n    reads causal\n',
        ),
        (in_block("linear[2 * d](norm(h))"), in_block("return linear[2 * d](norm(h))")),
        (in_block("norm(\n        h)"), in_block("return norm(\n        h)")),
        (in_block("a"), in_block("return a")),
        (in_block("repeat 2 { a <-- norm(a) }"), in_block("repeat 2 { a <- norm(a) }")),
        (in_block("return h -- norm(h)"), in_block("return h - norm(h)")),
        (in_block("return f[--1](h)"), in_block("return f[-1](h)")),
        (in_block("if k is relu { a = h }"), in_block("if k == relu { a = h }")),
        (in_block("if k is not relu { a = h }"), in_block("if k != relu { a = h }")),
        (in_block("y = experts v in h with p { emit v }"), in_block("y = experts v in h by p { emit v }")),
        (in_block("y = scan v of h { emit v }"), in_block("y = scan v in h { emit v }")),
        (in_block("return attention{4}(h)"), in_block("return attention[4](h)")),
        (in_block("return attention[4(h))"), in_block("return attention[4](h)")),
        (in_block("return attention[4, causal = true(h, a))"), in_block("return attention[4, causal = true](h, a)")),
        (in_recipe('claim test.accuracy = 84% from "p"'), in_recipe('claim test.accuracy = 0.84 from "p"')),
        (in_block("return dropout[10%](h)"), in_block("return dropout[0.10](h)")),
        (in_block("return dropout[10**-3](h)"), in_block("return dropout[1e-3](h)")),
        (in_block("return linear[2 ** 10](h)"), in_block("return linear[1_024](h)")),
        (in_block("return f[4 causal = true](h)"), in_block("return f[4, causal = true](h)")),
        (in_block("return f[a = 4 b = true](h)"), in_block("return f[a = 4, b = true](h)")),
        (in_block("return f[sizes = [1 2]](h)"), in_block("return f[sizes = [1, 2]](h)")),
        (in_block("return attention[4](h a)"), in_block("return attention[4](h, a)")),
        (
            in_block("repeat 8 halting a { a <- norm(a) }"),
            in_block("repeat 8 halting a by global_halt { a <- norm(a) }"),
        ),
        (in_block("", "block b(seq[n, d] h) -> seq[n, d]"), in_block("", "block b(h: seq[n, d]) -> seq[n, d]")),
        (
            in_block("", "block b[int k, float p = 0.1](h: s) -> s"),
            in_block("", "block b[k: int, float p = 0.1](h: s) -> s"),
        ),
        (in_block("", "block b[k: int p = 0.1](h: s) -> s"), in_block("", "block b[k: int, p = 0.1](h: s) -> s")),
        (in_block("return h // 2"), in_block("return h / 2")),
        (
            in_block("if d { b = h } elif k { b = a } else { b = h }"),
            in_block("if d { b = h } else if k { b = a } else { b = h }"),
        ),
        (in_block("", "block b(h: s) - > s"), in_block("", "block b(h: s) -> s")),
        (
            'extern block b(h: s) -> s\n    random in train\n    python "mine:B"\n',
            'extern block b(h: s) -> s\n    random in training\n    python "mine:B"\n',
        ),
        (
            in_recipe('claim test.loss = 1 at model.d = 6 and seed = 1 from "p"'),
            in_recipe('claim test.loss = 1 at model.d = 6, seed = 1 from "p"'),
        ),
        (in_recipe('claim test.loss <= 1 from "p"'), in_recipe('claim test.loss = 1 from "p"')),
        (in_recipe("search train.lr = [0.1, 0.2]"), in_recipe("search train.lr in [0.1, 0.2]")),
        (
            'table t {\n    row "A" r\n    column test.accuracy[10]\n}\n',
            'table t {\n    row "A" r\n    column "test.accuracy" test.accuracy[10]\n}\n',
        ),
        (in_recipe(CLAIM.format("==")), in_recipe(CLAIM.format("="))),
        (in_recipe("test model.depth == 8"), in_recipe("test model.depth = 8")),
        (in_recipe("vary seed = 1..3"), in_recipe("vary seed in 1..3")),
        (in_recipe("vary model.d == [1, 2]"), in_recipe("vary model.d in [1, 2]")),
        (in_recipe("vary model.d = 64"), in_recipe("vary model.d in [64]")),
        (in_block("", "block b k: int = 4](h: s) -> s"), in_block("", "block b [k: int = 4](h: s) -> s")),
        (in_block("", "block b h: seq[n, d]) -> s"), in_block("", "block b (h: seq[n, d]) -> s")),
        (in_block("", "block b[k: int]h: s) -> s"), in_block("", "block b[k: int](h: s) -> s")),
        (in_block("repeat 2 { norm(a) }"), in_block("repeat 2 { a <- norm(a) }")),
        (in_block("y = scan v in a { norm(v) }"), in_block("y = scan v in a { emit norm(v) }")),
        (in_block("experts v in h by a { emit v }"), in_block("y = experts v in h by a { emit v }")),
        (in_block("repeat steps=2 { a <- norm(a) }"), in_block("repeat 2 { a <- norm(a) }")),
        (in_block("experts v in h by a { h <- v }"), in_block("experts v in h by a { h <- v }")),
        (in_recipe("test model[steps = 8]"), in_recipe("test model.steps = 8")),
        (in_recipe("test m[steps = 8]"), in_recipe("test model.steps = 8")),
        (in_recipe("test.model.steps = 8"), in_recipe("test model.steps = 8")),
        ("recipe b from a, {\n    model m\n}\n", "recipe b from a {\n    model m\n}\n"),
        (in_block("return f[steps 600](h)"), in_block("return f[steps = 600](h)")),
        (in_block("return f[4, causal true](h)"), in_block("return f[4, causal = true](h)")),
        (in_block("return f[a = 4, kind relu](h)"), in_block("return f[a = 4, kind = relu](h)")),
        (in_block("return f[kind relu, a = 4](h)"), in_block("return f[kind = relu, a = 4](h)")),
        (in_block("return f[heads causal](h)"), in_block("return f[heads, causal](h)")),
        (in_block("return f[s = [relu gelu]](h)"), in_block("return f[s = [relu, gelu]](h)")),
        (in_block("return f[4,, a = true](h)"), in_block("return f[4, a = true](h)")),
        (in_block("return f[s = [1, , 2]](h)"), in_block("return f[s = [1, 2]](h)")),
        (
            in_block("", "block b[k: symbol](h: s) -> s\n    where k not in [relu]"),
            in_block("", "block b[k: symbol](h: s) -> s\n    where not k in [relu]"),
        ),
        (in_recipe("").replace("recipe r", "recipe r extends q"), in_recipe("").replace("recipe r", "recipe r from q")),
        (in_recipe('claim test.loss = 1 +/- 0.1 from "p"'), in_recipe('claim test.loss = 1 ± 0.1 from "p"')),
        (in_block("", "block b[heads](h: s) -> s"), in_block("", "block b[heads: int](h: s) -> s")),
        (in_recipe("vary seed in [1]").replace("task  t", 'task  "t"'), in_recipe("vary seed in [1]")),
        (in_recipe("vary seed in [1],"), in_recipe("vary seed in [1]")),
        (in_recipe("claim test.loss = 1 from paper, p. 3"), in_recipe('claim test.loss = 1 from "paper, p. 3"')),
        (in_recipe('claim test.loss in 1 from "p"'), in_recipe('claim test.loss = 1 from "p"')),
        (in_block("y: seq[n, d] = norm(h)"), in_block("y = norm(h)")),
        (in_block("y = norm(h) /* a norm */"), in_block("y = norm(h) # a norm")),
        (ROW.format("[model.d = 64]"), ROW.format(" at model.d = 64")),
        (ROW.format("[model.s = [1, 2], seed = 1]"), ROW.format(" at model.s = [1, 2], seed = 1")),
    ],
)
def test_the_edit_writes_what_is_meant(half: str, whole: str) -> None:
    mistake = mistakes(half)[0]
    assert apply_edits(half, mistake.edits) == whole


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        (in_block("norm(h)\n    return a"), "bind it to a name, as in `y = norm(h)`"),
        (in_block("y = experts v in h { emit v }"), "write the weights of the experts after `by`"),
        (in_block("charge mean(a)"), "name the charge, as in `charge cost = mean…`"),
        (in_block("charge = mean(a)"), "name the charge, as in `charge cost = …`"),
        (in_block("a -> norm(h)"), "bind a name with `a = …`, or update the state of a loop with `a <- …`"),
        (in_block("return dropout[h ** 2](h)"), "write a product"),
        (in_block("return dropout[99 ** 99](h)"), "write a product"),
        (in_recipe("test task.length in [1, 2]"), "write `=` and one value"),
        (in_recipe("claim test.accuracy = 0.5"), "end the claim with its source"),
        (in_block("for i in range(3):\n        b = norm(h)"), "write `repeat n {` for a number of steps"),
        (in_block("for i in range(3) {\n        b = norm(h)\n    }"), "write `repeat n {` for a number of steps"),
        (in_block("while a > 0:\n        b = norm(h)\n    return a"), "write `repeat n {` for a number of steps"),
        (
            in_block("block c(h: seq[n, d]) -> seq[n, d] { return h }\n    return c(h)"),
            "move `block c` before this item",
        ),
        (in_block("if k == relu { norm(h) }"), "bind it to a name"),
        (in_block("repeat 4 truncated 2 drawn by evenly { a <- norm(a) }"), "write `drawn by …` before `truncated`"),
        (in_recipe("vary model.d, model.h in [[1, 2], [3, 4]]"), "write the values after each path"),
        (in_recipe('claim test.loss = 1, iid.loss = 2 from "p"'), "write a line `claim` for each metric"),
        (in_block("assert d > 2"), "state conditions on statics after the result type"),
        (in_block("return h[:, -1]"), "a block reads positions, such as `last(h)`"),
        (in_block("", "block b(h: s, heads: int = 4) -> s"), "a static stands in square brackets, before the inputs"),
        ('block b(h: s) -> s\n    reads h causal\n    python "mine:B"\n', "write `extern block`"),
        ("import torch\n" + in_block("return h"), "`use` names another program"),
    ],
)
def test_the_remedy_says_what_is_meant(text: str, remedy: str) -> None:
    (mistake,) = mistakes(text)
    assert mistake.remedy.startswith(remedy)


@pytest.mark.parametrize(
    "line", ["return attention{4}(h)", "return f(h a)", "norm(h)", "return f[a b](h)", "y = experts v in h with p {}"]
)
def test_the_lines_after_such_a_form_are_read(line: str) -> None:
    first, second = mistakes(in_block(f"{line}\n    a = * h\n    return a"))
    assert (first.span.line, second.span.line) == (3, 4)


@pytest.mark.parametrize(("statics", "is_safe"), [("4 causal = true", True), ("drop out = 0.1", False)])
def test_the_edit_of_a_lost_comma_is_safe_only_after_what_is_no_word(statics: str, is_safe: bool) -> None:
    (mistake,) = mistakes(in_block(f"return f[{statics}](h)"))
    assert mistake.is_safe == is_safe


def test_a_list_in_braces_is_one_mistake() -> None:
    text = in_block("return h", "block b[k: symbol](h: s) -> s\n    where k in {relu, gelu}")
    (mistake,) = mistakes(text)
    assert apply_edits(text, mistake.edits) == text.replace("{relu, gelu}", "[relu, gelu]")
