"""Descriptions of splits: a histogram counts every length, and examples are readable."""

import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from archlang.reports.split_report import SplitReport, histogram, terminal_report
from archlang.tasks.dyck import Dyck
from archlang.tasks.file import File
from archlang.tasks.file_language_model import FileLanguageModel
from archlang.tasks.file_seq2seq import FileSeq2Seq
from archlang.tasks.file_tagging import FileTagging
from archlang.tasks.flipflop import FlipFlop
from archlang.tasks.kit.split import Ragged, Split
from archlang.tasks.kit.task import Task
from archlang.tasks.scan import Scan
from tests.tasks.every import page

Parity = page("parity")
StackManipulation = page("stack_manipulation")


@given(st.lists(st.integers(0, 3_000), max_size=60), st.integers(1, 20))
def test_a_histogram_counts_every_length_once_in_bars_of_equal_width(lengths: list[int], most: int) -> None:
    bars = histogram(np.asarray(lengths, dtype=np.int64), most)
    assert len(bars) <= most
    assert len({bar.high - bar.low for bar in bars}) <= 1
    for bar in bars:
        assert bar.count == sum(bar.low <= length <= bar.high for length in lengths)
    assert sum(bar.count for bar in bars) == len(lengths)


def text(task: Task, split: str) -> str:
    """Returns the description of a split as a terminal shows it."""
    stream = io.StringIO()
    Console(file=stream, width=120).print(
        terminal_report("title", [SplitReport.of(task, split, task.generate(split, 0), 1)])
    )
    return stream.getvalue()


@pytest.mark.parametrize(
    ("task", "split", "expected"),
    [
        (Parity(train_size=5), "train", "answer  even"),
        (Dyck(train_size=5), "train", "{"),
        (FlipFlop(train_size=2, iid_size=2, valid_size=2, test_size=2, length=16), "train", "·"),
        (page("id_sort")(train_size=2), "train", " rows of "),
        (StackManipulation(train_size=2), "train", "answer"),
        (Scan(split="jump", joint=False), "test", "jump"),
    ],
)
def test_each_form_of_item_is_shown(task: Task, split: str, expected: str) -> None:
    assert expected in text(task, split)


def test_a_source_has_its_own_vocabulary() -> None:
    (example,) = SplitReport.of(task := Scan(joint=False), "test", task.generate("test", 0), 1).examples
    assert example.fields["source"].startswith("[B] ")
    assert example.target.startswith("I_")
    assert example.groups["length"] == len(example.target.split()) - 1


@pytest.mark.parametrize(
    ("task_class", "fields", "target"),
    [
        (File, {"x": "very fine"}, "good"),
        (FileTagging, {"x": "very fine"}, "DEGREE ADJECTIVE"),
        (FileLanguageModel, {"x": "[B] very fine"}, "very fine [E]"),
        (FileSeq2Seq, {"source": "[B] very fine [E]", "target": "[B] so good"}, "so good [E]"),
    ],
)
def test_items_of_a_users_file_are_shown_in_its_words(
    task_class: type[Task], fields: dict[str, str], target: str, tmp_path: Path
) -> None:
    path = tmp_path / "mine.tsv"
    path.write_text("text\tlabel\ttags\tsource\ttarget\nvery fine\tgood\tDEGREE ADJECTIVE\tvery fine\tso good\n")
    task = task_class(path=str(path), words=9)  # type: ignore[call-arg] # every one of them has these
    (example,) = SplitReport.of(task, "train", task.generate("train", 0), 1).examples
    assert (example.fields, example.target) == (fields, target)


def test_an_empty_split_is_shown_as_empty() -> None:
    task = Parity(train_size=3)
    empty = task.generate("train", 0).select(np.zeros(0, dtype=np.int64))
    part = SplitReport.of(task, "train", empty, 3)
    assert (part.items, part.bars, part.examples) == (0, (), ())
    Console(file=io.StringIO()).print(terminal_report("title", [part]))


def test_control_characters_of_a_file_are_escaped() -> None:
    class Evil(Parity):  # type: ignore[valid-type, misc] # a class that is made
        vocabulary = ("\x1b[2J", "[bold]", "2", "3")

    split = Split({"x": Ragged.of([[0, 1]])}, np.asarray([1]))
    stream = io.StringIO()
    Console(file=stream, force_terminal=True).print(
        terminal_report("title", [SplitReport.of(Evil(), "train", split, 1)])
    )
    assert "\x1b[2J" not in stream.getvalue()
    assert "[bold]" in stream.getvalue()


def test_a_long_item_is_cut_in_a_terminal_and_whole_in_json() -> None:
    task = FlipFlop(train_size=2, iid_size=2, valid_size=2, test_size=2, length=800)
    (example,) = SplitReport.of(task, "train", task.generate("train", 0), 1).to_json()["examples"]
    assert (len(example["fields"]["x"].split()), len(example["target"].split())) == (800, 800)
    assert " …" in text(task, "train")
