"""Error recovery reports every mistake and parses the correct lines."""

import re

import pytest

from archlang.errors import Diagnostic, Source
from archlang.errors.edits import apply_edits
from archlang.errors.log import MOST_ERRORS
from archlang.syntax.parser import parse_tolerantly
from archlang.syntax.tree import Table, Use

GOOD = "\nblock good(h: seq[n, d]) -> seq[n, d] {\n    return h\n}\n"


def diagnostics(text: str) -> tuple[Diagnostic, ...]:
    return parse_tolerantly(Source("x.arch", text))[1]


def places(text: str) -> list[str]:
    """Code and line of every mistake."""
    return [f"{mistake.code}:{mistake.span.line}" for mistake in diagnostics(text)]


def readable_items(text: str) -> list[str]:
    program, _ = parse_tolerantly(Source("x.arch", text))
    return ["use" if isinstance(item, Use) else item.name for item in program.items]


def block(body: str) -> str:
    return f"block b(h: seq[n, d]) -> seq[n, d] {{\n{body}\n}}{GOOD}"


def test_every_statement_with_a_mistake_is_reported() -> None:
    text = block("a = = h\nb = f(h h)\nc <- \nd = [1, 2 3]\nreturn return")
    assert places(text) == ["E0101:2", "E0101:3", "E0101:4", "E0101:5", "E0101:6"]
    assert readable_items(text) == ["b", "good"]


def test_mistakes_in_loops_and_after_them_are_reported() -> None:
    text = block("repeat 3 {\na = = h\nif c {\nb = )\n}\n}\nd = *")
    assert places(text) == ["E0101:3", "E0104:5", "E0101:8"]


def test_a_colon_for_the_brace_of_an_item_is_its_only_mistake() -> None:
    text = 'recipe r:\n    task ctl\n    model m\n    train adamw\n\ntable t: # ten\n    row "a" r\n' + GOOD
    mistakes = diagnostics(text)
    assert [each.message for each in mistakes] == ["a body stands between braces, found `:`"] * 2
    assert [each.span.line for each in mistakes] == [1, 6]
    edited = apply_edits(text, [edit for each in mistakes for edit in each.edits])
    assert edited.startswith("recipe r {")
    assert "table t { # ten" in edited


def test_mistakes_in_several_items_are_reported() -> None:
    text = block("a = = h") + block("a = h") + "recipe r {\n task 3\n model m\n vary x of 1..2\n}\n" + GOOD
    assert places(text) == ["E0101:2", "E0101:14", "E0101:16"]
    assert readable_items(text) == ["b", "good", "b", "good", "r", "good"]


def test_a_body_is_parsed_if_its_header_has_a_mistake() -> None:
    assert places("block b[d = ](h: s) -> s {\n a = = h\n repeat {\n c = )\n }\n}" + GOOD) == [
        "E0101:1",
        "E0101:2",
        "E0101:3",
        "E0104:4",
    ]
    assert places("recipe {\n task 3\n}" + GOOD) == ["E0101:1", "E0101:2"]


def test_items_before_and_after_a_broken_item_are_parsed() -> None:
    assert readable_items("use a\n" + GOOD + "block (h: s) -> s { }\nuse b" + GOOD) == ["use", "good", "use", "good"]


def test_an_item_begins_where_its_word_begins_a_line() -> None:
    assert readable_items("block b(h: s) -> s {\n a = f(\n\nuse x\n" + GOOD) == ["b", "use", "good"]


def test_a_semicolon_is_the_only_mistake_of_its_line() -> None:
    assert [mistake.code for mistake in diagnostics(block("a = h; b = = a;"))] == ["E0102", "E0101"]


def test_indentation_locates_a_missing_brace() -> None:
    text = "block b(h: s) -> s {\n    repeat 3 {\n        h <- f(h)\n    return h\n}" + GOOD
    (mistake,) = diagnostics(text)
    assert (mistake.code, mistake.span.line) == ("E0103", 2)
    assert mistake.labels[0].span.line == 4
    assert [edit.text for edit in mistake.edits] == ["    }\n"]
    assert readable_items(text) == ["b", "good"]


def test_unindented_parts_of_a_recipe_are_not_items() -> None:
    assert places("recipe r {\ntask t\nmodel 3\ntrain a\n}" + GOOD) == ["E0101:3"]


def test_a_statement_inside_parentheses_shows_that_they_are_unclosed() -> None:
    assert places(block("a = f(h\nlet b = g\nreturn a")) == ["E0103:2"]
    assert places(block("a = f[x = 1\nh <- g\nreturn a")) == ["E0103:2"]


def test_parsing_stops_after_the_item_with_one_error_more_than_is_shown() -> None:
    text = GOOD + 2 * block("a = = h\n" * 1000)
    assert len(diagnostics(text)) == MOST_ERRORS + 1
    assert readable_items(text) == ["good", "b"]


def test_mistakes_are_in_the_order_of_the_text() -> None:
    starts = [mistake.span.start for mistake in diagnostics(block("a = 1e999\nb = = c\nd = 1e999\ne = f(x]\n"))]
    assert starts == sorted(starts)
    assert len(starts) == 4


LISTS = """block b(h: seq[n, d], m: seq[k, d]) -> seq[n, d] {
    y = scan c after p[m] in chunks[2](h) carry m, h truncated 3 {
        m <- m + c
        emit c
    }
    return y
}

recipe r {
    vary  model.d in [1, 2], seed in 1..3
    test  model.d = 1, task.length = 3
    claim median test.accuracy = 0.5 ± 0.1 at model.d = 1, seed = 2 from "a table"
}

table t {
    row     "A" r at model.d = 1 best of model.d claims 0.5, 0.4 ± 0.1
    columns "B" test.accuracy at test.length in [1, 2], model.d = 3
}
"""


def test_a_text_whose_line_is_cut_anywhere_has_mistakes_and_a_tree() -> None:
    lines = LISTS.splitlines()
    for number, line in enumerate(lines):
        for word in re.finditer(r"\w+|[^\w\s]", line):
            text = "\n".join((*lines[:number], line[: word.end()], *lines[number + 1 :]))
            tree, _ = parse_tolerantly(Source("program.arch", text))
            assert tree.source.text == text


@pytest.mark.parametrize(
    ("text", "words"), [("use\nuse archlang.models.ndr\n", ["use"]), ("use\n\nuse\n" + GOOD, ["use", "use"])]
)
def test_a_use_without_a_name_does_not_take_the_next_item(text: str, words: list[str]) -> None:
    assert [mistake.span.text for mistake in diagnostics(text)] == words
    assert readable_items(text) == readable_items(text.replace("use\n", "\n"))


@pytest.mark.parametrize(("word", "name"), [("let", "a name"), ("loss", "a name, `<-` or `=`")])
def test_a_statement_without_a_name_does_not_take_the_next_value(word: str, name: str) -> None:
    (mistake,) = diagnostics(block(f"{word}\na = norm(h)\nreturn a"))
    assert (mistake.span.text, mistake.span.line) == (word, 2)
    assert mistake.message == f"expected {name} after `{word}`, found the next line"
    assert readable_items(block(f"{word}\na = norm(h)\nreturn a"))


def test_loss_is_a_name_where_it_names_no_auxiliary_loss() -> None:
    text = block("loss = norm(h)\nloss <- loss + loss\nloss loss = mean(loss)\na = loss\nb = 2 * loss\nreturn loss")
    assert diagnostics(text) == ()
    assert places(text.replace("a = loss", "a = * loss")) == ["E0101:5"]
    assert diagnostics("extern settings s[loss: symbol = task] where loss in [task, own]\n") == ()
    assert diagnostics("block loss[loss = 1](loss: seq[n, loss]) -> data[n] { return loss[loss = loss](loss) }") == ()
    assert diagnostics(block("loss = repeat 2 { loss <- norm(loss) emit loss } return loss")) == ()


def test_statics_may_have_the_names_of_clauses() -> None:
    where = "where\n    random > 3,\n    pure < random\n    costs flops =\n    random * 2"
    assert not diagnostics(f'extern block b[random: int, pure: int](x: s) -> s\n    {where}\n    python "a:B"\n')


def test_a_type_is_missing_after_its_arrow() -> None:
    (mistake,) = diagnostics("block b(h: s) ->\n    return h\n}\n")
    assert (mistake.span.text, mistake.span.line) == ("->", 1)


def test_a_header_that_breaks_off_before_its_bracket_is_one_mistake() -> None:
    header = "extern task t[\n    train: int = 1,\n    path: file,\n](x: tokens[n]) -> logits[classes]\n"
    rest = '    gives vocab = 4\n    python "a:B"\n'
    for half in ("extern task t", "extern task", "extern"):
        assert places(header.replace("extern task t[", half) + rest) == ["E0101:1"]


@pytest.mark.parametrize("half", ["claims", "claims 1,", "claims 1 ±", "claims median", "claims 1 from"])
def test_a_row_whose_numbers_break_off_costs_no_other_line(half: str) -> None:
    row = f'    row "A" a at model.d = 3 {half}\n'
    text = f'table t {{\n    column "C" test.loss\n{row}    column "B" test.accuracy\n}}\n'
    assert places(text) == ["E0101:3"]
    program, _ = parse_tolerantly(Source("x.arch", text))
    (table,) = program.items
    assert isinstance(table, Table)
    assert [type(part).__name__ for part in table.parts] == ["Column", "Column"]


def test_a_part_of_a_table_or_recipe_that_breaks_off_takes_no_other_part() -> None:
    assert places('table t {\n    row "A" claims 0.9.train\n    row "B" b\n}\n') == ["E0102:2"]
    assert places('recipe r {\n    claim test.loss = 1 at\n        from "p"\n    task t\n}\n') == ["E0101:2"]


@pytest.mark.parametrize(
    ("half", "following"),
    [
        ('row "A" a at', "claims 0.1, 0.2"),
        ('row "A" a at', "best of model.d"),
        ('row "A" a best of', "claims 0.1"),
        ("columns test.loss at", "best of model.d"),
    ],
)
def test_a_line_that_lacks_a_name_does_not_take_the_first_word_of_the_line_that_continues_it(
    half: str, following: str
) -> None:
    text = f'table t {{\n    {half}\n        {following}\n    row "B" b\n}}\n'
    (mistake,) = diagnostics(text)
    assert (mistake.span.text, mistake.span.line) == (half.rpartition(" ")[2], 2)
    assert mistake.message.endswith("found the next line")


@pytest.mark.parametrize("header", ["block", "block b(h: s) ->", "block b", "block b[w = 3]", "block b(h: s)"])
def test_half_a_header_does_not_take_the_where_of_the_next_line(header: str) -> None:
    assert places(f"{header}\n    where w > 0 {{\n    y h\n    return h\n}}{GOOD}") == ["E0101:1", "E0101:3"]


@pytest.mark.parametrize(
    ("text", "sign"),
    [
        ("block b(h: s) -> s where w > 0,\n{\n    return h\n}\n", ","),
        ("recipe r {\n    vary model.d in 8,\n}\n", ","),
        ('table t from\n    row "A" a\n    column "B" test.loss\n}\n', "from"),
        ("recipe r from\n    task a\n    model b\n}\n", "from"),
    ],
)
def test_what_a_line_lacks_is_its_own_mistake(text: str, sign: str) -> None:
    (mistake,) = diagnostics(text)
    assert mistake.span.text == sign
    assert mistake.message.endswith("found the next line")


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("recipe r {\n    task a\n    optimizer adamw\n    epochs 3\n    seed 4\n    model b\n}\n", [3, 4, 5]),
        (block("y = norm(h)\nnorm h\nlinear h # so,\nz\nb c\nreturn h"), [3, 4, 5, 6]),
        (block("    y = norm(h]\n      + f(h)\n    y + 3\n    z = h\n    + 3\n    a\n    return h"), [2, 4, 7]),
        ('table t {\n    rw "A" a\n    rw "B" b\n        at model.d = 3\n    column "B" test.loss\n}\n', [2, 3]),
    ],
)
def test_each_line_that_is_no_statement_and_no_part_is_reported(text: str, lines: list[int]) -> None:
    assert [mistake.span.line for mistake in diagnostics(text)] == lines


@pytest.mark.parametrize(
    ("line", "words"), [("random so", ("`in`", "`when`")), ("stops gradients so", ("`when`",)), ("pure so", ())]
)
def test_the_words_that_may_go_on_a_clause_are_expected(line: str, words: tuple[str, ...]) -> None:
    (mistake,) = diagnostics(f'extern block b(x: s) -> s\n    {line}\n    python "a:B"\n')
    assert all(word in mistake.message for word in words)
    assert words or "`when`" not in mistake.message


@pytest.mark.parametrize(
    "header", ["block c[d: int = 64, slots  4, bits: int = 10](\n    {})", "block c[d: int, slots](\n    {})"]
)
def test_inputs_after_statics_with_a_mistake_are_no_statics(header: str) -> None:
    first, second = diagnostics(f"{header.format('h: s, x s')} -> s {{\n    return h\n}}\n")
    assert first.span.line == 1
    assert (second.span.text, second.remedy) == ("s", "put `:` before `s`")


@pytest.mark.parametrize(
    "line", ["embed](h)", "fembed[3](h)) * f(h)", "embed3, init = normal](h) + h", "fembed(h), h)"]
)
def test_an_opening_bracket_that_is_missing_after_a_block_is_one_mistake(line: str) -> None:
    (mistake,) = diagnostics(block(f"y = {line}\nreturn y"))
    assert mistake.span.line == 2


@pytest.mark.parametrize(
    ("line", "corrected", "remedy"),
    [
        ("norm h", "norm(h)", "write `norm(h)`"),
        ("norm h)", "norm(h)", "write `norm(h`"),
        ("linear[d]h)", "linear[d](h)", "write `linear[d](h`"),
        ("linear d](h)", "linear[d](h)", "write `linear[d`"),
        ("linear d, bias = true](h)", "linear[d, bias = true](h)", "write `linear[d`"),
        ("norm(linear[d] h)", "norm(linear[d](h))", "write `linear[d](h)`"),
        ("norm(linear[d]h))", "norm(linear[d](h))", "write `linear[d](h`"),
        ("norm(linear d](h))", "norm(linear[d](h))", "write `linear[d`"),
        ("concat(h, norm h)", "concat(h, norm(h))", "write `norm(h)`"),
    ],
)
def test_a_lost_bracket_before_a_name_is_written_there(line: str, corrected: str, remedy: str) -> None:
    text = block(f"y = {line}\nreturn y")
    (mistake,) = diagnostics(text)
    assert (mistake.code, mistake.remedy) == ("E0101", remedy)
    assert apply_edits(text, mistake.edits) == block(f"y = {corrected}\nreturn y")


def test_a_line_of_a_recipe_without_a_header_may_have_long_statics() -> None:
    model = "    model siamese[\n        layers[\n            heads = 8], last, framed = true]\n"
    (mistake,) = diagnostics(f"{model}    train adam[steps = 3]\n}}\n")
    assert (mistake.code, mistake.span.line) == ("E0101", 1)


@pytest.mark.parametrize(
    "items",
    [
        "block b(h: s) -> s {\n    y = h\n}  # ends\n\n    z = y\n    return z\nblock c(h: s) -> s { return h }\n",
        "recipe r {\n    task a\n}\n    model b\n",
        'table t {\n    row "A" a\n}\n    # more\n    column "B" test.loss\n',
    ],
)
def test_indented_lines_after_an_item_are_one_mistake_and_it_may_lack_them(items: str) -> None:
    program, mistakes = parse_tolerantly(Source("b.arch", items))
    assert len(mistakes) == 1
    assert not program.items[0].is_whole
