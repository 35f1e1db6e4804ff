"""A document knows the diagnostics, names and types of a text that is being written."""

import random
from dataclasses import astuple
from pathlib import Path

import pytest

from archlang.editor.completion import completions
from archlang.editor.document import Document
from archlang.editor.hover import hints
from archlang.editor.outline import folds
from archlang.editor.semantic_tokens import semantic_tokens
from archlang.elaborate.context import Observe
from archlang.errors import Report, Source
from archlang.errors.effort import Memo, forget
from archlang.plan.check import check_text, elaborate_alone
from archlang.plan.planner import Planner
from archlang.resolve.library import BLOCKS, recipe_files
from archlang.resolve.resolve import Declaration
from archlang.syntax.parser import ParsedPart, parse_part, parse_tolerantly
from archlang.syntax.tree import Definition, Recipe
from archlang.types import Type
from benchmarks.editor import texts
from tests.sampling import one_in

HALF_WRITTEN = """block b(h: seq[n, d]) -> seq[n, d] {
    a = norm(h)
    c = feedforward[
    return a + h
}
"""


def _types(document: Document) -> dict[tuple[int, int], Type]:
    return {place: kind for item in document.program.items for place, kind in document.types_of(item).items()}


def test_a_half_written_line_costs_only_itself() -> None:
    document = Document("half.arch", HALF_WRITTEN)
    assert [each.span.line for each in document.diagnostics] == [3]
    types = {HALF_WRITTEN[start:end]: str(kind) for (start, end), kind in _types(document).items()}
    assert types["a"] == "seq[n, d]"
    assert types["a + h"] == "seq[n, d]"


def test_a_line_with_a_type_error_leaves_the_types_of_the_others() -> None:
    document = Document(
        "m.arch", "block b(h: seq[n, 4]) -> seq[n, 4] {\n    a = norm(h)\n    return a + linear[5](h)\n}\n"
    )
    assert [each.code for each in document.diagnostics] == ["E0406"]
    assert str(_types(document)[document.text.index("a ="), document.text.index("a =") + 1]) == "seq[n, 4]"


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

    def parse(source: Source, start: int, end: int) -> ParsedPart:
        parsed.append(source.text[start:end])
        return parse_part(source, start, end)

    forget()
    monkeypatch.setattr("archlang.editor.document.parse_part", parse)
    used = tmp_path / "used.arch"
    text = 'use "./used.arch"\n\nblock b(h: seq[n, d]) -> seq[n, d] {\n    return a(h)\n}\n'
    path = str(tmp_path / "b.arch")
    for name, codes in (("a", []), ("c", ["E0202"]), ("a", [])):
        used.write_text(f"block {name}(h: seq[n, d]) -> seq[n, d] {{ return h }}\n", encoding="utf-8")
        for line in ("", "# A comment.\n"):
            assert [each.code for each in Document(path, text + line).diagnostics] == codes
        assert Document(path, text + "block half(").program.items
    assert sum(text.startswith(("block a", "block c")) for text in parsed) == 2


LAYER = "block layer{0}(h: seq[n, d]) -> seq[n, d] {{\n    a = norm(h)\n    return a + h\n}}\n\n"


def test_an_item_with_a_half_written_line_keeps_its_other_lines() -> None:
    header = "block top(h: seq[n, 8]) -> seq[n, 8] {\n    b = layer2(h)\n"
    text = LAYER.format(2) + header + "    c = layer3(\n    return b\n}\n"
    document = Document("m.arch", text)
    (mistake,) = document.diagnostics
    assert mistake.span.text == "("
    place = text.index("layer2(h)")
    assert str(_types(document)[place, place + len("layer2(h)")]) == "seq[n, 8]"


@pytest.mark.parametrize(
    "line",
    [
        "repeat 3 {", "b = stack 2 {", "if true {", "}", ")", "]", '"', "é = a", "repeat 3 { # {",
        "repeat 2 {\n    }\n    }",
    ],
)  # fmt: skip
def test_a_half_written_line_with_a_bracket_leaves_the_rest_of_its_block(line: str) -> None:
    text = f"block b(h: seq[n, d]) -> seq[n, d] {{\n    a = norm(h)\n    {line}\n    return norm(a)\n}}\n\n{CALLER}"
    document = Document("p.arch", text)
    assert document.diagnostics
    assert [item.name for item in document.program.items if isinstance(item, Definition)] == ["b", "c"]
    place = text.index("return norm(a)") + len("return ")
    assert str(_types(document)[place, place + len("norm(a)")]) == "seq[n, d]"


@pytest.mark.parametrize("line", ["claim", "vary model.d in", "search", "test model.d ="])
def test_a_half_written_last_line_of_a_recipe_costs_nothing_but_itself(line: str) -> None:
    text = f"recipe r {{\n    task  ctl\n    model m\n    {line}\n}}\n"
    (recipe,) = Document("program.arch", text).program.items
    assert isinstance(recipe, Recipe)
    assert [part.span.text for part in recipe.parts] == ["task  ctl", "model m"]


def test_a_header_of_several_lines_stays_where_a_line_has_a_mistake() -> None:
    document = Document("p.arch", "block b(\n    h: seq[n, d]) -> seq[n, d] {\n    a = = h\n    return norm(h)\n}\n")
    assert [item.name for item in document.program.items if isinstance(item, Definition)] == ["b"]


def test_a_block_without_its_last_brace_ends_before_the_next_item() -> None:
    document = Document("p.arch", f"block b(h: seq[n, d]) -> seq[n, d] {{\n    return norm(h)\n\n{CALLER}")
    assert [item.name for item in document.program.items if isinstance(item, Definition)] == ["b", "c"]


CALLER = "block c(h: seq[n, d]) -> seq[n, d] {\n    return b(h)\n}\n"


def test_completion_elaborates_only_the_block_around_it(monkeypatch: pytest.MonkeyPatch) -> None:
    text = texts(200)["200 lines"]
    elaborated: list[str] = []

    def record(declaration: Declaration, report: Report, observe: Observe) -> None:
        elaborated.append(declaration.name)
        elaborate_alone(declaration, report, observe)

    monkeypatch.setattr("archlang.editor.document.elaborate_alone", record)
    offset = text.index("(a)", text.index("block layer7[")) + 1
    offered = completions(Document("m.arch", text), offset)
    assert next(each.detail for each in offered if each.word == "a") == "seq[n, d]"
    assert elaborated == ["layer7"]


_PROGRAMS = sorted(
    (path.read_text(encoding="utf-8") for path in (*BLOCKS.rglob("*.arch"), *recipe_files().values())), key=len
)
_INSERTED = ("}", "{", "(", '"', "#", "\n", "\n}\n\nblock new(h: seq[n, d]) -> seq[n, d] {\n", "\n}\n\nmodel m[", "x")


def _changed(text: str, dice: random.Random) -> str:
    start, lines = dice.randrange(len(text)), text.splitlines(keepends=True)
    place, first = dice.randrange(len(lines)), dice.randrange(len(lines))
    match dice.randrange(4):
        case 0:
            return text[:start] + text[start + dice.randint(1, 30) :]
        case 1:
            return text[:start] + dice.choice(_INSERTED) + text[start:]
        case 2:
            return "".join([*lines[:place], *lines[place + dice.randint(1, 3) :]])
    return "".join([*lines[:place], *lines[first : first + dice.randint(1, 15)], *lines[place:]])


@pytest.mark.parametrize("seed", one_in(2, range(12)))
def test_a_changed_text_has_the_tree_and_the_answers_of_a_new_one(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    dice = random.Random(seed)
    text = original = "".join(dice.choices(_PROGRAMS[:-40], k=2))
    for _ in range(3):
        document = Document("p.arch", text)
        answers = document.diagnostics, document.formatted, semantic_tokens(document), folds(document), hints(document)
        with monkeypatch.context() as context:
            context.setattr("archlang.errors.effort._memo", Memo[object]())
            context.setattr("archlang.errors.effort._graphs", Memo[object]())
            new = Document("p.arch", text)
            assert answers == (
                check_text(text, "p.arch"), new.formatted, semantic_tokens(new), folds(new), hints(new)
            )  # fmt: skip
        assert astuple(document.program) == astuple(parse_tolerantly(document.source)[0])
        text = _changed(text if dice.random() < 0.5 else original, dice)


def test_a_change_parses_and_elaborates_only_what_depends_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    text = LAYER.format(1) + LAYER.format(2).replace("norm", "layer1") + LAYER.format(3)
    assert Document("p.arch", text).diagnostics == ()
    elaborated: list[str] = []

    def record(declaration: Declaration, report: Report) -> None:
        elaborated.append(declaration.name)
        elaborate_alone(declaration, report)

    monkeypatch.setattr("archlang.plan.check.elaborate_alone", record)
    assert Document("p.arch", text.replace("norm(h)", "norm(h + h)", 1)).diagnostics == ()
    assert elaborated == ["layer1", "layer2"]


def test_a_change_plans_only_the_recipes_that_depend_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    planned: list[str] = []

    def record(planner: Planner) -> None:
        planned.append(planner.recipe.name)
        check_planner(planner)

    check_planner = Planner.check
    monkeypatch.setattr(Planner, "check", record)
    model = "model m(x: tokens[n]) -> logits[classes] {\n    return embed[8](x) |> last |> linear[classes]\n}\n"
    recipe = "recipe {0} {{\n    task ctl\n    model m\n    train adamw[steps = 3]\n}}\n\n"
    text = model + recipe.format("first") + recipe.format("second") + "recipe third from second {}\n"
    forget()
    assert Document("p.arch", text).diagnostics == ()
    assert planned == ["first", "second", "third"]
    assert Document("p.arch", text.replace("steps = 3", "steps = 4", 1)).diagnostics == ()
    assert planned[3:] == ["first"]
    assert Document("p.arch", "# Three recipes.\n" + text.replace("embed[8]", "embed[16]")).diagnostics == ()
    assert planned[4:] == ["first", "second", "third"]
