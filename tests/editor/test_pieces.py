"""A text that has changed is parsed piece by piece, with the result of a new parser."""

import random
from collections.abc import Callable, Iterator, Mapping

import pytest

from archlang.diagnostics import Report
from archlang.editor.completion import completions
from archlang.editor.document import Document, Memory
from archlang.editor.formatting import formatted
from archlang.editor.pieces import Pieces
from archlang.names.library import PACKAGE
from archlang.names.resolve import Declaration
from archlang.plan import check as plan_check
from archlang.plan.planner import Planner
from archlang.plan.written_table import WrittenTable
from archlang.source import Source, Span
from archlang.syntax.parser import ParsedItem, TextItem, parse_item, parse_tolerantly
from archlang.syntax.printer import Item, format_program, item_text
from archlang.syntax.tree import Definition, Missing, Program, Recipe
from archlang.syntax.walk import walk
from archlang.types import Type
from benchmarks.editor import texts

SIGNS = ["(", "x", "{", "}", " ", "\n", "norm(", '"', "#", "="]


def spans(program: Program) -> list[tuple[str, int, int]]:
    return [
        (name, value.start, value.end)
        for item in program.items
        for node in walk(item)
        for name, value in vars(node).items()
        if isinstance(value, Span)
    ]


def typed(text: str, changes: int, seed: int) -> Iterator[str]:
    """Yields texts that differ from the last, or from the first, by a few characters."""
    generator = random.Random(seed)
    for _ in range(changes):
        place = generator.randrange(len(text))
        sign = generator.choice(SIGNS)
        changed = text[:place] + sign + text[place:] if generator.random() < 0.6 else text[:place] + text[place + 3 :]
        yield changed
        text = changed if generator.random() < 0.3 else text


@pytest.mark.parametrize("name", ["recipes/gutlb.arch", "blocks/models/panm.arch", "blocks/comparisons.arch"])
def test_a_change_is_parsed_as_the_whole_text(name: str) -> None:
    text = (PACKAGE / name).read_text(encoding="utf-8")
    pieces = Pieces()
    for changed in (text, *typed(text, 10, seed=3)):
        source = Source("p.arch", changed)
        expected, expected_diagnostics = parse_tolerantly(source)
        program, diagnostics = pieces.parse(source)
        assert program.items == expected.items
        if not diagnostics:
            assert format_program(program) == format_program(expected)
        assert spans(program) == spans(expected)
        assert diagnostics == expected_diagnostics


COMMENTED = """# Above.

## A layer.

block a(h: seq[n, d]) -> seq[n, d] {
    return h
}   # beside

# Below.

# Above the next.
block b(h: seq[n, d]) -> seq[n, d] {
    return h
    # At the end.
}

# At the end of the file.

# The last line.
"""


@pytest.mark.parametrize("change", ["block b", "return h\n", "# Below.", "\n## A layer", "# The last line."])
def test_comments_and_empty_lines_stay_after_a_change(change: str) -> None:
    memory = Memory()
    assert formatted(Document("c.arch", COMMENTED, memory=memory)) == COMMENTED
    for text in (COMMENTED.replace(change, "# More.\n" + change, 1), COMMENTED.replace(change, change + " ", 1)):
        program, diagnostics = parse_tolerantly(Source("c.arch", text))
        document = Document("c.arch", text, memory=memory)
        assert [each.documentation for each in document.program.items] == [each.documentation for each in program.items]
        assert formatted(document) == (None if diagnostics else format_program(program))


def test_a_comment_of_an_item_with_a_mistake_is_not_repeated() -> None:
    memory = Memory()
    broken = COMMENTED.replace("block a(h", "block a(h(")
    assert formatted(Document("c.arch", broken, memory=memory)) is None
    assert formatted(Document("c.arch", COMMENTED, memory=memory)) == COMMENTED


LAYER = "## Layer {0}.\nblock layer{0}(h: seq[n, d]) -> seq[n, d] {{\n    a = norm(h)\n    return a + h\n}}\n\n"
TEXT = "".join(map(LAYER.format, range(4))) + "block top(h: seq[n, 8]) -> seq[n, 8] {\n    return layer1(h)\n}\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("block layer0", "# First.\nblock layer0"),
        ("norm(h)", "nrom(h)"),
        ("a = norm(h)", "a = norm("),
        ("return a + h", "return a +"),
        ("block layer1(h: seq[n, d]) -> seq[n, d]", "block layer1(h: seq[n, d], g: seq[n, d]) -> seq[n, d]"),
        ("block layer1", "block renamed"),
        ("block top", "block norm"),
        ("    return a + h\n}", "    return a + h\n"),
        (LAYER.format(1).partition("\n")[2], "block layer1(h: seq[n, d]) -> seq[n, d]\n\n"),
        (LAYER.format(1).partition("\n")[2], "block layer1(\n\n"),
        (LAYER.format(3).partition("\n")[2], "# A comment.\nuse\n\n"),
    ],
)
def test_a_change_is_checked_as_the_whole_text(before: str, after: str) -> None:
    memory = Memory()
    first = Document("m.arch", TEXT, memory=memory)
    assert first.diagnostics == ()
    assert first.types
    for text in (TEXT.replace(before, after, 1), TEXT):
        fresh, document = Document("m.arch", text), Document("m.arch", text, memory=memory)
        assert document.diagnostics == fresh.diagnostics
        assert document.types == fresh.types
        assert [str(each.span) for each in document.diagnostics] == [str(each.span) for each in fresh.diagnostics]


@pytest.mark.parametrize("header", ["block layer1(h: seq[n, d]) -> seq[n, d]", "block layer1(", "block", "recipe r"])
def test_a_mistake_that_the_next_item_shows_ends_with_its_correction(header: str) -> None:
    memory = Memory()
    (mistake, *_) = Document("m.arch", TEXT.replace(LAYER.format(1), f"{header}\n\n"), memory=memory).diagnostics
    assert mistake.code.startswith("E01")
    assert Document("m.arch", TEXT, memory=memory).diagnostics == ()


def recorded_work(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], list[str]]:
    """Returns lists to which the texts that are parsed and the names of the blocks that are checked are appended."""
    parsed: list[str] = []
    checked: list[str] = []
    elaborate = memory.bodies._elaborate

    def check(declaration: Declaration, report: Report) -> Mapping[tuple[int, int], Type]:
        checked.append(declaration.name)
        return elaborate(declaration, report)

    def parse(source: Source, item: TextItem) -> ParsedItem:
        parsed.append(source.text[item.tokens[0].start_pos : item.tokens[-1].end_pos])
        return parse_item(source, item)

    monkeypatch.setattr("archlang.editor.pieces.parse_item", parse)
    monkeypatch.setattr(memory.bodies, "_elaborate", check)
    return parsed, checked


def test_only_what_has_changed_is_parsed_and_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = Memory()
    first = Document("m.arch", TEXT, memory=memory)
    assert (first.diagnostics, bool(first.types)) == ((), True)
    parsed, checked = recorded_work(memory, monkeypatch)
    document = Document("m.arch", TEXT.replace("norm(h)", "relu(h)", 1), memory=memory)
    assert (document.diagnostics, bool(document.types)) == ((), True)
    assert [text.count("block") for text in parsed] == [1]
    assert checked == ["layer0"]


RECIPE = """
recipe {0} {{
    task  ctl
    model {1}
    train adamw[steps = 10]
}}
"""
MODEL = "model {0}[d = 8](x: tokens[n]) -> logits[classes] {{\n    return embed[d](x) |> last |> linear[classes]\n}}\n"
PLANS = (
    "".join(MODEL.format(name) for name in "ab")
    + "".join(RECIPE.format(f"of_{name}", name) for name in "ab")
    + RECIPE.format("claiming", "a").replace("10]", '10]\n    claim test.accuracy = 0.5 from "p"')
    + 'table t {\n    row "A" claiming claims 0.5 from "p"\n    column "Test" test.accuracy\n}\n'
)


@pytest.mark.parametrize(
    ("before", "after", "checked"),
    [
        ("model a[d = 8]", "model a[d = 9]", ["of_a", "claiming", "t"]),
        ("claims 0.5", "claims 0.6", ["claiming", "t"]),
        ("model b\n", "model b[d = 9]\n", ["of_b"]),
        ('column "Test" test.accuracy', 'column "Test" test.acuracy', ["claiming", "t"]),
        ("\nrecipe", "\nblock last(h: vec[d]) -> vec[d] {\n}\n\nrecipe", ["of_a", "of_b", "claiming", "t"]),
        ("## ", "", []),
    ],
)
def test_only_recipes_and_tables_that_name_what_has_changed_are_checked(
    monkeypatch: pytest.MonkeyPatch, before: str, after: str, checked: list[str]
) -> None:
    memory = Memory()
    assert Document("m.arch", PLANS, memory=memory).diagnostics == ()
    names: list[str] = []
    check_recipe = plan_check._check_recipe

    def recipe(make_planner: Callable[[], Planner], points: list[Callable[[], object]]) -> None:
        names.append(make_planner().recipe.name)
        check_recipe(make_planner, points)

    class Written(WrittenTable):
        def check(self) -> bool:
            names.append(self._table.name)
            return super().check()

    text = PLANS.replace(before, after, 1)
    expected = Document("m.arch", text).diagnostics
    monkeypatch.setattr(plan_check, "_check_recipe", recipe)
    monkeypatch.setattr(plan_check, "WrittenTable", Written)
    assert Document("m.arch", text, memory=memory).diagnostics == expected
    assert names == checked


@pytest.mark.parametrize("lines", [200, pytest.param(5_000, marks=pytest.mark.slow)])
def test_a_key_costs_the_work_of_its_block_in_a_text_of_any_length(monkeypatch: pytest.MonkeyPatch, lines: int) -> None:
    text = texts(lines)[f"{lines:,} lines"]
    place = text.index("    return relu(h)", len(text) // 2)
    memory = Memory()
    document = Document("m.arch", text, memory=memory)
    assert document.diagnostics == ()
    assert formatted(document)
    parsed, checked = recorded_work(memory, monkeypatch)
    printed = []

    def print_item(item: Item) -> str:
        printed.append(item)
        return item_text(item)

    monkeypatch.setattr("archlang.editor.printed_items.item_text", print_item)
    keys = "    b = attention[heads = 4](nrom(a)) "
    for typed_keys in range(1, len(keys)):
        before = len(parsed), len(checked), len(printed)
        changed = text[:place] + keys[:typed_keys] + "\n" + text[place:]
        document = Document("m.arch", changed, memory=memory)
        assert document.diagnostics is not None
        assert document.types is not None
        formatted(document)
        assert len(parsed) - before[0] <= 1
        assert len(checked) - before[1] <= 2
        assert len(printed) - before[2] <= 1
    assert max(map(len, parsed)) < 600
    assert "E0202" in [mistake.code for mistake in document.diagnostics]


def test_an_item_with_a_half_written_line_keeps_its_other_lines() -> None:
    memory = Memory()
    assert Document("m.arch", TEXT, memory=memory).diagnostics == ()
    changed = TEXT.replace("    return layer1(h)", "    b = layer2(h)\n    c = layer3(\n    return b")
    document = Document("m.arch", changed, memory=memory)
    (mistake,) = document.diagnostics
    assert mistake.span.text == "("
    place = changed.index("layer2(h)")
    assert str(document.types[place, place + len("layer2(h)")]) == "seq[n, 8]"


@pytest.mark.parametrize(
    "line",
    [
        "repeat 3 {",
        "b = stack 2 {",
        "if true {",
        "}",
        ")",
        "]",
        '"',
        "é = a",
        "repeat 3 { # {",
        "repeat 2 {\n    }\n    }",
    ],
)
def test_a_half_written_line_with_a_bracket_leaves_the_rest_of_its_block(line: str) -> None:
    text = f"block b(h: seq[n, d]) -> seq[n, d] {{\n    a = norm(h)\n    {line}\n    return norm(a)\n}}\n\n{CALLER}"
    document = Document("p.arch", text)
    assert document.diagnostics
    assert [item.name for item in document.program.items if isinstance(item, Definition)] == ["b", "c"]
    place = text.index("return norm(a)") + len("return ")
    assert str(document.types[place, place + len("norm(a)")]) == "seq[n, d]"


@pytest.mark.parametrize("line", ["claim", "vary model.d in", "search", "test model.d ="])
def test_a_half_written_last_line_of_a_recipe_costs_nothing_but_itself(line: str) -> None:
    text = f"recipe r {{\n    task  ctl\n    model m\n    {line}\n}}\n"
    (recipe,) = Document("program.arch", text).program.items
    assert isinstance(recipe, Recipe)
    assert [part.span.text for part in recipe.parts if not isinstance(part, Missing)] == ["task  ctl", "model m"]


def test_a_header_of_several_lines_stays_where_a_line_has_a_mistake() -> None:
    document = Document("p.arch", "block b(\n    h: seq[n, d]) -> seq[n, d] {\n    a = = h\n    return norm(h)\n}\n")
    assert [item.name for item in document.program.items if isinstance(item, Definition)] == ["b"]


def test_a_block_without_its_last_brace_ends_before_the_next_item() -> None:
    document = Document("p.arch", f"block b(h: seq[n, d]) -> seq[n, d] {{\n    return norm(h)\n\n{CALLER}")
    assert [item.name for item in document.program.items if isinstance(item, Definition)] == ["b", "c"]


CALLER = "block c(h: seq[n, d]) -> seq[n, d] {\n    return b(h)\n}\n"


def test_completion_checks_only_the_block_around_it(monkeypatch: pytest.MonkeyPatch) -> None:
    text = texts(200)["200 lines"]
    memory = Memory()
    _, checked = recorded_work(memory, monkeypatch)
    offset = text.index("(a)", text.index("block layer7[")) + 1
    offered = completions(Document("m.arch", text, memory=memory), offset)
    assert next(each.detail for each in offered if each.word == "a") == "seq[n, d]"
    assert checked == ["layer7"]
