"""`check` returns quickly for any file: it stays within its limits, and reports the limit that a file exceeds."""

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from archlang.elaborate.binding import LARGEST_SIZE
from archlang.elaborate.calls import DEEPEST_CALL
from archlang.elaborate.loops import MOST_STEPS_OF_A_LOOP
from archlang.elaborate.region_builder import MOST_LOOP_STEPS, MOST_OPERATIONS, MOST_PARAMETERS
from archlang.errors import Diagnostic
from archlang.errors.effort import Budget, forget, limited
from archlang.errors.log import MOST_ERRORS, MOST_WARNINGS
from archlang.plan import check as check_module
from archlang.plan import variations
from archlang.plan.check import MOST_STEPS, MOST_STEPS_WITH_POINTS, check, check_text
from archlang.plan.variations import MOST_POINTS, MOST_VARIED
from archlang.resolve.resolve import MOST_USES
from archlang.syntax.builder import DEEPEST
from archlang.syntax.reading import LARGEST
from archlang.syntax.tokens import LONGEST_WORD, MOST_WORDS
from archlang.types.dimension import MOST_FACTORS, MOST_TERMS

ROOT = Path(__file__).parent.parent
# In seconds, far above the time on a slow machine: a hang takes hours.
SLOWEST = 60.0
MODEL = """
model small[d = 8, steps = 2](x: tokens[n]) -> logits[classes] {
    h = embed[d](x)
    repeat steps { h <- norm(h + feedforward[8](h)) }
    return h |> last |> linear[classes]
}
"""


def recipe(lines: str, name: str = "trial") -> str:
    return f"recipe {name} {{\n task ctl\n model small\n train adamw[lr = 1e-3, steps = 3]\n{lines}\n}}\n"


def block(lines: str, statics: str = "") -> str:
    return f"block b{statics}(h: seq[n, d]) -> seq[n, d] {{\n{lines}\n    return h\n}}\n"


def codes(text: str) -> list[str]:
    return [diagnostic.code for diagnostic in check_text(text)]


def only(text: str) -> Diagnostic:
    (diagnostic,) = check_text(text)
    return diagnostic


def files(folder: Path, texts: Mapping[str, str]) -> Path:
    for name, text in texts.items():
        (folder / name).write_text(text)
    return folder / next(iter(texts))


# Diagnostics


def test_the_first_hundred_errors_of_a_body_are_shown_and_the_excess_reported() -> None:
    lines = "\n".join(f"    _v{number} = w{number}" for number in range(3 * MOST_ERRORS))
    reported = codes(block(lines))
    assert reported == ["E0201"] * MOST_ERRORS + ["E0115"]


def test_the_first_hundred_errors_of_a_text_are_shown_and_the_excess_reported() -> None:
    reported = codes(block("    v = = h\n" * 3 * MOST_ERRORS))
    assert reported == ["E0101"] * MOST_ERRORS + ["E0115"]


def test_exactly_a_hundred_errors_are_all_shown() -> None:
    lines = "\n".join(f"    _v{number} = w{number}" for number in range(MOST_ERRORS))
    assert codes(block(lines)) == ["E0201"] * MOST_ERRORS


def test_warnings_are_counted() -> None:
    lines = "\n".join(f"    v{number} = h" for number in range(MOST_WARNINGS + 23))
    *shown, last = check_text(block(lines))
    assert [diagnostic.code for diagnostic in shown] == ["W0201"] * MOST_WARNINGS
    assert last.code == "W0203"
    assert f"there are {MOST_WARNINGS + 23} warnings" in last.message


# Files


@pytest.mark.parametrize(("count", "code"), [(MOST_USES, "W0201"), (MOST_USES + 50, "E0226")])
def test_a_chain_of_more_files_than_may_be_read_is_an_error(count: int, code: str, tmp_path: Path) -> None:
    chain = {f"f{number}.arch": f'use "./f{number + 1}.arch"\n' for number in range(count)}
    (diagnostic,) = check(files(tmp_path, {**chain, f"f{count}.arch": ""}))
    assert diagnostic.code == code  # W0201: the first file uses nothing of the second
    assert code == "W0201" or diagnostic.span.source.path.endswith(f"f{MOST_USES}.arch")


def test_too_many_uses_in_one_file_are_one_error() -> None:
    diagnostic = only("".join(f"use archlang.models.panm as a{number}\n" for number in range(3 * MOST_USES)))
    assert (diagnostic.code, diagnostic.span.line) == ("E0226", MOST_USES + 1)


def test_used_files_share_one_limit(tmp_path: Path) -> None:
    half = "# why\n" * (MOST_WORDS // 2)
    texts = {
        "main.arch": 'use "./one.arch"\nuse "./two.arch"\nuse "./one.arch" as again\nuse "./three.arch"\n',
        "one.arch": half,
        "two.arch": half,
        "three.arch": "# why\n",
    }
    (diagnostic,) = check(files(tmp_path, texts))
    assert (diagnostic.code, diagnostic.span.line) == ("E0227", 4)


@pytest.mark.parametrize(
    ("use", "code"),
    [(f'"./{"x" * 300}.arch"', "E0208"), (f'"./{"x/" * 400}.arch"', "E0208"), (f"archlang.{'x' * 300}", "E0211")],
)
def test_an_impossible_name_is_a_missing_file(use: str, code: str) -> None:
    assert codes(f"use {use}\n") == [code]


# Work


def doubling(levels: int) -> str:
    blocks = ["block b0(h: seq[n, d]) -> seq[n, d] { return norm(h) }\n"]
    for level in range(1, levels):
        inner = f"b{level - 1}"
        blocks.append(f"block b{level}(h: seq[n, d]) -> seq[n, d] {{ return {inner}({inner}(h)) }}\n")
    return "".join(blocks)


def test_doubling_blocks_are_an_error_at_the_block_that_is_too_large() -> None:
    diagnostic = only(doubling(40))
    assert diagnostic.code in ("E0228", "E0421")


def test_a_long_list_that_every_call_evaluates_is_an_error() -> None:
    numbers = ", ".join(["1"] * 5_000)
    calls = "\n".join(f"    _v{number} = b(h)" for number in range(500))
    text = block("", f"[_s = [{numbers}]]") + block(calls).replace("block b", "block c")
    diagnostic = only(text)
    assert (diagnostic.code, diagnostic.span.text) == ("E0228", "c")


def test_the_same_program_takes_the_same_work(monkeypatch: pytest.MonkeyPatch) -> None:
    budgets: list[Budget] = []

    @contextmanager
    def recorded(steps: int) -> Iterator[Budget]:
        with limited(steps) as budget:
            budgets.append(budget)
            yield budget

    text = MODEL + recipe("    vary model.d in 1..20")
    check_text(text)  # what is read once in a process
    monkeypatch.setattr(check_module, "limited", recorded)
    for _ in range(2):
        forget()
        assert check_text(text) == ()
    first, first_points, second, second_points = budgets
    assert 0 < first.spent == second.spent < MOST_STEPS
    assert first.spent < first_points.spent == second_points.spent


@pytest.mark.parametrize(
    "body",
    [
        "repeat 2 { " * 60 + "h <- norm(h)" + " }" * 60,
        "return " + "norm(" * 90 + "h" + ")" * 90,
        "return h" + " + h" * 3_000,
        "return h" + " |> norm" * 3_000,
        "return linear[" + "9" * 5_000 + "](h)",
        "return linear[" + "d * " * 500 + "d](h)",
    ],
    ids=["deep loops", "deep calls", "long sums", "long pipes", "large numbers", "high powers"],
)
def test_large_programs_are_checked_in_time(body: str) -> None:
    start = time.perf_counter()
    check_text(f"block b(h: seq[n, d]) -> seq[n, d] {{ {body} }}")
    assert time.perf_counter() - start < SLOWEST


def test_deeply_nested_blocks_and_loops_are_an_error() -> None:
    blocks = ["block b0(h: seq[n, d]) -> seq[n, d] { return norm(h) }\n"]
    for level in range(1, 39):
        body = "repeat 1 { " * 12 + f"h <- b{level - 1}(h)" + " }" * 12
        blocks.append(f"block b{level}(h: seq[n, d]) -> seq[n, d] {{ {body} return h }}\n")
    assert set(codes("".join(blocks))) == {"E0225"}


@pytest.mark.parametrize(
    "statics",
    [
        f"a: int, s0 = a * a, {', '.join(f's{number + 1} = s{number} * s{number}' for number in range(40))}",
        f"{', '.join(f'a{number}: int' for number in range(20))}, "
        f"s = {' * '.join(['(' + ' + '.join(f'a{number}' for number in range(20)) + ')'] * 30)}",
        f"a: int, s0 = 3 * a, {', '.join(f's{number + 1} = 9 * s{number}' for number in range(400))}",
        f"{', '.join(f'a{number}: int' for number in range(120))}, s0 = 0, "
        + ", ".join(f"s{number + 1} = s{number} + a{number}" for number in range(120)),
    ],
    ids=["factors", "product", "coefficients", "terms"],
)
def test_a_size_that_grows_in_every_step_is_an_error(statics: str) -> None:
    assert codes(block("", f"[{statics}]")) == ["E0307"]


def test_a_concatenation_that_doubles_in_every_step_is_an_error() -> None:
    lines = "\n".join(f"    v{number + 1} = concat(v{number}, v{number})" for number in range(80))
    assert "E0307" in codes(block(f"    v0 = h\n{lines}\n    _w = v80"))


# Points


def test_a_recipe_with_few_points_is_checked_at_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variations.spread, "__defaults__", (20,))
    assert codes(MODEL + recipe("    vary model.d in 1..5, model.steps in 1..4, seed in 1..1000")) == []


def test_a_recipe_with_too_many_points_says_how_many_were_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variations.spread, "__defaults__", (20,))
    diagnostic = only(MODEL + recipe("    vary model.d in 1..1000, model.steps in 1..1000, seed in 1..10"))
    assert (diagnostic.code, diagnostic.span.text) == ("W0202", "model.d")
    assert diagnostic.message == "`trial` has 1_000_000 points, and only 20 of them were checked"


def test_each_value_of_a_short_list_is_checked_among_many_points() -> None:
    reported = codes(MODEL + recipe("    vary model.d in 1..1000, task.order in [forward, backward, sideways]"))
    assert set(reported) == {"E0304", "W0202"}


def test_a_value_of_the_wrong_kind_is_reported_at_any_position() -> None:
    numbers = ", ".join(map(str, range(1, 1000)))
    assert "E0303" in codes(MODEL + recipe(f"    vary model.d in [{numbers}, true, {numbers}]"))


def test_a_value_of_the_wrong_kind_in_a_claim_is_reported() -> None:
    assert codes(MODEL + recipe('    claim test.accuracy = 0.5 at model.d = true from "Doe, 2020"')) == ["E0303"]


def test_a_search_with_too_many_values_says_how_many_were_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variations.spread, "__defaults__", (20,))
    numbers = ", ".join(map(str, range(1, 101)))
    diagnostic = only(MODEL + recipe(f"    search model.d in [{numbers}]"))
    assert diagnostic.code == "W0202"
    assert "100 values to search, and only 20 of them were checked" in diagnostic.message


def test_cells_with_the_same_settings_are_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variations.spread, "__defaults__", (1,))
    rows = "".join(f'    row "{number}" trial\n' for number in range(30))
    metrics = ("test.accuracy", "iid.accuracy", "valid.accuracy", "test.accuracy[9]", "test.accuracy[10]")
    columns = "".join(f'    column "{metric}" {metric}\n' for metric in metrics)
    assert codes(MODEL + recipe("") + f"table t {{\n{rows}{columns}}}\n") == []


def test_a_table_with_too_many_cells_says_how_many_were_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variations.spread, "__defaults__", (20,))
    rows = "".join(f'    row "{number}" trial at model.d = {number}\n' for number in range(1, 11))
    columns = "".join(f'    column "{number}" test.accuracy at model.steps = {number}\n' for number in range(1, 11))
    diagnostic = only(MODEL + recipe("") + f"table t {{\n{rows}{columns}}}\n")
    assert (diagnostic.code, diagnostic.span.text) == ("W0202", "t")
    assert diagnostic.message == "`t` has 100 different cells, and only 20 of them were checked"


def test_every_setting_of_a_large_table_names_a_static() -> None:
    rows = "".join(f'    row "{number}" trial at model.d = {number}\n' for number in range(1, 401))
    columns = '    column "c" test.accuracy\n'
    table = f'table t {{\n{columns}{rows}    row "last" trial at model.wide = 1\n}}\n'
    assert "E0312" in codes(MODEL + recipe("") + table)


def test_points_beyond_the_step_budget_are_left_out_with_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_module, "MOST_STEPS_WITH_POINTS", 2_000)
    diagnostic = only(MODEL + recipe("    vary model.d in 1..200"))
    assert diagnostic.code == "W0202"


def test_all_points_of_fifty_recipes_are_checked() -> None:
    lines = "    vary model.d in [8, 16, 32], model.steps in [1, 2, 3], seed in 1..5"
    assert codes(MODEL + "".join(recipe(lines, f"r{number}") for number in range(50))) == []


@pytest.mark.parametrize("word", ["vary", "search"])
def test_a_static_that_is_varied_twice_is_an_error(word: str) -> None:
    assert codes(MODEL + recipe(f"    {word} model.d in [8, 16], model.d in [8, 16]")) == ["E0306"]


# The page


def test_the_page_of_the_language_lists_every_limit() -> None:
    page = (ROOT / "docs" / "language.md").read_text(encoding="utf-8")
    section = page.partition("## Limits\n")[2].partition("\n## ")[0]
    listed = [
        (code, int(number.replace("_", "")))
        for number, code in re.findall(r"^\| .+ \| ([\d_]+) \| \[(\w+)\]", section, re.MULTILINE)
    ]
    assert listed == [
        ("E0110", LARGEST),
        ("E0113", MOST_WORDS),
        ("E0114", LONGEST_WORD),
        ("E0106", DEEPEST),
        ("E0225", DEEPEST_CALL),
        ("E0226", MOST_USES),
        ("E0227", MOST_WORDS),
        ("E0115", MOST_ERRORS),
        ("W0203", MOST_WARNINGS),
        ("E0228", MOST_STEPS),
        ("E0421", MOST_OPERATIONS),
        ("E0421", MOST_PARAMETERS),
        ("E0308", MOST_STEPS_OF_A_LOOP),
        ("E0421", MOST_LOOP_STEPS),
        ("E0426", LARGEST_SIZE),
        ("E0307", MOST_TERMS),
        ("E0307", MOST_FACTORS),
        ("E0615", MOST_VARIED),
        ("W0202", MOST_POINTS),
        ("W0202", MOST_STEPS_WITH_POINTS),
    ]


def test_a_model_too_large_for_any_machine_is_refused_where_it_becomes_so() -> None:
    text = """
model wide[d = {d}](x: tokens[n]) -> logits[classes] {{
    return embed[8](x) |> mean |> linear[d] |> linear[d] |> linear[classes]
}}
recipe trial {{ task ctl
 model wide
 train adamw[lr = 1e-3, steps = 3] }}
"""
    assert codes(text.format(d=100_000)) == []
    diagnostic = only(text.format(d=2_000_000))
    assert diagnostic.code == "E0421"
    assert "1,000,000,000,000" in diagnostic.message
    assert str(diagnostic.span).endswith(":3:48")
