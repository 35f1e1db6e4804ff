"""The tasks over a user's own files: their splits, and caching."""

from pathlib import Path

import numpy as np
import pytest

from archlang.tasks.file import File
from archlang.tasks.file_language_model import FileLanguageModel
from archlang.tasks.file_seq2seq import FileSeq2Seq
from archlang.tasks.file_tagging import FileTagging
from archlang.tasks.kit import cache
from archlang.tasks.kit.mistakes import TaskError
from archlang.tasks.kit.split import Ragged
from archlang.tasks.kit.task import Task, group_names, groups, spell

TSV = (
    "text\tlabel\ttags\tsource\ttarget\tsplit\n"
    "a b c\tup\tx y x\tjump twice\tJ J\ttrain\n"
    "c\tdown\ty\twalk\tW\ttrain\n"
    "a d\tup\tx x\tjump walk\tJ W\ttest\n"
)
TASKS = {"file": File, "tagging": FileTagging, "seq2seq": FileSeq2Seq, "language model": FileLanguageModel}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    place = tmp_path / "mine.tsv"
    place.write_text(TSV)
    return place


@pytest.mark.parametrize("task_class", TASKS.values(), ids=TASKS)
def test_splits_are_complete_and_have_the_form_of_the_kind(task_class: type[Task], place: Path) -> None:
    task = task_class(path=str(place), words=6)  # type: ignore[call-arg] # every one of them has these
    assert task.split_names() == ("train", "test")
    for split, count in (("train", 2), ("test", 1)):
        items = task.generate(split, 0)
        assert len(items) == count
        assert items.form is task.kind.form
        assert {len(field) for field in items.inputs.values()} == {count}
        assert all(field.values.max() < len(task.vocabulary) for field in items.inputs.values())
        if isinstance(items.targets, Ragged):
            *_, last = items.inputs.values()
            assert np.array_equal(items.targets.offsets, last.offsets)
        assert items.groups[task.breakdown].shape == (count,)


def test_file_classifies_texts(place: Path) -> None:
    task = File(path=str(place), words=3)
    test = task.generate("test", 0)
    assert (spell(task, test.inputs["x"][0]), np.asarray(test.targets).tolist()) == ("a <unk>", [1])


@pytest.mark.parametrize(
    ("kind", "name", "content", "reason"),
    [
        (
            File,
            "a.jsonl",
            '{"text": "a b", "label": ["x", "y"]}\n',
            "line 1 of .*: it has 2 labels, and a text has one",
        ),
        (FileTagging, "a.tsv", "text\ttags\na b\tx\n", "line 2 of .*: it has 2 words and 1 tag"),
    ],
)
def test_the_numbers_of_labels_and_tags_must_fit(
    kind: type[File | FileTagging], name: str, content: str, reason: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(TaskError, match=reason):
        kind(path=str(tmp_path / name)).generate("train", 0)


def test_file_tagging_tags_words(place: Path) -> None:
    task = FileTagging(path=str(place), words=3)
    assert task.generate("train", 0).targets[0].tolist() == [0, 1, 0]


def test_answers_are_shifted_for_the_decoder(place: Path) -> None:
    task = FileSeq2Seq(path=str(place), words=6)
    test = task.generate("test", 0)
    assert spell(task, test.inputs["source"][0]) == "[B] jump walk [E]"
    assert spell(task, test.inputs["target"][0]) == "[B] J W"
    assert spell(task, test.targets[0]) == "J W [E]"
    assert (task.vocabulary[task.begin], task.vocabulary[task.end]) == ("[B]", "[E]")
    assert test.groups["length"].tolist() == [2]


def test_file_language_model_predicts_the_next_word(place: Path) -> None:
    task = FileLanguageModel(path=str(place), words=6, by="characters")
    train = task.generate("train", 0)
    assert spell(task, train.inputs["x"][0]) == "[B] a   b   c"
    assert spell(task, train.targets[0]) == "a   b   c [E]"


def test_columns_may_have_other_names(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("question\treply\nhow many\ttwo\n")
    task = FileSeq2Seq(path=str(tmp_path / "a.tsv"), given="question", answer="reply", words=4)
    assert spell(task, task.generate("train", 0).targets[0]) == "two [E]"


def test_a_changed_file_is_not_read_from_the_cache(place: Path) -> None:
    def loaded() -> str:
        task = File(path=str(place), words=5)
        items = cache.load("file", {"path": str(place)}, task, "train", 0)
        return spell(task, items.inputs["x"][0])

    assert loaded() == "a b c"
    place.write_text(TSV.replace("a b c", "c b a"))
    assert loaded() == "c b a"


def test_a_word_that_looks_like_a_mark_is_a_word(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("source\ttarget\n[B] c\ta [E] b\n")
    task = FileSeq2Seq(path=str(tmp_path / "a.tsv"), words=9)
    target = task.generate("train", 0).targets
    assert isinstance(target, Ragged)
    assert np.flatnonzero(target.values == task.end).tolist() == [3]


def test_a_text_file_has_a_text_in_each_line_and_no_header(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("to\tbe\n\nor not\n")
    task = FileLanguageModel(path=str(tmp_path / "a.txt"), words=9)
    train = task.generate("train", 0)
    assert [spell(task, train.targets[index]) for index in range(2)] == ["to be [E]", "or not [E]"]


def test_a_share_keeps_equal_texts_together_and_the_split_of_each_row(tmp_path: Path) -> None:
    def splits(count: int) -> dict[str, list[str]]:
        rows = [f"a {number // 2},{number % 2}" for number in range(count)]
        (tmp_path / "a.csv").write_text("\n".join(rows))
        task = File(path=str(tmp_path / "a.csv"), words=999, header=False, valid_share=0.2, test_share=0.3)
        assert task.split_names() == ("train", "valid", "test")
        return {
            split: [spell(task, texts[index]) for index in range(len(texts))]
            for split in task.split_names()
            for texts in [task.generate(split, 0).inputs["x"]]
        }

    few, many = splits(100), splits(1_000)
    assert sum(map(len, many.values())) == 1_000
    for split, share in (("train", 0.5), ("valid", 0.2), ("test", 0.3)):
        assert len(many[split]) == pytest.approx(1_000 * share, rel=0.2)
        assert set(few[split]) <= set(many[split])
    assert not set(many["train"]) & {*many["valid"], *many["test"]}


def test_a_share_and_a_column_split_exclude_each_other(place: Path) -> None:
    with pytest.raises(TaskError, match="has a column `split`, and the recipe names further files or shares"):
        File(path=str(place), words=6, valid_share=0.1).generate("train", 0)


@pytest.mark.parametrize("task_class", TASKS.values(), ids=TASKS)
def test_a_column_of_ones_own_groups_the_results(task_class: type[Task], place: Path) -> None:
    topics = ["topic", "10", "9, or so", "10"]
    place.write_text("\n".join(f"{line}\t{topic}" for line, topic in zip(TSV.splitlines(), topics, strict=True)))
    task = task_class(path=str(place), words=6, group="topic")  # type: ignore[call-arg] # every one of them has these
    assert (task.breakdown, groups(task)[-1]) == ("topic", "topic")
    assert group_names(task)["topic"] == ("10", "9, or so")
    assert [task.generate(split, 0).groups["topic"].tolist() for split in ("train", "test")] == [[0, 1], [0]]
