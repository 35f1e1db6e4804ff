"""Every mistake in the page of a task is a diagnostic at its place."""

from time import perf_counter

import pytest

from archlang.errors import Diagnostic
from archlang.plan.check import check_text

HEADER = (
    "task mine[base = 4, kind: symbol = up, rate = 0.5, table: list = [1, 2]](x: tokens[n]) -> logits[classes]\n"
    "    where kind in [up, down] with length_ranges\n"
    '    gives vocab = [0..base - 1, "a"], classes = base {\n'
)


def mistakes(*lines: str) -> tuple[Diagnostic, ...]:
    return check_text(HEADER + "".join(f"    {line}\n" for line in lines) + "}\n")


def only(*lines: str) -> Diagnostic:
    (mistake,) = mistakes("x = draw(base, length)", *lines, "return 1")
    return mistake


def test_a_page_without_mistakes_has_none() -> None:
    assert mistakes("x = draw(base, length)", "if kind == up { y = 1 } else { y = x[0] }", "return y % base") == ()


@pytest.mark.parametrize(
    ("line", "code", "message", "place"),
    [
        ("y = drew(2)", "E0440", "a page knows no function `drew`", "drew"),
        ("y = size(1)", "E0440", "this is a number, and a word is expected", "1"),
        ("y = x[kind]", "E0440", "this is the symbol `up`, and a number is expected", "kind"),
        ("y = rate * 2", "E0440", "this is the number `0.5`, and a number is expected", "rate"),
        ("y = length[0]", "E0440", "this is a number, and a word is expected", "length"),
        ('y = "b"', "E0440", 'the vocabulary of `mine` has no word "b"', '"b"'),
        ("y = 0.5", "E0440", "`0.5` cannot stand in the page of a task", "0.5"),
        ("y = length in [1, 2]", "E0440", "`in` cannot stand in the page of a task", "length in [1, 2]"),
        ("y = attention[4](x)", "E0440", "`attention[4](x)` cannot stand in the page of a task", "attention[4](x)"),
        ("let f = linear[2]", "E0440", "`let` cannot stand in the page of a task", "let f = linear[2]"),
        ("stack 2 { y = 1 }", "E0440", "`stack` cannot stand in the page of a task", "stack 2 { y = 1 }"),
        ("emit 1", "E0440", "`emit` cannot stand in the page of a task", "emit 1"),
        ("if x { y = 1 }", "E0440", "this is a word, and a number is expected", "x"),
        ("repeat x { y = 1 }", "E0440", "this is a word, and a number is expected", "x"),
        ("scan a in length { y = 1 }", "E0440", "this is a number, and a word is expected", "length"),
        ("y = [x, 1]", "E0440", "this is a word, and a number is expected", "x"),
        ("y = 1..x", "E0440", "this is a word, and a number is expected", "x"),
        ("y = fill(1)", "E0403", "`fill` expects 2 values, but this call passes 1", "fill(1)"),
        ("y = draw(1, 2, 3)", "E0403", "`draw` expects 1 value or 2 values, but this call passes 3", "draw(1, 2, 3)"),
        ("y = append()", "E0403", "`append` expects 1 value, but this call passes 0", "append()"),
        ("y = z", "E0201", "unknown value `z`", "z"),
        ("y = 1 when kin == up else 2", "E0201", "unknown value `kin`", "kin"),
        ("x = 2", "E0205", "`x` is bound twice", "x"),
        ("y <- 2", "E0206", "`y <-` updates a state, but `y` is not bound outside this loop", "y"),
        ("x <- 2", "E0440", "this is a number, and a word is expected", "2"),
        ("scan a in x { x <- x }", "E0224", "`x` is updated", "x"),
        ("y = scan a in x { z = a }", "E0220", "this loop binds `y`, but its body has no `emit`", "y = scan"),
        ("scan a in x { return 2 }", "E0218", "`return` inside a loop", "return 2"),
        ("if x[0] == 1 { return 2 }", "E0218", "`return` inside a loop", "return 2"),
    ],
)
def test_a_mistake_is_at_its_place(line: str, code: str, message: str, place: str) -> None:
    mistake = only(line)
    assert mistake.code == code
    assert mistake.message.startswith(message)
    assert mistake.span.text.startswith(place)
    assert mistake.remedy


def test_all_mistakes_of_a_page_are_reported() -> None:
    found = mistakes("y = drew(2)", "z = q", "return 1")
    assert [mistake.code for mistake in found] == ["E0440", "E0440", "E0201"]  # and that it binds no `x`


def test_statements_after_return_are_unreachable() -> None:
    (mistake,) = mistakes("x = draw(2, length)", "return 1", "y = 2")
    assert mistake.code == "E0217"


def test_a_decoder_has_marks() -> None:
    text = (
        "task mine(source: tokens[n], target: tokens[m]) -> logits[m, vocab] with listed_lengths\n"
        '    gives vocab = [0..symbols - 1, "[E]"] causal {\n    source = draw(symbols, length)\n    return source\n}\n'
    )
    (mistake,) = check_text(text)
    assert mistake.message.startswith("the vocabulary of `mine` lacks `[B]` or `[E]`")
    assert check_text(text.replace('"[E]"', '"[E]", "[B]"')) == ()


def test_a_class_is_a_number() -> None:
    (mistake,) = mistakes("x = draw(2, length)", "return x")
    assert mistake.message == "this is a word, and a number is expected"


def test_a_page_returns() -> None:
    (mistake,) = mistakes("x = draw(2, length)")
    assert mistake.code == "E0216"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (" with length_ranges", "", "a page says how its splits are drawn"),
        ("length_ranges", "length_range", "`length_range` names no splits of a task"),
        ("x: tokens[n]", "x: seq[n, 2]", "the fields and the result of `mine` are of no kind of task"),
        ("x: tokens[n]", "x: tokens[n], y: tokens[m]", "the fields and the result of `mine` are of no kind of task"),
        ("x: tokens[n]", "x: tokens[n], y: tokens[n, 0]", "a size must be from 1 to 65536, but `y` is 0"),
        ("logits[classes]", "logits[n, vocab]", "the fields and the result of `mine` are of no kind of task"),
        ('"a"]', '"1"]', '`vocab` names "1" twice'),
        (", classes = base", "", "the page of `mine` gives no `classes`"),
        ("0..base - 1", "0..10_000_000_000", "a size must be from 1 to 65536, but `vocab` is 10000000002"),
    ],
)
def test_a_header_that_is_no_task_is_refused(old: str, new: str, message: str) -> None:
    text = f"{HEADER}    x = draw(2, length)\n    return 1\n}}\n"
    assert old in text
    assert any(mistake.message.startswith(message) for mistake in check_text(text.replace(old, new)))


def test_a_recipe_checks_the_page_with_its_statics_and_tries_it() -> None:
    text = (
        "task picked[place = 0](x: tokens[n]) -> logits[classes] with length_ranges gives vocab = 3, classes = 3 {\n"
        "    x = draw(3, length)\n    return x[place]\n}\n\n"
        "model m[d = 4](x: tokens[n]) -> logits[classes] {\n    return embed[d](x) |> mean |> linear[classes]\n}\n\n"
        "recipe r {\n    task  picked[place = 1]\n    model m\n    train adamw[lr = 1e-3, batch = 4, steps = 1]\n}\n"
    )
    (mistake,) = check_text(text)
    assert mistake.code == "E0618"
    assert "`x[place]` in line 3 of the page of `picked`: place 1 of a word of 1 symbols" in mistake.message
    assert check_text(text.replace("place = 1", "place = 0")) == ()


@pytest.mark.parametrize(
    "lines",
    [
        ["repeat 900_000 { y = 1 }"],
        ["repeat 900 { repeat 900 { y = x[0] } }"],
        ["y = [1]", "repeat 19 { y <- append(y, y) }", "repeat 9_000 { y <- y * y % 7 }"],
        ["repeat 9_000 { y = sort(fill(1, 1_000_000)) }"],
        ["y = power(2, 16_000)", "repeat 30_000 { z = y * y / y }"],
    ],
)
def test_a_trial_of_a_page_takes_bounded_work(lines: list[str]) -> None:
    page = HEADER + "".join(f"    {line}\n" for line in ("x = draw(base, length)", *lines, "return 1")) + "}\n\n"
    model = (
        "model m[d = 4](x: tokens[n]) -> logits[classes] {\n    return embed[d](x) |> mean |> linear[classes]\n}\n\n"
    )
    recipe = "recipe r {\n    task  mine\n    model m\n    train adamw[lr = 1e-3, batch = 4, steps = 1]\n}\n"
    start = perf_counter()
    (mistake,) = check_text(page + model + recipe)
    assert mistake.code in ("E0228", "E0618")
    assert perf_counter() - start < 30
