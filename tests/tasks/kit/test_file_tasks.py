"""The vocabulary and the labels of tasks over a user's own files, and that their texts are read once, in pieces."""

import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from archlang.disk.cache_folder import cache_folder
from archlang.tasks.file import File
from archlang.tasks.file_language_model import FileLanguageModel
from archlang.tasks.file_seq2seq import FileSeq2Seq
from archlang.tasks.file_tagging import FileTagging
from archlang.tasks.kit import cache, user_files
from archlang.tasks.kit.mistakes import CacheWarning, TaskError
from archlang.tasks.kit.split import digest
from archlang.tasks.kit.task import spell


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


COLUMNS = ("text", "label", "tags", "target", "topic", "split")


def random_rows(count: int) -> Iterator[tuple[str, ...]]:
    draw = random.Random(7)
    for _ in range(count):
        words = [f"w{min(int(draw.expovariate(0.1)), 60)}" for _ in range(draw.randint(1, 9))]
        tags = " ".join(draw.choice("XYZ") for _ in words)
        label, back = draw.choice(["up", "down", "10"]), " ".join(words[::-1])
        split = draw.choice(["a b", "c", "ü"]), draw.choice(["train", "train", "valid", "test"])
        yield (" ".join(words), label, tags, back, *split)


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    """A file without and with a column `split`, one with fewer rows, and one of texts."""
    rows = list(random_rows(300))
    contents = {
        "plain.tsv": [row[:5] for row in (COLUMNS, *rows)],
        "column.tsv": [COLUMNS, *rows],
        "other.tsv": [row[:5] for row in (COLUMNS, *rows[:40])],
        "lines.txt": [row[:1] for row in rows],
    }
    for name, lines in contents.items():
        (tmp_path / name).write_text("".join("\t".join(line) + "\n" for line in lines))
    return {name.partition(".")[0]: str(tmp_path / name) for name in contents}


def cases(files: dict[str, str]) -> dict[str, Any]:  # Any: a class that is both a `Task` and a `ShippedTask`
    plain, column, other = files["plain"], files["column"], files["other"]
    return {
        "file": File(path=plain, words=20, labels=3, valid_share=0.2, test_share=0.1),
        "file by topic": File(path=column, words=300, labels=3, group="topic"),
        "tagging": FileTagging(path=plain, words=20, labels=3, test=other, group="label"),
        "seq2seq": FileSeq2Seq(path=column, given="text", answer="target", words=20, by="characters"),
        "one column": FileSeq2Seq(path=column, given="text", answer="text", words=20, group="text"),
        "language model": FileLanguageModel(path=files["lines"], words=20, valid_share=0.3),
        "many words": FileLanguageModel(path=plain, words=500, valid=other),
    }


# What archlang 0.16 made of these files, which it held as Python objects. Run folders have recorded such digests.
RECORDED = {
    "file": {"train": "ed0f8473ec6914b1", "valid": "3ef6575cfd0078b4", "test": "5fcd4da544595b45"},
    "file by topic": {"train": "1fc5f3da61ee5b5a", "valid": "7c3f2c76033868d0", "test": "46542bfcddac8dbb"},
    "tagging": {"train": "f238dafdbd991585", "test": "439ae65302741d46"},
    "seq2seq": {"train": "9af31cbc8cc17392", "valid": "cfbcb3fb7573ae6d", "test": "43cf05af6167b337"},
    "one column": {"train": "a2edc0dc17394320", "valid": "9c50e1ec8b44af7a", "test": "909e1c1d8a1fcc18"},
    "language model": {"train": "20dfd15b56e77207", "valid": "f365ccc4e85b3eef"},
    "many words": {"train": "c0fbca78329299f7", "valid": "4175f7518a39bdaa"},
}


@pytest.mark.parametrize("name", RECORDED)
@pytest.mark.parametrize("sizes", [(1, 1), (7, 50), (1 << 8, 1 << 21)])
def test_splits_are_those_of_earlier_versions_whatever_the_size_of_a_piece(
    name: str, sizes: tuple[int, int], files: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    user_files._read.cache_clear()
    monkeypatch.setattr(user_files, "_ROWS", sizes[0])
    monkeypatch.setattr(user_files, "_WORDS", sizes[1])
    task = cases(files)[name]
    for items in (task.generate, lambda split, seed: cache.load(task.name, {"case": name}, task, split, seed)):
        assert {split: digest(items(split, 0))[:16] for split in task.split_names()} == RECORDED[name]


def test_items_equal_those_of_texts_that_are_held_as_lists_of_words(files: dict[str, str]) -> None:
    texts = [line.split() for line in Path(files["lines"]).read_text().splitlines()]
    counts = Counter(word for text in texts for word in text)
    words = sorted(counts, key=lambda word: (-counts[word], word))[:30]
    task = FileLanguageModel(path=files["lines"], words=30)
    train = task.generate("train", 0)
    assert task.vocabulary == (*words, "<unk>", "[E]", "[B]")
    expected = [" ".join(word if word in words else "<unk>" for word in text) for text in texts]
    assert [spell(task, train.targets[row]) for row in range(300)] == [f"{text} [E]" for text in expected]
    assert [spell(task, train.inputs["x"][row]) for row in range(300)] == [f"[B] {text}" for text in expected]


@pytest.fixture
def read_lines(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of the lines that have been read."""
    read: list[str] = []
    lines = user_files._numbered_lines

    def counted(task: str, path: str, ending: str) -> Iterator[tuple[int, str]]:
        for line in lines(task, path, ending):
            read.append(path)
            yield line

    monkeypatch.setattr(user_files, "_numbered_lines", counted)
    return read


@pytest.mark.parametrize("name", RECORDED)
def test_a_later_start_reads_only_the_first_row(name: str, files: dict[str, str], read_lines: list[str]) -> None:
    def start() -> list[object]:
        user_files._read.cache_clear()
        task = cases(files)[name]
        splits = [cache.load(task.name, {"case": name}, task, split, 0) for split in task.split_names()]
        return [
            task.vocabulary,
            getattr(task, "class_names", ()),
            getattr(task, "group_names", {}),
            *map(digest, splits),
        ]

    first = start()
    read_lines.clear()
    assert start() == first
    assert len(read_lines) <= 2


def test_a_file_without_a_column_split_has_no_other_split_which_its_first_row_says(
    files: dict[str, str], read_lines: list[str]
) -> None:
    assert FileLanguageModel(path=files["plain"]).split_names() == ("train",)
    assert len(read_lines) == 2


def test_a_missing_file_is_reported_before_another_is_read(files: dict[str, str], read_lines: list[str]) -> None:
    task = File(path=files["plain"], test=files["plain"].replace("plain", "gone"), labels=3)
    with pytest.raises(TaskError, match=r"gone\.tsv is missing"):
        cache.load("file", {}, task, "train", 0)
    assert len(read_lines) <= 2


def test_damaged_numbers_of_words_are_read_again(files: dict[str, str]) -> None:
    before = digest(File(path=files["column"], labels=3).generate("train", 0))
    (numbers,) = (cache_folder() / "tasks").glob("texts-*/0.values.npy")
    numbers.write_bytes(numbers.read_bytes()[:-1] + b"?")
    user_files._read.cache_clear()
    with pytest.warns(CacheWarning, match="is damaged"):
        assert digest(File(path=files["column"], labels=3).generate("train", 0)) == before
