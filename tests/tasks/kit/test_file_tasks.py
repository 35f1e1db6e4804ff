"""The vocabulary and the labels of tasks over a user's own files."""

from pathlib import Path

import pytest

from archlang.tasks.file import File
from archlang.tasks.file_language_model import FileLanguageModel
from archlang.tasks.kit.mistakes import TaskError


def write(tmp_path: Path, text: str) -> str:
    path = tmp_path / "a.tsv"
    path.write_text(text)
    return str(path)


def test_the_vocabulary_is_that_of_train_and_has_the_size_of_the_static(tmp_path: Path) -> None:
    path = write(tmp_path, "text\tlabel\tsplit\nb a b\tx\ttrain\nc\tx\ttest\n")
    assert FileLanguageModel(path=path, words=3).vocabulary == ("b", "a", "<unused>0", "<unk>", "[E]", "[B]")
    task = File(path=path, words=1)
    assert task.vocabulary == ("b", "<unk>")
    assert task.lexicon.encode([("c", "b", "a")])[0].tolist() == [1, 0, 1]


def test_labels_are_ordered_as_numbers_or_alphabetically(tmp_path: Path) -> None:
    path = write(tmp_path, "text\tlabel\na\t10\nb\t9\n")
    assert File(path=path).class_names == ("9", "10")
    with pytest.raises(TaskError, match=r"labels = 2 is too small .* 3 different labels: write labels = 3"):
        _ = File(path=write(tmp_path, "text\tlabel\na\t1\nb\t2\nc\t3\n")).class_names
    words = write(tmp_path, "text\tlabel\na\tvery good\nb\tbad\n")
    assert File(path=words).class_names == ("bad", "very good")


def test_the_error_for_a_label_that_train_lacks_names_the_line(tmp_path: Path) -> None:
    path = write(tmp_path, "text\tlabel\tsplit\na\tx\ttrain\nb\ty\ttest\n")
    with pytest.raises(TaskError, match=f"line 3 of {path}: the label `.*` is none of those of training: "):
        File(path=path).generate("test", 0)
