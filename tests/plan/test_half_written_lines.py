"""A half-written line costs nothing but itself: the mistakes of the other lines are those of the complete file."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from archlang.diagnostics import Diagnostic
from archlang.plan.check import check_text

ROOT = Path(__file__).parents[2]
_TOKEN = re.compile(r'"[^"]*"|[A-Za-z_][\w.]*|[0-9][\w.]*|\|>|<-|->|\.\.|[=!<>]=|[^\s#]')
_LOOP = re.compile(r"\s*(?:repeat|stack|scan)\b")

BODY = """block b(h: seq[n, d], x: seq[n, d]) -> seq[n, d] {
    a = h + first
    …
    z = norm(h)
    c = z + second
    return c
}
"""
REPEAT = """block b(h: seq[n, d], x: seq[n, d]) -> seq[n, d] {
    a = h + first
    repeat 3 {
        h <- norm(h)
        …
        z = h + inner
        h <- z
    }
    return h + second
}
"""
# The loop updates no state but in the half-written line.
LAST = """block b(h: seq[n, d], x: seq[n, d]) -> seq[n, d] {
    a = h + first
    stack 3 {
        z = h + inner
        …
    }
    return h + second
}
"""
SCAN = """block b(h: seq[n, d], x: seq[n, d]) -> seq[n, d] {
    a = h + first
    m = mean(h)
    y = scan c in h carry m {
        m <- m + c
        …
        z = c + inner
        emit z
    }
    return y + second
}
"""
RECIPE = """model m[d = 8](x: tokens[n]) -> logits[n, vocab] {
    return embed[d](x) |> linear[vocab]
}

recipe r {
    task  flipflop[nowhere = 3]
    model m
    train adamw[steps = 10]
    test  model.first = 3
    …
    vary  model.second in [1, 2]
}

recipe wide from r {
    train adamw[lr = 1e-3]
}

table t {
    row    "r" r claims 0.9, 0.8
    row    "s" missing_recipe claims 0.8, 0.7
    column "accuracy" test.accuracy
    column "iid" iid.inner
}
"""
TABLE = RECIPE.replace("    …\n", "").replace('    row    "s"', '    …\n    row    "s"')


def places(text: str, path: str = "program.arch") -> list[tuple[str, int, int, str]]:
    return [_place(each) for each in check_text(text, path)]


def _place(diagnostic: Diagnostic) -> tuple[str, int, int, str]:
    span = diagnostic.span
    return diagnostic.code, span.line, span.column, span.text


@pytest.mark.parametrize("half", ["y =", "y", "y = f(", "y = f[", "y = f[a =", "y = linear[8](h,", "y = norm(h",
    "let f", "h <- f(", "h <-", "h", "h |>", "h |> f(", "y = h +", "if", "if d", "repeat", "repeat 3", "y = scan",
    "y = scan c in", "stack", "charge b =", "let f =", "return", "return f(", "emit", ")", "]", 'y = "abc',
    "y = h; q"])  # fmt: skip
@pytest.mark.parametrize("program", [BODY, REPEAT, SCAN])
def test_a_half_written_statement_leaves_the_mistakes_of_the_other_lines(program: str, half: str) -> None:
    line = program.splitlines().index(next(each for each in program.splitlines() if "…" in each)) + 1
    expected = [place for place in places(program.replace("…", "")) if place[0] != "W0201"]
    after = [place for place in places(program.replace("…", half)) if place[0] != "W0201"]
    assert [place for place in after if place[1] != line] == expected
    assert any(place[0].startswith("E01") for place in after)


@pytest.mark.parametrize("half", ["h", "h <-", "h <- f(", "h <- f[a =", "h |>"])
def test_a_state_may_be_updated_by_a_line_that_cannot_be_read(half: str) -> None:
    after = places(LAST.replace("…", half))
    assert [place[3] for place in after if place[1] != 5] == ["first", "inner", "second"]


@pytest.mark.parametrize("half", ["task", "task ctl[", "model", "train", "train adamw[lr =", "train adamw[lr",
    "test model.d =", "test", "vary", "vary model.d in", "vary model.d in [1,", "search", "search model.d in", "claim",
    "claim test.accuracy =",
    "claim test.accuracy = 0.9 from", "mod", "["])  # fmt: skip
def test_a_half_written_line_of_a_recipe_leaves_the_mistakes_of_the_other_lines(half: str) -> None:
    line = RECIPE[: RECIPE.index("…")].count("\n") + 1
    assert [place for place in places(RECIPE.replace("…", half)) if place[1] != line] == places(RECIPE.replace("…", ""))


@pytest.mark.parametrize("half", ["vary seed in 1..", "search train.lr in 1e-4..", "test model.d =", "vary model.d in",
    "test model.d = 2 *"])  # fmt: skip
@pytest.mark.parametrize("line", ["train adamw[lr = 1e-3, stps = 10]", "task  flipflop[nowher = 3]", "test",
    "vary model.third in [1]", 'claim test.accurcy = 0.9 from "Table 1"', 'claim test.accuracy = 0.9'])  # fmt: skip
def test_a_line_of_a_recipe_without_its_value_leaves_the_next_line(half: str, line: str) -> None:
    others = [f"    {word}" for word in ("task  flipflop", "model m", "train adamw[steps = 1]") if word[:4] != line[:4]]
    header = "\n".join([RECIPE.partition("recipe")[0], "recipe r {", *others])
    number = header.count("\n") + 2
    after = places(f"{header}\n    {half}\n    {line}\n}}\n")
    assert ("E0101", number) in [place[:2] for place in after]
    assert [place for place in after if place[1] != number] == places(f"{header}\n\n    {line}\n}}\n")


@pytest.mark.parametrize(("cut", "complete"), [("task", "model lm"), ("model", "task flipflop"),
    ("task ctl[", "model lm"), ("train", "task ctl"), ("train adamw[lr =", "test model.nowhere = 3")])  # fmt: skip
def test_a_line_that_cannot_be_read_is_not_taken_from_the_base(cut: str, complete: str) -> None:
    text = (
        "model m[d = 32](x: tokens[n]) -> logits[classes] {\n    return embed[d](x) |> last |> linear[classes]\n}\n"
        "model lm[d = 32](x: tokens[n]) -> logits[n, vocab] {\n    return embed[d](x) |> linear[vocab]\n}\n"
        "recipe r {\n    task  ctl\n    model m\n    train adamw[steps = 1]\n}\n"
        f"recipe q from r {{\n    {complete}\n    {cut}\n}}\n"
    )
    expected = ["E0312"] if "nowhere" in complete else []
    assert [place[0] for place in places(text) if not place[0].startswith("E01")] == expected
    assert any(place[0].startswith("E01") for place in places(text))


@pytest.mark.parametrize("half", ["vary", "test model.d =", "train adamw[lr =", "claim", "model"])
def test_an_unknown_model_is_reported_beside_a_half_written_line(half: str) -> None:
    text = RECIPE.partition("table")[0].replace("model m\n", "model mm\n").replace("…", half)
    for mistaken in (text, text.replace("mm", "mm[d = 4]")):
        assert ("E0214", 7, 11, "mm") in places(mistaken)


@pytest.mark.parametrize("half", ["table", "recipe", "table = t {", "recipe [\n", "block b(\n", "model q\n"])
def test_an_unknown_name_is_reported_beside_a_half_written_item_that_cannot_define_it(half: str) -> None:
    text = RECIPE.replace("…", "").replace("model m\n", "model mm\n").replace("d = 8", "d = nowhere")
    text = text.replace("embed[d](x)", "embed[d](x) |> foo")
    reported = [place[3] for place in places(f"{text}{half}") if place[0] in ("E0202", "E0214", "E0604")]
    assert reported == ["foo", "mm", *(["missing_recipe"] if "recipe" not in half else [])]


@pytest.mark.parametrize("header", ["model q(x: tokens[n] ->", "modl q(x: tokens[n]) ->", "modelq(x: tokens[n]) ->",
    "model (x: tokens[n]) ->", "  model q(x tokens[n]) ->", "  model q[d = 8](x tokens[n]) ->",
    "model q: int](x: tokens[n]) ->"])  # fmt: skip
def test_a_name_may_be_that_of_an_item_whose_header_cannot_be_read(header: str) -> None:
    recipe = "recipe r {\n    task  flipflop\n    model q\n    train adamw[steps = 10]\n}\n"
    text = f"{header} logits[n, vocab] {{\n    return embed[8](x) |> linear[vocab]\n}}\n"
    codes = {place[0] for place in places(text + recipe)}
    assert codes <= {"E0101", "E0103"}
    assert codes != set()


@pytest.mark.parametrize("word", ["task", "model", "train"])
def test_a_line_of_a_recipe_that_cannot_be_read_is_not_missing(word: str) -> None:
    line = re.search(rf"(?m)^    {word}\b.*$", RECIPE)
    assert line is not None
    cut = RECIPE.replace(line[0], f"    {word}").replace("    …\n", "")
    assert {place[0] for place in places(cut)} & {"E0601", "E0304", "E0604"} <= {"E0604"}
    assert ("E0101", cut[: line.start()].count("\n") + 1, 5, word) in places(cut)


@pytest.mark.parametrize("half", ["row", 'row "', 'row "q"', 'row "q" r at', 'row "q" r claims', "column", 'column "x"',
    'column "x" test.', 'columns "x" test.accuracy at', 'columns test.accuracy at task.length in [', "r"])  # fmt: skip
def test_a_half_written_line_of_a_table_leaves_the_mistakes_of_the_other_lines(half: str) -> None:
    line = TABLE[: TABLE.index("…")].count("\n") + 1
    assert [place for place in places(TABLE.replace("…", half)) if place[1] != line] == places(TABLE.replace("…", ""))


@pytest.mark.parametrize("half", ["v = embed[d](", "v", "h <-", "if", "repeat", "h |> f["])
def test_a_future_that_a_model_sees_is_reported_beside_a_half_written_line(half: str) -> None:
    text = (
        "model peek[d = 8](x: tokens[n]) -> logits[n, vocab] {\n    h = embed[d](x)\n    repeat 2 {\n"
        f"        h <- h + attention[1](norm(h))\n        {half}\n    }}\n    {half}\n    return linear[vocab](h)\n}}\n"
        "recipe r {\n    task  flipflop\n    model peek\n    train adamw[steps = 10]\n}\n"
    )
    assert ("E0501", 4) in [place[:2] for place in places(text)]


def test_a_model_whose_result_cannot_be_read_is_not_said_to_see_the_future() -> None:
    text = (
        "model peek[d = 8](x: tokens[n]) -> logits[n, vocab] {\n    h = embed[d](x)\n"
        "    a = attention[1](\n    return linear[vocab](a)\n}\n"
        "recipe r {\n    task  flipflop\n    model peek\n    train adamw[steps = 10]\n}\n"
    )
    assert [place[0] for place in places(text)] == ["E0103"]


@pytest.mark.parametrize(
    "header",
    [
        "block b[a: int](h: seq[n, d]) -> seq[n, {",
        "block b[a: int](h: seq[n,",
        "block b[\n    a: int,\n](h: seq[n,",
        "block b[\n    a: int, by: symbol,\n](h: seq[n, d]) -> seq[n, d]\n    where by in [left, right",
    ],
)
def test_a_half_written_header_is_one_mistake_in_its_last_line(header: str) -> None:
    body = "y = linear[d](h)\n    if a > 1 { z = y } else { z = h }\n    repeat 2 { z <- norm(z) }\n    return z\n"
    (mistake,) = check_text(f"{header}\n    {body}}}\n", "program.arch")
    assert (mistake.code, mistake.span.line) == ("E0103", header.count("\n") + 1)


def test_a_loop_without_its_brace_is_one_mistake() -> None:
    text = REPEAT.replace("        …\n", "")
    expected = [place for place in places(text) if place[0] != "W0201"]
    for header in ("repeat 3 drawn", "y = scan c in f(", "stack"):
        after = [place for place in places(text.replace("repeat 3 {", header)) if place[0] != "W0201"]
        assert [place for place in after if place[1] != 3] == expected, header


@pytest.mark.parametrize(
    "header", ["repeat", "repeat 3", "repeat 3 halting h as", "y = scan", "y = scan c", "y =", "y"]
)
def test_a_loop_header_that_breaks_off_may_bind_any_name_for_its_body(header: str) -> None:
    text = REPEAT.replace("        …\n", "").replace("norm(h)", "norm[nowhere = 3](h)")
    after = [place for place in places(text.replace("repeat 3 {", header)) if place[0] != "W0201"]
    assert [place[3] for place in after if place[1] != 3] == ["first", "nowhere = 3", "second"]


@pytest.mark.parametrize("half", ["zo", "let zo", "z", "le"])
def test_a_half_written_name_may_be_any_that_begins_so(half: str) -> None:
    text = BODY.replace("…", half).replace("z = norm(h)", "z = zone(h)" if "l" in half else "z = zone")
    assert [place[3] for place in places(text) if place[0] not in ("W0201", "E0101")] == ["first", "second"]


def test_an_else_without_its_brace_is_one_mistake() -> None:
    text = """block b[a: int](h: seq[n, d]) -> seq[n, d] {
    if a > 1 {
        z = h
    } else
        z = first
    }
    return z + second
}
"""
    assert [(each.code, each.span.line) for each in check_text(text, "program.arch")] == [
        ("E0101", 4),
        ("E0201", 5),
        ("E0201", 7),
    ]


def test_a_repeat_before_an_update_is_reported_at_its_own_line() -> None:
    text = "block b(h: seq[n, d]) -> seq[n, d] {\n    repeat\n    h <- h\n    return h\n}\n"
    assert places(text)[0] == ("E0101", 2, 5, "repeat")


def cuts(lines: list[str], number: int) -> Iterator[str]:
    """Yields a program with a line cut after each of its tokens but the last."""
    line = lines[number]
    ends = [token.end() for token in _TOKEN.finditer(line.partition("#")[0])]
    for end in ends[:-1]:
        yield "\n".join([*lines[:number], line[:end], *lines[number + 1 :]])


def one_line_statements(text: str) -> list[int]:
    """Returns the lines of bodies that are not within the brackets of a statement of several lines, and no header of an
    item."""
    numbers, depth = [], 0
    for number, line in enumerate(text.split("\n")):
        code = re.sub(r'"[^"]*"|#.*', "", line)
        change = sum(code.count(opener) for opener in "([") - sum(code.count(closer) for closer in ")]")
        if depth == 0 and change == 0 and line[:1] == " ":
            numbers.append(number)
        depth += change
    return numbers


def check_cuts(path: Path, mistake: tuple[str, str], every: int) -> None:
    """Cuts each line of a program with one mistake, and asserts that it costs only itself. A cut that leaves a program
    without syntax mistakes, such as `y = a` of `y = a + b`, is another program."""
    text = path.read_text("utf-8").replace(*mistake, 1)
    complete = places(text, str(path))
    assert complete != []
    lines = text.split("\n")
    seen = 0
    for number in one_line_statements(text):
        for cut in cuts(lines, number):
            if cut.split("\n")[number].endswith("=") and _LOOP.match(lines[number + 1]):
                continue  # `y =` is complete with a loop in the next line
            seen += 1
            after = places(cut, str(path)) if seen % every == 0 else []
            if any(code.startswith("E01") for code, *_ in after):
                elsewhere = [place for place in after if place[1] != number + 1 and place[0] != "W0201"]
                # What flows on from a cut line is unknown.
                missing = [place for place in complete if place not in after and place[1] != number + 1]
                assert [place for place in elsewhere if place not in complete] == [], cut
                assert missing == [], cut


CASES = [
    ("recipes/gutlb.arch", ("norm(m + attention[heads", "norm(m + atention[heads")),
    ("recipes/ndr.arch", ("lr = 1e-3", "lr = nothing")),
]


@pytest.mark.parametrize(("path", "mistake"), CASES[:1])
def test_a_line_of_a_recipe_file_that_is_cut_costs_nothing_but_itself(path: str, mistake: tuple[str, str]) -> None:
    check_cuts(ROOT / path, mistake, 8)


@pytest.mark.slow
@pytest.mark.parametrize(("path", "mistake"), CASES)
def test_each_cut_of_a_recipe_file_costs_nothing_but_the_line(path: str, mistake: tuple[str, str]) -> None:
    check_cuts(ROOT / path, mistake, 1)


@pytest.mark.parametrize("following", ["a = norm(h)", "let f = norm", "a = norm(h) + h"])
def test_a_block_that_a_let_alone_may_bind_is_not_unknown(following: str) -> None:
    text = f"block b(h: seq[n, d]) -> seq[n, d] {{\n    let\n    {following}\n    return e(h)\n}}\n"
    assert [(each.code, each.span.line) for each in check_text(text) if each.is_error] == [("E0101", 2)]


def test_half_a_name_may_be_that_of_a_value_with_the_name_of_a_block() -> None:
    loop = "    repeat 3 {\n        norms <- norms + norm(h)\n    }\n"
    body = f"    nor\n{loop}    return norms + scores\n"
    header = "(h: seq[n, d]) -> seq[n, d]"
    text = f"block norms{header} {{\n    return h\n}}\nblock b{header} {{\n{body}}}\n"
    assert [(each.code, each.span.text) for each in check_text(text)] == [("E0101", "nor"), ("E0201", "scores")]


def test_an_instance_that_half_a_let_names_may_have_the_name_of_a_block() -> None:
    calls = "    a = gate(h)\n    return norm[d, d, d](a)\n"
    text = f"block b(h: seq[n, d]) -> seq[n, d] {{\n    x = norm(h)\n    let …\n{calls}}}\n"
    halves = ("ga", "no", "h")
    codes = [[each.code for each in check_text(text.replace("…", half)) if each.is_error] for half in halves]
    assert codes == [["E0101", "E0305"], ["E0101", "E0302", "E0305"], ["E0101", "E0302", "E0305"]]


@pytest.mark.parametrize("word", ["vary", "search"])
@pytest.mark.parametrize("half", ["see", "seed in", "model.ff in [3,", "task."])
def test_the_first_parts_of_a_vary_are_read_before_half_a_part(word: str, half: str) -> None:
    parts = f"{word} model.nowhere in [3],\n        model.d in [true],\n        {half}"
    recipe = f"recipe r {{\n    task ctl\n    model ndr\n    train adamw[steps = 3]\n    {parts}\n}}\n"
    mistakes = [each for each in check_text(f"use archlang.models.data_router\n{recipe}") if each.is_error]
    assert [(each.code[:3], each.span.line) for each in mistakes] == [("E03", 6), ("E03", 7), ("E01", 8)]


@pytest.mark.parametrize("half", ["mod", "model ndr\n        d = 8]"])
def test_the_unknown_model_of_an_heir_is_reported_beside_half_the_line_of_its_base(half: str) -> None:
    base = f"recipe base {{\n    task ctl\n    {half}\n    train adamw[steps = 3]\n}}\n"
    heir = "recipe heir from base {\n    model nowhere[d = 4]\n}\n"
    mistakes = check_text(f"use archlang.models.data_router\n{base}{heir}")
    assert [each.code for each in mistakes] == ["E0101", "E0214"]


def test_a_row_before_half_a_line_does_not_take_its_first_word() -> None:
    table = 'table t {\n    row "A" claims 0.1, -\n    r\n    column "B" test.accuracy\n    column "C" test.loss\n}\n'
    assert [each.span.line for each in check_text(table)] == [3]


def test_a_block_that_a_half_written_let_binds_is_not_unknown() -> None:
    text = BODY.replace("…", "let g").replace("norm(h)", "g(h)")
    assert [place[3] for place in places(text) if place[0] != "W0201"] == ["first", "g", "second"]


def test_a_half_written_binding_before_its_whole_line_is_no_second_binding() -> None:
    text = BODY.replace("…", "q = norm(\n    q = norm(h)")
    assert [place[3] for place in places(text) if place[0] != "W0201"] == ["first", "(", "second"]


MODEL = """model f[d = 8](x: tokens[n]) -> logits[n, vocab] {
    a = embed[d](x)
    b = norm[nowhere = 3](a)
    return linear[vocab](b) |> foo[3]
}

recipe r {
    task  flipflop[nowhere = 3]
    model f[e = 3]
    train adamw[steps = 10]
}
"""


@pytest.mark.parametrize("header", ["model f[d = 8](x: tokens[n]) -> logits[n,", "model f[d = 8](x: tokens[n]) -> log",
    "model f[d = 8](x: tokens[n]) ->", "model f[d = 8](x: tokens[n])", "model f[d = 8](x: tok", "model f[d = 8](",
    "model f[d = 8]", "model f[d = 8](x tokens[n]) -> logits[n, vocab] {"])  # fmt: skip
def test_a_half_written_header_leaves_the_mistakes_of_its_body_and_of_its_users(header: str) -> None:
    complete = places(MODEL)
    assert [place[3] for place in complete] == ["nowhere = 3", "foo", "nowhere = 3", "e = 3"]
    after = places(MODEL.replace(MODEL.partition("\n")[0], header))
    assert [place for place in after if place[1] > 1] == complete
    assert {place[0] for place in after} & {"E0101", "E0103"}


@pytest.mark.parametrize("header", ["model f[d = 8, e", "model f[d =", "model f[", "model f", "model"])
def test_a_header_that_breaks_off_in_its_statics_may_declare_any_name(header: str) -> None:
    after = places(MODEL.replace(MODEL.partition("\n")[0], header))
    assert [place[3] for place in after if place[1] > 1] == ["nowhere = 3", "nowhere = 3"]


@pytest.mark.parametrize("header", ["recipe b from a", "recipe b from", "recipe b fro", "recipe b", "recipe", "reci",
    "recipe b from a ["])  # fmt: skip
def test_a_half_written_header_of_a_recipe_leaves_the_mistakes_of_its_lines(header: str) -> None:
    text = RECIPE.replace("    …\n", "").replace("recipe wide from r {\n", "…\n    model m[nowhere = 4]\n")
    text = text.replace("lr = 1e-3", "stps = 3")
    line = text[: text.index("…")].count("\n") + 1
    complete, after = places(text.replace("…", "recipe wide from r {")), places(text.replace("…", header))
    assert len(complete) == 9
    # The recipe may have any name, and any base.
    known = [place for place in complete if place[0] != "E0604" and place[:3] != ("E0312", line + 1, 11)]
    assert [place for place in after if place[1] != line and place[0] != "E0604"] == known
    assert any(place[1] == line for place in after)


def test_an_item_without_its_closing_brace_keeps_its_mistakes_and_those_of_the_next() -> None:
    text = BODY.replace("…", "").rstrip("}\n") + "\n\n" + RECIPE.replace("…", "").replace("}\n\ntable", "\ntable")
    errors = [place for place in places(text) if place[0] != "W0201"]
    assert [place[3] for place in errors if place[0] == "E0103"] == ["{", "{"]
    assert [place[3] for place in errors if place[0] != "E0103"] == [
        "first", "second", "nowhere = 3", "model.first", "model.second", "missing_recipe", "iid.inner"
    ]  # fmt: skip


def test_a_return_after_a_loop_without_its_closing_brace_is_not_said_to_be_in_it() -> None:
    text = "block b(h: seq[n, d]) -> seq[n, d] {\n    repeat 3 {\n        h <- norm(h)\n    return h + first\n}\n"
    assert [place[:2] for place in places(text)] == [("E0103", 2), ("E0201", 4)]


EXTERN = """extern block blur[width: int, dropout: float = 0.0](q: seq[n, d], kv: seq[m, e] = q) -> seq[n, d]
    where width > 0, dropout >= 0
    …
    reads q pointwise, kw full
    random in training when drpout > 0
    costs parameters = 2 * wdth * (d + e), flops = 4 * n
    records attention
    python "blur:Blur"

block b(h: seq[n, d]) -> seq[n, d] {
    return first + blur[width = 3, wdth = 3](h)
}
"""


@pytest.mark.parametrize("half", ["where", "where width >", "where width > 0,", "reads", "reads q",
    "reads q pointwise,", "reads q pointwise when", "depends", "depends on", "random in", "random when", "stops",
    "costs", "costs parameters", "costs parameters =", "costs parameters = 2 *", "costs parameters = (3 +",
    "costs parameters = 2 when", "maps", "maps query(", "maps query(q)", "maps query(q) =", "records",
    "records gate =", "cuts", "cuts evenly into", "wher", "python", 'python "'])  # fmt: skip
def test_a_half_written_clause_of_an_extern_leaves_the_mistakes_of_the_others(half: str) -> None:
    complete = places(EXTERN.replace("…", ""))
    assert [place[1] for place in complete] == [4, 5, 6, 11, 11]
    after = places(EXTERN.replace("…", half))
    assert [place for place in after if place[1] != 3] == complete
    assert [place[0][:3] for place in after if place[1] == 3] == ["E01"]


@pytest.mark.parametrize("half", ["width", "width:", "width: int, x", "width: int, x:"])
def test_a_half_written_line_of_statics_is_the_only_mistake_of_the_header(half: str) -> None:
    text = """block b[
    heads: int,
    …
    ff: int = 3,
    nowhere: kind,
](h: seq[n, d]) -> seq[n, d] {
    return norm[wrong = 3](attention[heads](h)) |> feedforward[width]
}
"""
    complete = [place for place in places(text.replace("…", "width: int,")) if place[1] != 3]
    assert [place[1] for place in complete] == [5, 7]
    after = places(text.replace("…", half))
    assert [place for place in after if place[1] != 3] == complete
    assert "E0101" in [place[0] for place in after if place[1] == 3]


HEIR = """model m[d: int, k = 2](x: tokens[n]) -> logits[n, vocab] {
    return embed[d](x) |> feedforward[k] |> linear[vocab]
}

recipe r {
    task  flipflop
    model m
    train adamw[lr = 1e-3]
    test  model.k = 3
    vary  model.d in [1, 2], train.steps in [1, 2]
}

recipe q from r {
    model m[nowhere = 3]
    …
    claim test.accurcy = 0.9 from "Table 1"
}
"""


@pytest.mark.parametrize("half", ["vary", "vary model.d", "vary model.d in [1,", "v", "va", "vary train.steps in", "te",
    "test", "test model.k =", "search", "search model.d in"])  # fmt: skip
def test_a_half_written_line_of_an_heir_does_not_take_the_line_of_its_base(half: str) -> None:
    after = places(HEIR.replace("…", half))
    assert [place[3] for place in after if place[1] != 15] == ["nowhere = 3", "test.accurcy"]
    assert [place[0] for place in after if place[1] == 15] == ["E0103" if "[" in half else "E0101"]


@pytest.mark.parametrize("half", ["v", "var", "vary"])
def test_a_half_written_line_of_a_base_may_set_any_static_of_its_heirs(half: str) -> None:
    text = HEIR.replace("…", "").replace("vary  model.d in [1, 2], train.steps in [1, 2]", half)
    assert [place[3] for place in places(text) if place[1] != 10] == ["nowhere = 3", "test.accurcy"]
    # What a run measures is unknown without the optimizer.
    text = HEIR.replace("…", "").replace("train adamw[lr = 1e-3]", "train"[: len(half)])
    assert [place[3] for place in places(text) if place[1] != 8] == ["nowhere = 3"]


@pytest.mark.parametrize("half", ["train adamw", "train ada", "train"])
def test_statics_in_lines_of_their_own_without_a_bracket_are_one_mistake(half: str) -> None:
    text = HEIR.replace("    …\n", "").replace(
        "train adamw[lr = 1e-3]", f"{half}\n        lr = 1e-3,\n        steps = 3]"
    )
    after = [place for place in places(text) if place[0] != "E0605"]
    assert [place[:2] for place in after] == [("E0101", 8), ("E0301", 16)]


@pytest.mark.parametrize(
    "statics", ["train = 5, iid = 6]", "train = 1..4,\n        iid = 6]", "train = [5],\n        iid = 6]"]
)
def test_statics_that_are_called_as_a_part_do_not_begin_a_part(statics: str) -> None:
    text = f"recipe r {{\n    task ctl\n        {statics}\n    model lookup\n    train adamw[stps = 3]\n}}\n"
    after = [place for place in places(text) if place[0].startswith("E01")]
    assert [(place[1], place[3]) for place in after] == [(2, "ctl")]


STRAY = """recipe q {
    model missing
    task  flipflop…
    train adamw[stps = 3]
}

table t {
    column "a" test.accurcy
    row "r" missing
    row "q" q…
}

block b(h: seq[n, d]) -> seq[n, d] {
    a = h + first
    b = norm(a)…
    return b + second
}
"""


@pytest.mark.parametrize("place", [1, 2, 3])
@pytest.mark.parametrize("brace", ["}", "\n    }"])
def test_an_extra_brace_is_the_only_mistake_that_it_makes(place: int, brace: str) -> None:
    before, *others = STRAY.split("…")
    text = before
    for number, other in enumerate(others, 1):
        text += (brace if number == place else " " if brace == "}" else "\n") + other
    complete = [each[3] for each in places(STRAY.replace("…", " "))]
    assert [each[3] for each in places(text) if each[0] != "E0104"] == complete
    assert [each[3] for each in places(text) if each[0] == "E0104"] == ["}"]


def test_an_else_that_is_not_written_yet_is_the_only_mistake() -> None:
    text = """block b[k = 2](h: seq[n, d]) -> seq[n, d] {
    if k > 1 {
        z = h + first
    }
        z = h
    }
    return z + second
}
"""
    assert [place[1:] for place in places(text)] == [(3, 17, "first"), (4, 5, "}"), (7, 16, "second")]


def test_each_of_several_half_written_lines_is_reported() -> None:
    body = ["a =", "b = norm(", "if", "c = h +", "let f", "let g =", "repeat", "h <-", "charge b =", "y = f["]
    statements = BODY.replace("…", "\n    ".join(body))
    assert {place[1] for place in places(statements) if place[0].startswith("E01")} == {*range(3, 3 + len(body))}
    lines = ["task flipflop[nowhere = 3", "model", "train adamw[stps =", "test", "vary model.d in", "vary", "claim"]
    recipe = "recipe q {\n    " + "\n    ".join(lines) + "\n}\n"
    assert {place[1] for place in places(recipe)} == {*range(2, 2 + len(lines))}
    rows = ["row", 'row "a"', 'row "b" r at', "column", "columns", 'column "x"']
    table = "table q {\n    " + "\n    ".join(rows) + "\n}\n"
    assert {place[1] for place in places(table)} == {*range(2, 2 + len(rows))}


def test_a_static_in_a_half_written_header_may_have_the_name_of_its_block() -> None:
    text = """block gated[f: block = feedforward[64], gated = true
    u = f(h)
    if gated { v = u } else { v = h }
    return v
}

block other(h: seq[n, d]) -> seq[n, d] {
    return h |> second
}
"""
    assert [(place[0], place[3]) for place in places(text)] == [("E0103", "["), ("E0202", "second")]


@pytest.mark.parametrize("line", ["return norm(h + rrr)", "return norm", "return linear[8]", "return norm(h"])
def test_a_name_that_a_wrong_line_may_mean_is_not_called_unused(line: str) -> None:
    codes = {place[0] for place in places(f"block b(h: seq[n, d]) -> seq[n, d] {{\n    r = norm(h)\n    {line}\n}}\n")}
    assert codes
    assert "W0201" not in codes


def test_the_path_of_a_half_written_use_is_not_unknown() -> None:
    text = "use archlang.models.\n\nblock b(h: seq[n, d]) -> seq[n, d] {\n    return mine(h)\n}\n"
    assert [place[0] for place in places(text)] == ["E0101"]


def test_a_mistake_in_a_block_is_not_repeated_with_the_sizes_of_a_call() -> None:
    text = """block b(h: seq[n, d]) -> seq[n, d] {
    return linear[1](h)
}

model m[d = 8](x: tokens[n]) -> logits[classes] {
    return embed[d](x) |> b |> last |> linear[classes]
}

recipe r {
    task  ctl
    model m
    train adamw[steps = 10]
}
"""
    assert [place[:2] for place in places(text)] == [("E0404", 2)]
