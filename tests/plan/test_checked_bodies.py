"""What is kept of earlier texts changes no diagnostic: the same text has the same ones in a new process."""

import random
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from archlang.editor.document import Document
from archlang.elaborate import calls
from archlang.errors import Diagnostic
from archlang.errors.source import Span
from archlang.plan.checked_bodies import CheckedBodies
from archlang.resolve.library import BLOCKS, PACKAGE
from archlang.resolve.shipped import recipe_files
from tests.semantics.generator import program
from tests.semantics.mutations import mutated

WORD = re.compile(r"[A-Za-z_]\w*")
NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?")
NUMBERS = ("0", "1", "2", "3", "5", "8", "64", "0.5", "1.0", "-1", "n")
# Longer programs take longer, and their mistakes are the same.
LARGEST = 6_000


def facts(diagnostics: tuple[Diagnostic, ...]) -> list[tuple[object, ...]]:
    """Returns all that a user sees of diagnostics."""

    def place(span: Span) -> tuple[str, int, int]:
        return span.source.path, span.start, span.end

    return [
        (
            *(each.code, each.message, each.remedy, place(each.span), each.label),
            *((label.text, place(label.span)) for label in each.labels),
            *((edit.text, place(edit.span)) for edit in each.edits),
        )
        for each in diagnostics
    ]


@contextmanager
def new_process() -> Iterator[None]:
    """Inside, no call is known from elsewhere."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calls, "_key_of_call", lambda *arguments: None)
        yield


def assert_as_in_a_new_process(path: str, text: str, bodies: CheckedBodies) -> None:
    kept = facts(Document(path, text, bodies=bodies).diagnostics)
    with new_process():
        assert kept == facts(Document(path, text).diagnostics), text


def changed(text: str, chance: random.Random) -> str:
    """Returns a program with a word, a number or a line in another place."""
    words, numbers, lines = list(WORD.finditer(text)), list(NUMBER.finditer(text)), text.split("\n")
    line = chance.randrange(len(lines))
    match chance.randrange(5 if numbers else 3):
        case 0:
            del lines[line]
        case 1:
            lines.insert(chance.randrange(len(lines)), lines[line])
        case 2:
            place, word = chance.choice(words), chance.choice(words)[0]
            return text[: place.start()] + word + text[place.end() :]
        case _:
            place = chance.choice(numbers)
            return text[: place.start()] + chance.choice(NUMBERS) + text[place.end() :]
    return "\n".join(lines)


def assert_changes_keep_no_mistake(file: Path, seed: int, changes: int) -> None:
    """Changes a shipped program again and again, sometimes back to what it was."""
    first, chance, bodies = file.read_text(encoding="utf-8"), random.Random(seed), CheckedBodies()
    text = first
    assert_as_in_a_new_process(str(file), text, bodies)
    for _ in range(changes):
        text = first if chance.random() < 0.3 else changed(chance.choice((first, text)), chance)
        document = Document(str(file), text, bodies=bodies)
        assert_as_in_a_new_process(str(file), text, bodies)
        if chance.random() < 0.8:
            assert document.types is not None  # forgets what is in no text


FILES = sorted(file for file in (*recipe_files().values(), *BLOCKS.rglob("*.arch")) if file.stat().st_size < LARGEST)


@pytest.mark.parametrize("seed", range(20))
def test_a_changed_program_has_the_diagnostics_of_a_new_process(seed: int) -> None:
    assert_changes_keep_no_mistake(random.Random(seed).choice(FILES), seed, changes=4)


@pytest.mark.slow
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.relative_to(PACKAGE).as_posix())
def test_each_program_changed_many_times_has_the_diagnostics_of_a_new_process(file: Path) -> None:
    for seed in range(5):
        assert_changes_keep_no_mistake(file, seed, changes=12)


@pytest.mark.parametrize("first", range(0, 30, 10))
def test_random_programs_with_mistakes_have_the_diagnostics_of_a_new_process(first: int) -> None:
    bodies = CheckedBodies()
    for seed in range(first, first + 10):
        text, chance = program(seed), random.Random(seed)
        for _ in range(3):
            assert_as_in_a_new_process("random.arch", text, bodies)
            text = mutated(text, chance)


BLOCK = "block a(h: seq[n, d]) -> seq[n, {0}] {{\n    return linear[{0}](h)\n}}\n"
USER = 'use "./used.arch"\n\nblock b(h: seq[n, d]) -> seq[n, 4] {\n    return a(h)\n}\n'
MODEL = "model m[d = 8](x: tokens[n]) -> logits[classes] {\n    return embed[d](x) |> last |> linear[classes]\n}\n"
RECIPE = "recipe r {\n    task  ctl\n    model m\n    train adamw[steps = 10]\n}\n"
TABLE = 'table t {\n    row    "A" r\n    column "Test" test.accuracy\n}\n'
TABLES = 'use "./models.arch"\n\n' + RECIPE + "\n" + TABLE
AVERAGE = 'use "./used.arch"\n\ntable u from "p" {\n    row    "A" claims 0.5\n    column "Mean" average of t\n}\n'


@pytest.mark.parametrize(
    ("text", "used", "changed_used"),
    [
        (USER, BLOCK.format(4), BLOCK.format(5)),
        (AVERAGE, TABLES, TABLES.replace("row", "rows")),
        (AVERAGE, TABLES, TABLES.replace("table t", "table s")),
    ],
)
def test_the_text_of_a_used_file_counts(tmp_path: Path, text: str, used: str, changed_used: str) -> None:
    (tmp_path / "models.arch").write_text(MODEL, encoding="utf-8")
    assert_a_used_file_counts(tmp_path, text, used, changed_used)


def test_the_text_of_a_used_file_beside_the_shipped_programs_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("archlang.resolve.library.PACKAGE", tmp_path)
    assert_a_used_file_counts(tmp_path, USER, BLOCK.format(4), BLOCK.format(5))


def assert_a_used_file_counts(folder: Path, text: str, used: str, changed_used: str) -> None:
    bodies, path = CheckedBodies(), str(folder / "user.arch")
    for used_text, is_sound in ((used, True), (changed_used, False), (used, True)):
        (folder / "used.arch").write_text(used_text, encoding="utf-8")
        assert_as_in_a_new_process(path, text, bodies)
        assert (Document(path, text, bodies=bodies).diagnostics == ()) is is_sound


def test_what_is_not_reported_beside_an_unread_condition_is_reported_without_it() -> None:
    bodies = CheckedBodies()
    for condition in ("d ==", "true"):
        for call in ("attention[heads = 3](h)", "linear[0](h)", "feedforward[0](h)"):
            body = f"    y = h\n    if {condition} {{ z = {call} }}\n    return y\n"
            text = f"model m(h: seq[n, 8]) -> seq[n, 8] {{\n{body}}}\n"
            assert_as_in_a_new_process("m.arch", text, bodies)
            assert Document("m.arch", text).diagnostics
