"""A document knows the diagnostics, names and types of a text that is being written."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from archlang.editor.completion import completions
from archlang.editor.document import Document
from archlang.errors import Diagnostic, Report
from archlang.errors.source import Source
from archlang.plan import check as plan_check
from archlang.plan.checked_bodies import CheckedBodies
from archlang.plan.planner import Planner
from archlang.plan.written_table import WrittenTable
from archlang.resolve.resolve import Declaration
from archlang.syntax.parser import parse_tolerantly
from archlang.syntax.tree import Definition, Missing, Program, Recipe
from archlang.types import Type
from benchmarks.editor import texts

HALF_WRITTEN = """block b(h: seq[n, d]) -> seq[n, d] {
    a = norm(h)
    c = feedforward[
    return a + h
}
"""


def test_a_half_written_line_costs_only_itself() -> None:
    document = Document("half.arch", HALF_WRITTEN)
    assert [each.span.line for each in document.diagnostics] == [3]
    types = {HALF_WRITTEN[start:end]: str(kind) for (start, end), kind in document.types.items()}
    assert types["a"] == "seq[n, d]"
    assert types["a + h"] == "seq[n, d]"


def test_a_line_with_a_type_error_leaves_the_types_of_the_others() -> None:
    document = Document(
        "m.arch", "block b(h: seq[n, 4]) -> seq[n, 4] {\n    a = norm(h)\n    return a + linear[5](h)\n}\n"
    )
    assert [each.code for each in document.diagnostics] == ["E0406"]
    assert str(document.types[document.text.index("a ="), document.text.index("a =") + 1]) == "seq[n, 4]"


def test_the_unsaved_text_of_a_used_file_counts(tmp_path: Path) -> None:
    used = tmp_path / "used.arch"
    used.write_text("block old(h: seq[n, d]) -> seq[n, d] { return h }\n", encoding="utf-8")
    text = 'use "./used.arch"\n\nblock b(h: seq[n, d]) -> seq[n, d] { return new(h) }\n'
    path = str(tmp_path / "b.arch")
    assert [each.code for each in Document(path, text).diagnostics] == ["E0202"]
    unsaved = {str(used): "block new(h: seq[n, d]) -> seq[n, d] { return h }\n"}
    assert Document(path, text, unsaved).diagnostics == ()


def test_a_used_file_is_parsed_again_only_if_its_text_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []

    def parse(source: Source) -> tuple[Program, tuple[Diagnostic, ...]]:
        parsed.append(source.text)
        return parse_tolerantly(source)

    monkeypatch.setattr("archlang.editor.document.parse_tolerantly", parse)
    used = tmp_path / "used.arch"
    text = 'use "./used.arch"\n\nblock b(h: seq[n, d]) -> seq[n, d] {\n    return a(h)\n}\n'
    path = str(tmp_path / "b.arch")
    for name, codes in (("a", []), ("c", ["E0202"]), ("a", [])):
        used.write_text(f"block {name}(h: seq[n, d]) -> seq[n, d] {{ return h }}\n", encoding="utf-8")
        for line in ("", "# A comment.\n"):
            assert [each.code for each in Document(path, text + line).diagnostics] == codes
        assert Document(path, text + "block half(").program.items
    assert sum(text.startswith("block") for text in parsed) == 2


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
    bodies = CheckedBodies()
    first = Document("m.arch", TEXT, bodies=bodies)
    assert first.diagnostics == ()
    assert first.types
    for text in (TEXT.replace(before, after, 1), TEXT):
        fresh, document = Document("m.arch", text), Document("m.arch", text, bodies=bodies)
        assert document.diagnostics == fresh.diagnostics
        assert document.types == fresh.types
        assert [str(each.span) for each in document.diagnostics] == [str(each.span) for each in fresh.diagnostics]


@pytest.mark.parametrize("header", ["block layer1(h: seq[n, d]) -> seq[n, d]", "block layer1(", "block", "recipe r"])
def test_a_mistake_that_the_next_item_shows_ends_with_its_correction(header: str) -> None:
    bodies = CheckedBodies()
    (mistake, *_) = Document("m.arch", TEXT.replace(LAYER.format(1), f"{header}\n\n"), bodies=bodies).diagnostics
    assert mistake.code.startswith("E01")
    assert Document("m.arch", TEXT, bodies=bodies).diagnostics == ()


def recorded_checks(bodies: CheckedBodies, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Returns a list to which the names of the blocks that are checked are appended."""
    checked: list[str] = []
    elaborate = bodies._elaborate

    def check(declaration: Declaration, report: Report) -> Mapping[tuple[int, int], Type]:
        checked.append(declaration.name)
        return elaborate(declaration, report)

    monkeypatch.setattr(bodies, "_elaborate", check)
    return checked


def test_only_what_has_changed_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    bodies = CheckedBodies()
    first = Document("m.arch", TEXT, bodies=bodies)
    assert (first.diagnostics, bool(first.types)) == ((), True)
    checked = recorded_checks(bodies, monkeypatch)
    document = Document("m.arch", TEXT.replace("norm(h)", "relu(h)", 1), bodies=bodies)
    assert (document.diagnostics, bool(document.types)) == ((), True)
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
    bodies = CheckedBodies()
    assert Document("m.arch", PLANS, bodies=bodies).diagnostics == ()
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
    assert Document("m.arch", text, bodies=bodies).diagnostics == expected
    assert names == checked


def test_a_key_costs_the_check_of_its_block(monkeypatch: pytest.MonkeyPatch) -> None:
    text = texts(200)["200 lines"]
    place = text.index("    return relu(h)", len(text) // 2)
    bodies = CheckedBodies()
    assert Document("m.arch", text, bodies=bodies).diagnostics == ()
    checked = recorded_checks(bodies, monkeypatch)
    keys = "    b = attention[heads = 4](nrom(a)) "
    for typed_keys in range(1, len(keys)):
        before = len(checked)
        changed = text[:place] + keys[:typed_keys] + "\n" + text[place:]
        document = Document("m.arch", changed, bodies=bodies)
        assert document.diagnostics is not None
        assert document.types is not None
        assert len(checked) - before <= 2
    assert "E0202" in [mistake.code for mistake in document.diagnostics]


def test_an_item_with_a_half_written_line_keeps_its_other_lines() -> None:
    bodies = CheckedBodies()
    assert Document("m.arch", TEXT, bodies=bodies).diagnostics == ()
    changed = TEXT.replace("    return layer1(h)", "    b = layer2(h)\n    c = layer3(\n    return b")
    document = Document("m.arch", changed, bodies=bodies)
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
    bodies = CheckedBodies()
    checked = recorded_checks(bodies, monkeypatch)
    offset = text.index("(a)", text.index("block layer7[")) + 1
    offered = completions(Document("m.arch", text, bodies=bodies), offset)
    assert next(each.detail for each in offered if each.word == "a") == "seq[n, d]"
    assert checked == ["layer7"]
