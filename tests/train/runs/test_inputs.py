"""The tokens of typed texts."""

import csv
import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from archlang.tasks.ctl import Ctl
from archlang.tasks.kit.task import Task
from archlang.train.runs.inputs import FieldFormat
from tests.tasks.every import NAMES, build, page
from tests.tasks.test_file_puzzles import MAZE, PUZZLE, SOLUTION, SOLVED

Copy = page("copy")

# Words that look like tokens of the tasks, that consist of other words, or that are unknown.
WORDS = ("the", "a", "b", "c", "dc", "ab", "d", ".", "[E]", "[B]", "<unk>", "<unused>0", "1", "ü")


def sentence(rng: random.Random, count: int) -> str:
    """Returns a text that begins and ends as all others do."""
    return " ".join(("the", *rng.choices(WORDS, k=count), "."))


def rows(name: str, rng: random.Random) -> list[dict[str, str]]:
    if name == "file_maze":
        return [{"question": MAZE, "answer": SOLVED}] * 2
    if name == "file_sudoku":
        puzzles = PUZZLE, PUZZLE.replace(".", "0")
        return [{"question": puzzle, "answer": SOLUTION, "rating": "1"} for puzzle in puzzles]
    counts = [rng.randrange(5) for _ in range(12)]
    texts = [sentence(rng, count) for count in counts]
    # The only item of valid has a word that train has not.
    return [
        {
            "text": text, "label": "xy"[index % 2], "tags": " ".join("xy"[index % 2] for _ in text.split()),
            "source": text, "target": sentence(rng, index), "split": "valid" if index == 11 else "train",
        }
        for index, text in enumerate([*texts[:11], f"{texts[11]} zz"])
    ]  # fmt: skip


def as_csv(path: Path, table: list[dict[str, str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, table[0].keys())
        writer.writeheader()
        writer.writerows(table)


def as_jsonl(path: Path, table: list[dict[str, str]]) -> None:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in table), encoding="utf-8")


@pytest.mark.parametrize("write", [as_csv, as_jsonl])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("file") and name != "file_images"])
def test_the_typed_text_of_an_item_has_its_tokens(
    name: str, seed: int, write: Callable[[Path, list[dict[str, str]]], None], tmp_path: Path
) -> None:
    rng = random.Random(seed)
    table, path = rows(name, rng), tmp_path / f"a.{write.__name__.removeprefix('as_')}"
    write(path, table)
    statics: Mapping[str, object] = {"train_size": 2, "valid_size": 0, "shuffles": False if name == "file_maze" else 0}
    if "question" not in table[0]:
        by = rng.choice(["words", "characters"]) if name != "file_tagging" else "words"
        statics = {"words": rng.choice([4, 8, 40]), "by": by}
    task = build(name, path=str(path), **statics)
    typed = 0
    for split in task.split_names():
        own = [row for row in table if row.get("split", split) == split]
        items = task.generate(split, 0)
        for field, ragged in items.inputs.items():
            field_format = FieldFormat.of(task, field, ragged)
            texts = {"x": "text", "source": "source", "target": "target"}
            tokens = [ragged[index].tolist() for index in range(len(ragged))]
            expected = [field_format.encode(row.get("question") or row[texts[field]]).tolist() for row in own]
            # The rows of puzzles are in a random order.
            assert sorted(tokens) == sorted(expected) if "question" in table[0] else tokens == expected
            typed += len(expected)
    assert typed >= len(table)


def field(task: Task, name: str, split: str = "valid") -> FieldFormat:
    return FieldFormat.of(task, name, task.generate(split, 0).inputs[name])


def test_the_marks_that_a_task_declares_are_added_once() -> None:
    x = field(Ctl(), "x", "iid")
    for text in ("100 a b", "[B] 100 a b", "[B] 100 a b [E]"):
        assert x.spell(x.encode(text)) == ("[B]", "100", "a", "b", "[E]")
    plain = field(Ctl(begin_end=False), "x", "iid")
    assert plain.spell(plain.encode("100 a b")) == ("100", "a", "b")


def test_the_marks_of_a_field_of_numbers_are_zeros() -> None:
    ids = field(page("id_sort")(train_size=5, valid_size=5, test_size=5), "id")
    row = [1] * 8
    assert ids.encode([row]).tolist() == [[0] * 8, row, [0] * 8]


def test_what_items_have_in_common_is_no_mark() -> None:
    task = Copy(symbols=1, train_size=5, valid_size=5, test_size=5)
    target = field(task, "target")
    assert target.spell(target.encode("0 0")) == ("[B]", "0", "0")
