"""The exact texts of syntax diagnostics that the corpus, with a text of each code, does not have."""

import pytest

from archlang.errors import Diagnostic, Source
from archlang.errors.edits import apply_edits
from archlang.errors.render import plain
from archlang.syntax.parser import parse_tolerantly


def report(text: str) -> str:
    return plain(parse_tolerantly(Source("x.arch", text))[1])


def mistakes(text: str) -> tuple[Diagnostic, ...]:
    return parse_tolerantly(Source("x.arch", text))[1]


def in_block(statement: str) -> str:
    return report(f"block b(h: s) -> s {{\n    {statement}\n}}")


def lines(*parts: str) -> str:
    return "\n".join(parts) + "\n\n"


def test_a_value_is_missing() -> None:
    assert in_block("a = * h") == lines(
        "error[E0101]: expected a value, found `*`",
        " --> x.arch:2:9",
        "2 |     a = * h",
        "  |         ^ expected a value",
        "  help: put a value before `*`",
    )


def test_a_value_is_missing_at_the_end_of_a_line() -> None:
    assert in_block("a =\n    b = h") == lines(
        "error[E0101]: expected a value after `=`, found the next line",
        " --> x.arch:2:7",
        "2 |     a =",
        "  |       ^ a value is missing",
        "3 |     b = h",
        "  |     - the next line begins here",
        "  help: write a value after `=`, or delete `=`",
    )


@pytest.mark.parametrize(
    "following", ["return y", "z = norm(y)\n    return z", "# note\n\n    if y { }", "repeat 2 { }", ""]
)
@pytest.mark.parametrize(
    ("line", "sign"),
    [
        ("y =", "="),
        ("y = h +", "+"),
        ("y = h *", "*"),
        ("h <-", "<-"),
        ("y = h + # a sum", "+"),
        ("y = h |>", "|>"),
        ("y = a and", "and"),
        ("y = scan c in", "in"),
        ("return", "return"),
        ("if", "if"),
        ("repeat", "repeat"),
        ("y = stack", "stack"),
    ],
)
def test_an_unfinished_line_is_the_place_of_the_mistake(line: str, sign: str, following: str) -> None:
    if sign in ("=", "<-") and following == "repeat 2 { }":
        return  # a loop is a value there
    (mistake,) = mistakes(f"block b(h: s) -> s {{\n    {line}\n    {following}\n}}")
    assert (mistake.span.line, mistake.span.text) == (2, sign)
    assert mistake.message == f"expected a value after `{sign}`, found the next line"


def test_an_incomplete_line_of_a_table_is_the_place_of_the_mistake() -> None:
    assert report('table t {\n    row "Prior" absent\n    columns "T" test.accuracy at seed in 1..2\n}') == lines(
        "error[E0101]: expected a string after `absent`, found the next line",
        " --> x.arch:2:17",
        '2 |     row "Prior" absent',
        "  |                 ^^^^^^ incomplete",
        '3 |     columns "T" test.accuracy at seed in 1..2',
        "  |     ------- the next line begins here",
        "  help: complete the line, or delete it",
    )


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('table t {\n    row "A" a claims 1, 2,\n    row "B" b\n}', "x.arch:2:26"),
        ('table t {\n    row "A" a claims 1,\n    column "B" test.accuracy\n}', "x.arch:2:23"),
        ('table t {\n    row "A" absent  # a comment\n    row "B" b\n}', "x.arch:2:13"),
        ('table t {\n    column "A"\n    column "B" test.loss\n}', "x.arch:2:12"),
        ("recipe r {\n    task\n    model m\n}", "x.arch:2:5"),
        ("recipe r {\n    model m\n    vary model.d in\n    test model.d = 2\n}", "x.arch:3:18"),
    ],
)
def test_a_line_of_a_recipe_or_a_table_does_not_swallow_the_next(text: str, place: str) -> None:
    assert report(text).count("error[") == 1
    assert f" --> {place}\n" in report(text)


@pytest.mark.parametrize(
    ("text", "message", "remedy"),
    [
        ("modle m(x: s) -> s { return x }", "expected an item (", "did you mean `model`?"),
        ("block b(h: s) -> s { ret h }", "no statement begins with `ret`", "did you mean `return`?"),
        ('extern block b(x: s) -> s re x python "m:C"', "expected `acts`", "did you mean `reads` or `records`?"),
        ("block b(h: s) -> s { y = scan h { } }", "expected `after` or `in`, found `{`", "put one of these before"),
        ("block b(h: s) -> { return h }", "expected a type, found `{`", "put a type before `{`"),
        (
            "block b(h: s) -> s { if a { u = h } elif b { } return h }",
            "no statement begins with `elif`",
            "write `else if`",
        ),
        ("recipe r { test model.d 64 }", "expected `=`, found `64`", "put `=` before `64`"),
        ("block b(h: s) -> s {\n    let rea\n    return h\n}", "expected `=` after `rea`", "complete the line"),
        ('table t {\n    column "C" a.b at task\n}', "expected `=` after `task`", "complete the line"),
        ("block b(h: s) -> s {\n    return h h\n}", "expected `<-` or `=` after `h`", "complete the line"),
        ("block b(h:) -> s { return h }", "expected a type, found `)`", "put a type before `)`"),
        ("block b[d:](h: s) -> s { return h }", "expected a kind (such as `int`), found `]`", "put a kind"),
        ('extern block b(x: s) -> s reads x python "m:C"', "expected what is read of it (such as `causal`), found", ""),
        ('extern block b(x: s) -> s costs 3 python "m:C"', "expected a quantity (such as `parameters`), found `3`", ""),
        ("block b(h: s) -> s { repaet 3 { h <- h } }", "no statement begins with `repaet`", "did you mean `repeat`?"),
        ("recipe r { tsak t }", "expected a part of a recipe (", "did you mean `task`?"),
        (
            'extern block b(x: s) -> s pyhton "m:C"',
            "expected `acts`, `costs`, `cuts`, `depends`, `maps`, `pure`, `python`, `random`, `reads`, `records`, "
            "`sizes`, `stops`, `when`, `where` or `[`",
            "did you mean `python`?",
        ),
        ("block in(h: s) -> s { }", "expected a name, found `in`", "`in` is a reserved word"),
        ("block b(h: s) -> s {\n    returnh\n}", "no statement begins with `returnh`", "write `return h`"),
        ("block b(h: s) -> s { f(h }", "expected `<-` or `=`, found `(`", "begin a statement with `name =`"),
        ("block b(h: s) -> s { a.b = h }", "expected a statement or `}`, found `a.b`", "bind a name without dots"),
        ("block b(h: s) -> s { let a.b = h }", "expected a name, found `a.b`", "bind a name without dots"),
        ("return h", "expected an item (", "put statements between the braces"),
        ("recipe r { claim a = 3 }", "expected `at`, `from`, `±` or `,`, found `}`", "put one of these before"),
        ("use 3", "expected a name or a string, found `3`", "put one of these before"),
    ],
)
def test_the_help_suggests_the_likeliest_repair(text: str, message: str, remedy: str) -> None:
    (mistake,) = parse_tolerantly(Source("x.arch", text))[1]
    assert mistake.code == "E0101"
    assert mistake.message.startswith(message)
    assert mistake.remedy.startswith(remedy)


def test_a_bracket_is_not_closed_at_the_end_of_the_text() -> None:
    assert report("block b(h: s) -> s {\n    return h\n") == lines(
        "error[E0103]: `{` is never closed",
        " --> x.arch:1:20",
        "1 | block b(h: s) -> s {",
        "  |                    ^ opened here",
        "2 |     return h",
        "  |             - the text ends here",
        "  help: add `}`",
    )


def test_a_bracket_is_closed_by_another() -> None:
    assert in_block("return f(h]") == lines(
        "error[E0104]: `]` does not match `(`",
        " --> x.arch:2:15",
        "2 |     return f(h]",
        "  |               ^ expected `)`",
        "  |             - opened here",
        "  help: write `)`",
    )


@pytest.mark.parametrize(
    "value",
    [
        "(" * 65 + "h" + ")" * 65,
        "[" * 65 + "]" * 65,
        "- " * 65 + "h",
        "not " * 65 + "h",
        "h + " * 65 + "h",
        "h |> " * 65 + "f",
        "h when t else " * 65 + "h",
        "f(" * 65 + ")" * 65,
        "f[" * 65 + "h" + "]" * 65,
    ],
)
def test_expressions_are_at_most_64_deep(value: str) -> None:
    assert "E0106" in {
        mistake.code for mistake in parse_tolerantly(Source("x.arch", f"block b(h: s) -> s {{ a = {value} }}"))[1]
    }


@pytest.mark.parametrize("statement", ["repeat 2 { " * 40 + "}" * 40, "if a { } else " * 40 + "{ }"])
def test_statements_are_at_most_64_deep(statement: str) -> None:
    (mistake,) = parse_tolerantly(Source("x.arch", f"block b(h: s) -> s {{ {statement} }}"))[1]
    assert mistake.code == "E0106"


@pytest.mark.parametrize("number", ["1e999", "1e-999", "9223372036854775808", "1" * 1_000, "0." + "0" * 400 + "1"])
def test_numbers_have_bounds(number: str) -> None:
    (mistake,) = parse_tolerantly(Source("x.arch", f"block b(h: s) -> s {{ a = {number} }}"))[1]
    assert mistake.code == "E0107"
    assert len(mistake.message) < 80
    assert mistake.span.text == number


@pytest.mark.parametrize("number", ["9223372036854775807", "0.0", "0e99", "1e308", "0" * 1_000])
def test_numbers_within_bounds_are_accepted(number: str) -> None:
    assert parse_tolerantly(Source("x.arch", f"block b(h: s) -> s {{ a = {number} }}"))[1] == ()


@pytest.mark.parametrize(
    ("text", "code", "remedy"),
    [
        ("extern block b(h: s) -> s\n    pure\n", "E0111", 'end the item with its class, as in `python "file:Class"`'),
        ("use ./lib.arch\n", "E0102", "write the path of a file in quotes"),
    ],
)
def test_a_mistake_says_what_is_written_in_its_place(text: str, code: str, remedy: str) -> None:
    (mistake,) = mistakes(text)
    assert (mistake.code, mistake.remedy) == (code, remedy)


@pytest.mark.parametrize(
    ("half", "whole"),
    [("block b(h: s) -> s\n", "block b(h: s) -> s {\n"), ("block b(h: s) -> s {\n    repeat 3\n", "    repeat 3 {\n")],
)
def test_a_header_without_its_brace_gets_one(half: str, whole: str) -> None:
    text = f"{half}        h <- f(h)\n    }}\n"
    mistake = mistakes(text)[0]
    assert mistake.remedy == "complete the line, and end it with `{`"
    assert whole in apply_edits(text, mistake.edits)


def test_a_word_in_statics_does_not_begin_statics() -> None:
    (mistake,) = mistakes("recipe r {\n    train adamw[\n        batch\n        steps = 100\n    ]\n}")
    assert mistake.message == "expected `=`, `]` or `,` after `batch`, found the next line"


@pytest.mark.parametrize("text", ["3x", "0x10", "1e", "1_", "1__0", "1.5.2"])
def test_malformed_numbers(text: str) -> None:
    (mistake,) = parse_tolerantly(Source("x.arch", f"block b(h: s) -> s {{ a = {text} }}"))[1]
    assert mistake.code in ("E0112", "E0102")
    if mistake.code == "E0112":
        assert mistake.message == f"`{text}` is neither a number nor a name"


def test_too_large_programs_are_not_read() -> None:
    (mistake,) = parse_tolerantly(Source("x.arch", "[" * 10_000_000))[1]
    assert (mistake.code, mistake.message) == ("E0110", "`x.arch` is larger than 1_000_000 bytes")


@pytest.mark.parametrize("line", ["vary model.", "claim test.", "search train. in 1..2", "test model.layers. = 3"])
def test_a_name_is_missing_after_a_dot_in_a_recipe(line: str) -> None:
    _, (mistake,) = parse_tolerantly(Source("x.arch", f"recipe r {{\n    task ctl\n    {line}\n}}\n"))
    dotted = line.split()[1]
    assert (mistake.code, mistake.message) == ("E0101", f"expected a name after `{dotted}`")
    assert mistake.span.text == dotted


def test_a_name_is_missing_after_a_dot_in_a_block() -> None:
    text = "block b(h: seq[n, d]) -> seq[n, d] {\n    c = lib.\n    return h\n}\n"
    _, (mistake,) = parse_tolerantly(Source("x.arch", text))
    assert (mistake.message, mistake.span.text) == ("expected a name after `lib.`", "lib.")


def test_a_comment_of_many_signs_in_a_line_of_a_table_takes_no_time() -> None:
    (mistake,) = mistakes(f"table t {{\n columns test.f1 {'# ' * 100}\n at seed in [1, 2] other x\n}}\n")
    assert mistake.span.text == "other"


def test_a_misspelt_keyword_before_a_text_is_not_two_words() -> None:
    _, diagnostics = parse_tolerantly(Source("p.arch", 'table t {\n    columnss "A" test.loss\n}\n'))
    assert [mistake.remedy for mistake in diagnostics] == ["did you mean `columns`?"]


@pytest.mark.parametrize(
    ("value", "corrected"),
    [
        ("h |> relu + h", "(h |> relu) + h"),
        ("h |> norm |> linear[d](4) * 2", "(h |> norm |> linear[d](4)) * 2"),
        ("f(g, h |> relu - h)", "f(g, (h |> relu) - h)"),
        ("h |> relu # note\n        + h", "(h |> relu) # note\n        + h"),
    ],
)
def test_an_operator_after_a_pipe_puts_the_pipe_in_parentheses(value: str, corrected: str) -> None:
    text = f"block b(h: s) -> s {{\n    a = {value}\n}}\n"
    (mistake,) = mistakes(text)
    assert mistake.message.startswith("a pipe ends before `")
    assert apply_edits(text, mistake.edits) == text.replace(value, corrected)
    assert parse_tolerantly(Source("x.arch", apply_edits(text, mistake.edits)))[1] == ()


def test_an_operator_after_a_pipe_shows_both() -> None:
    assert in_block("a = h |> relu + h") == lines(
        "error[E0101]: a pipe ends before `+`: its stages are blocks",
        " --> x.arch:2:19",
        "2 |     a = h |> relu + h",
        "  |                   ^ not expected here",
        "  |         --------- the pipe",
        "  help: write the pipe in parentheses: `(h |> relu) + …`",
    )


# Characters that no word or sign of the language has


@pytest.mark.parametrize(
    ("character", "shown", "remedy"),
    [
        ("'", "`'`", 'write strings in double quotes: `"…"`'),
        ("“x”", "`“`", 'write straight quotes: `"…"`'),
        ("−1", "`−`", "write `-`"),
        ("größe", "`größe`", "write names with the letters a to z, digits and `_`"),
        ("$x", "`$`", "delete it, or move it into a string or a comment"),
        ("!x", "`!`", "write `not`, or `!=` for a comparison"),
        (".5", "`.`", "write `0.5`"),
        ("0. ", "`.`", "write `0.0`, or delete the point"),
        ("\0", "the invisible character U+0000", "delete it, or move it into a string or a comment"),
        ("\u202e", "the invisible character U+202E", "delete it, or move it into a string or a comment"),
        ("\ufeff", "the invisible character U+FEFF", "delete it, or move it into a string or a comment"),
    ],
)
def test_unknown_characters_are_shown(character: str, shown: str, remedy: str) -> None:
    (mistake,) = parse_tolerantly(Source("x.arch", f"block b(h: s) -> s {{ a = {character}\n}}"))[1]
    assert (mistake.code, mistake.message) == ("E0102", f"{shown} is not allowed outside strings and comments")
    assert mistake.remedy == remedy


@pytest.mark.parametrize(
    ("half", "whole", "is_safe"),
    [
        ("f[.5](h)", "f[0.5](h)", True),
        ("f[rate = .1, b = 2](h)", "f[rate = 0.1, b = 2](h)", True),
        ("f[0.](h)", "f[0.0](h)", False),
        ("f[1_0.](h)", "f[1_0.0](h)", False),
        ("f['a b'](h)", 'f["a b"](h)', True),
        ("f[“a”](h)", 'f["a"](h)', True),
    ],
)
def test_the_edit_of_an_unknown_character_leaves_a_sound_text(half: str, whole: str, is_safe: bool) -> None:
    source = Source("x.arch", f"block b(h: s) -> s {{ return {half} }}")
    (mistake,) = parse_tolerantly(source)[1]
    assert (mistake.code, mistake.is_safe) == ("E0102", is_safe)
    corrected = apply_edits(source.text, mistake.edits)
    assert corrected == source.text.replace(half, whole)
    assert not parse_tolerantly(Source("x.arch", corrected))[1]


@pytest.mark.parametrize("word", ["embеd", "ｅｍｂｅｄ", "еmbеd"])
def test_a_letter_of_another_alphabet_that_looks_like_a_latin_one_is_replaced(word: str) -> None:
    text = f"block b(x: tokens[n]) -> seq[n, 4] {{ return {word}[4](x) }}"
    (mistake,) = parse_tolerantly(Source("x.arch", text))[1]
    assert (mistake.code, mistake.is_safe) == ("E0102", True)
    assert apply_edits(text, mistake.edits) == text.replace(word, "embed")


def test_the_edit_of_half_a_string_in_other_quotes_is_not_safe() -> None:
    (mistake, *_) = parse_tolerantly(Source("x.arch", "block b(h: s) -> s { return f['a](h) }"))[1]
    assert (mistake.code, mistake.is_safe) == ("E0102", False)
