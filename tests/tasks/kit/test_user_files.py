"""A user's own file is understood, or the line is named that is not."""

from __future__ import annotations

import gzip
import lzma
import os
from pathlib import Path

import pytest

from archlang.tasks.kit.mistakes import TaskError
from archlang.tasks.kit.user_files import OwnFile, labels, lexicon, numbered, whole, words

TSV = "text\tlabel\nwhat a day\tgood\nno\tbad\n"


def own(path: Path | str, columns: tuple[str, ...] = ("text", "label"), **others: str) -> OwnFile:
    return OwnFile("file", str(path), others, {name: whole if name == "label" else words for name in columns})


def put(tmp_path: Path, name: str, content: str | bytes) -> Path:
    place = tmp_path / name
    place.write_bytes(content.encode() if isinstance(content, str) else content)
    return place


def cells(found: OwnFile, split: str) -> list[tuple[tuple[str, ...], ...]]:
    return [line.cells for line in found.lines(split)]


EXPECTED = [(("what", "a", "day"), ("good",)), (("no",), ("bad",))]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.tsv", TSV.encode()),
        ("a.tsv", TSV.replace("\n", "\r\n").encode()),
        ("a.tsv", b"\xef\xbb\xbf" + TSV.encode()),
        ("a.tsv", TSV.rstrip("\n").encode()),
        ("a.tsv", b'label\tmore\ttext\ngood\t?\twhat a day\n\nbad\t"\tno\n'),
        ("a.tsv.gz", gzip.compress(TSV.encode(), mtime=0)),
        ("a.tsv.xz", lzma.compress(TSV.encode())),
        ("a.jsonl", b'{"text": "what a day", "label": "good"}\n{"text": ["no"], "label": "bad", "x": {}}\n'),
    ],
)
def test_rows_are_the_same_in_every_form(tmp_path: Path, name: str, content: bytes) -> None:
    found = own(put(tmp_path, name, content))
    assert found.split_names() == ("train",)
    assert cells(found, "train") == EXPECTED


def test_only_line_feeds_end_lines(tmp_path: Path) -> None:
    found = own(put(tmp_path, "a.tsv", "text\tlabel\na\u2028b\x0cc\tgood\n"))
    assert [line.number for line in found.lines("train")] == [2]


def test_a_column_splits_a_file(tmp_path: Path) -> None:
    found = own(put(tmp_path, "a.tsv", "text\tlabel\tsplit\na\tx\ttrain\nb\ty\ttest\nc\tz\ttrain\n"))
    assert found.split_names() == ("train", "test")
    assert [len(found.lines(split)) for split in found.split_names()] == [2, 1]
    with pytest.raises(TaskError, match="file has no split `valid`"):
        found.lines("valid")


def test_files_may_be_splits(tmp_path: Path) -> None:
    train, test = put(tmp_path, "a.tsv", TSV), put(tmp_path, "b.jsonl", '{"text": "x", "label": 1}\n')
    found = own(train, valid="", test=str(test))
    assert found.split_names() == ("train", "test")
    assert cells(found, "test") == [(("x",), ("1",))]


@pytest.mark.parametrize(
    ("name", "content", "line", "reason"),
    [
        ("a.tsv", "", 1, "no column `text`"),
        ("a.tsv", "text\tlabel\n", 1, "there is no line of data"),
        ("a.tsv", "texts\tlabel\na\tb\n", 1, "no column `text`"),
        ("a.tsv", "text\tlabel\na\tb\nc\n", 3, "it has 1 columns, and the first line names 2"),
        ("a.tsv", "text\tlabel\n\na\tb\tc\n", 3, "it has 3 columns"),
        ("a.tsv", "text\tlabel\n \tb\n", 2, "its `text` is empty"),
        ("a.tsv", "text\tlabel\na\t\n", 2, "its `label` is empty"),
        ("a.tsv", "text\tlabel\tsplit\na\tb\ttrian\n", 2, "its `split` is none of train, valid, test"),
        ("a.jsonl", '{"text": "a", "label": "b"}\n{"text": \n', 2, "no JSON object"),
        ("a.jsonl", "[1]\n", 1, "no JSON object"),
        ("a.jsonl", "[" * 100_000 + "\n", 1, "no JSON object"),
        ("a.jsonl", '{"text": "a"}\n', 1, "has no `label`"),
        ("a.jsonl", '{"text": {}, "label": 1}\n', 1, "neither a text, nor a number"),
        ("a.jsonl", '{"text": [[1]], "label": 1}\n', 1, "neither a text, nor a number"),
        ("a.jsonl", '{"text": "a", "label": 1, "split": "train"}\n{"text": "a", "label": 1}\n', 2, "every line says"),
    ],
)
def test_what_is_wrong_is_told_by_its_line(tmp_path: Path, name: str, content: str, line: int, reason: str) -> None:
    place = put(tmp_path, name, content)
    with pytest.raises(TaskError) as error:
        own(place).lines("train")
    assert error.value.message.startswith(f"line {line} of {place}: ")
    assert reason in error.value.message


def test_messages_quote_nothing_of_a_file(tmp_path: Path) -> None:
    secret = "root:x:0:0"
    for name, content in (
        ("a.tsv", f"{secret}\n{secret}\n"),
        ("a.jsonl", f"{secret}\n"),
        ("b.tsv", f"text\tlabel\n{secret}"),
    ):
        with pytest.raises(TaskError) as error:
            own(put(tmp_path, name, content)).lines("train")
        assert "root" not in str(error.value).replace(str(tmp_path), "")


@pytest.mark.parametrize(
    "content",
    [gzip.compress(TSV.encode(), mtime=0)[:-9], b"text", lzma.compress(b"")],
    ids=["cut off", "text", "another packing"],
)
def test_a_packed_file_that_is_cut_or_none_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(TaskError, match=r"a\.tsv\.gz cannot be read or unpacked"):
        own(put(tmp_path, "a.tsv.gz", content)).lines("train")


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="not text in UTF-8"):
        own(put(tmp_path, "a.tsv", b"text\tlabel\n\xff\tx\n")).lines("train")


def test_only_plain_files_of_known_forms_are_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.tsv")
    (tmp_path / "folder.tsv").mkdir()
    for name in ("gone.tsv", "pipe.tsv", "folder.tsv"):
        with pytest.raises(TaskError, match="is missing, or is no plain file"):
            own(tmp_path / name).lines("train")
    with pytest.raises(TaskError, match="neither TSV nor JSONL"):
        own(put(tmp_path, "a.csv", TSV)).lines("train")
    with pytest.raises(TaskError, match="the path of `file` is missing"):
        own("").lines("train")


def test_splits_are_said_once(tmp_path: Path) -> None:
    place = put(tmp_path, "a.tsv", "text\tlabel\tsplit\na\tb\ttrain\n")
    with pytest.raises(TaskError, match="has a column `split`, and further files are named too"):
        own(place, test=str(place)).lines("train")
    with pytest.raises(TaskError, match="no line of .* is for training"):
        own(put(tmp_path, "b.tsv", "text\tlabel\tsplit\na\tb\ttest\n")).lines("test")


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    place = put(tmp_path, "a.tsv", TSV)
    before = place.stat()
    assert cells(own(place), "train") == EXPECTED
    place.write_text(TSV.replace("no", "oh"))
    os.utime(place, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert cells(own(place), "train")[1] == (("oh",), ("bad",))


def test_the_vocabulary_is_that_of_train_and_as_large_as_told(tmp_path: Path) -> None:
    found = own(put(tmp_path, "a.tsv", "text\tlabel\tsplit\nb a b\tx\ttrain\nc\tx\ttest\n"))
    assert lexicon(found, 3, [0], ("[E]",)).texts == ("b", "a", "<unused>0", "<unk>", "[E]")
    assert lexicon(found, 1, [0]).texts == ("b", "<unk>")
    assert lexicon(found, 1, [0]).encode([("c", "b", "a")])[0].tolist() == [1, 0, 1]


def test_labels_are_numbered_as_numbers_or_by_their_letters(tmp_path: Path) -> None:
    numbers = own(put(tmp_path, "a.tsv", "text\tlabel\na\t10\nb\t9\n"))
    assert labels(numbers, 1, 2) == {"9": 0, "10": 1}
    assert labels(own(put(tmp_path, "b.tsv", "text\tlabel\na\tvery good\nb\tbad\n")), 1, 2) == {
        "bad": 0,
        "very good": 1,
    }
    with pytest.raises(TaskError, match=r"labels = 1 is too small .* 2 different labels: write labels = 2"):
        labels(numbers, 1, 1)


def test_a_label_that_was_not_trained_on_is_told_by_its_line(tmp_path: Path) -> None:
    place = put(tmp_path, "a.tsv", "text\tlabel\tsplit\na\tx\ttrain\nb\ty\ttest\n")
    found = own(place)
    (line,) = found.lines("test")
    with pytest.raises(TaskError, match=f"line 3 of {place}: no line of train has this label"):
        numbered(found, "test", line, 1, labels(found, 1, 2))
