"""The lines of a user's own files, and the errors of malformed files."""

import csv
import gzip
import io
import lzma
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from archlang.errors import MachineError
from archlang.tasks.file import File
from archlang.tasks.kit.mistakes import TaskError
from archlang.tasks.kit.user_files import rows_of

ZSTD = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
TSV = "text\tlabel\nwhat a day\tgood\nno\tbad\n"


def binary(form: str, columns: dict[str, Any]) -> bytes:  # Any: cells
    """Returns a table as the content of a Parquet or Arrow file, in groups of one row."""
    pyarrow = pytest.importorskip("pyarrow", reason="the extra `parquet` is not installed")
    from pyarrow import feather, ipc, parquet

    if form == "file":
        columns = {**columns, "label": pyarrow.array(columns["label"]).dictionary_encode()}
    table, file = pyarrow.table(columns), io.BytesIO()
    if form == "parquet":
        parquet.write_table(table, file, row_group_size=1)
    elif form == "feather":
        feather.write_feather(table, file, chunksize=1)
    else:
        with (ipc.new_stream if form == "stream" else ipc.new_file)(file, table.schema) as writer:
            writer.write_table(table, 1)
    return file.getvalue()


def zstd() -> Any:  # Any: a module
    return pytest.importorskip(ZSTD, reason="the extra `zstd` is not installed")


TABLE: dict[str, list[object]] = {"x": [None, 1.5], "text": ["what a day", "no"], "label": ["good", "bad"]}


def own(path: Path | str, **others: str) -> File:
    return File(path=str(path), **others)


def read(path: Path | str, **others: str) -> None:
    own(path, **others).generate("train", 0)


def put(tmp_path: Path, name: str, content: str | bytes) -> Path:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def cells(files: File, split: str) -> list[tuple[tuple[str, ...], ...]]:
    items = files.generate(split, 0)
    return [
        (tuple(files.vocabulary[token] for token in items.inputs["x"][row]), (files.class_names[label],))
        for row, label in enumerate(np.asarray(items.targets).tolist())
    ]


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
        ("a.csv", TSV.replace("\t", ",").encode()),
        (
            "a.csv.gz",
            gzip.compress(b'"label", more,text\r\n\r\ngood,"1, ""2""\n3",what a day\r\n"bad","",no\r\n', mtime=0),
        ),
        ("a.tsv.zst", lambda: zstd().compress(TSV[:20].encode()) + zstd().compress(TSV[20:].encode())),
        ("a.parquet", lambda: binary("parquet", {**TABLE, "text": [["what", "a", "day"], ["no"]]})),
        ("a.feather", lambda: binary("feather", TABLE)),
        ("a.arrow", lambda: binary("file", TABLE)),
        ("a.arrow", lambda: binary("stream", TABLE)),
        ("a.jsonl", b'{"text": "what a day", "label": "good"}\n{"text": ["no"], "label": "bad", "x": {}}\n'),
    ],
)
def test_lines_are_equal_in_every_format(tmp_path: Path, name: str, content: bytes | Callable[[], bytes]) -> None:
    files = own(put(tmp_path, name, content() if callable(content) else content))
    assert files.split_names() == ("train",)
    assert cells(files, "train") == EXPECTED


def test_only_line_feeds_end_lines(tmp_path: Path) -> None:
    files = own(put(tmp_path, "a.tsv", "text\tlabel\na\u2028b\x0cc\tgood\n"))
    assert cells(files, "train") == [(("a", "b", "c"), ("good",))]


def test_a_column_splits_a_file(tmp_path: Path) -> None:
    files = own(put(tmp_path, "a.tsv", "text\tlabel\tsplit\na\tx\ttrain\nb\tx\ttest\nc\tz\ttrain\n"))
    assert files.split_names() == ("train", "test")
    assert [len(files.generate(split, 0)) for split in files.split_names()] == [2, 1]


def test_each_split_may_have_its_own_file(tmp_path: Path) -> None:
    train, test = put(tmp_path, "a.tsv", TSV), put(tmp_path, "b.jsonl", '{"text": "no", "label": "bad"}\n')
    files = own(train, valid="", test=str(test))
    assert files.split_names() == ("train", "test")
    assert cells(files, "test") == [(("no",), ("bad",))]


@pytest.mark.parametrize(
    ("name", "content", "line", "reason"),
    [
        ("a.tsv", "", 1, "the file is empty"),
        ("a.tsv", "text\ttext\tlabel\na\tb\tc\n", 1, "several columns `text`"),
        ("a.tsv", "text\tlabel\tsplit\tsplit\na\tb\ttrain\ttest\n", 1, "several columns `split`"),
        ("a.jsonl", '{"text": "a", "label": NaN}\n', 1, "expected a JSON object"),
        ("a.tsv", "text\tlabel\n", 1, "expected a line of data"),
        ("a.tsv", "texts\tlabel\na\tb\n", 1, "there is no column `text`"),
        ("a.tsv", "text\tlabel\na\tb\nc\n", 3, "expected 2 columns, found 1"),
        ("a.tsv", "text\tlabel\n\na\tb\tc\n", 3, "expected 2 columns, found 3"),
        ("a.tsv", "text\tlabel\n \tb\n", 2, "`text` is empty"),
        ("a.tsv", "text\tlabel\na\t\n", 2, "`label` is empty"),
        ("a.tsv", "text\tlabel\tsplit\na\tb\ttrian\n", 2, "`split` is none of train, valid, test"),
        ("a.jsonl", '{"text": "a", "label": "b"}\n{"text": \n', 2, "expected a JSON object"),
        ("a.jsonl", "[1]\n", 1, "expected a JSON object"),
        ("a.jsonl", "[" * 100_000 + "\n", 1, "expected a JSON object"),
        ("a.jsonl", '{"text": "a"}\n', 1, "there is no column `label`"),
        ("a.jsonl", '{"text": "a", "label": null}\n', 1, "`label` is empty"),
        ("a.jsonl", '{"text": "a", "label": "b", "split": null}\n', 1, "`split` is none of train, valid, test"),
        ("a.jsonl", '{"text": {}, "label": 1}\n', 1, "neither a text, nor a number"),
        ("a.jsonl", '{"text": [[1]], "label": 1}\n', 1, "neither a text, nor a number"),
        ("a.jsonl", '{"text": "a", "label": 1, "split": "train"}\n{"text": "a", "label": 1}\n', 2, "every line has"),
    ],
)
def test_an_error_names_the_line(tmp_path: Path, name: str, content: str, line: int, reason: str) -> None:
    path = put(tmp_path, name, content)
    with pytest.raises(TaskError) as error:
        read(path)
    assert error.value.message.startswith(f"line {line} of {path}: ")
    assert reason in error.value.message


@pytest.mark.parametrize("path", ["", "/*.tsv", "/b.*"])
def test_a_folder_or_a_pattern_stands_for_its_files_in_order(tmp_path: Path, path: str) -> None:
    folder = tmp_path / "some"
    (folder / "inner").mkdir(parents=True)
    put(folder, "b.tsv.gz", gzip.compress(b"label\ttext\nbad\tno\n"))
    put(folder, "b.tsv", "text\tlabel\n")
    put(folder / "inner", "c.tsv", "text\tlabel\nyes\tgood\n")
    put(folder, ".hidden.json", "{}")
    put(tmp_path, "last.tsv", "text\tlabel\nwhat a day\tgood\n")
    put(folder, "a.tsv", "text\tlabel\nwhat a day\tgood\n")
    expected = {"": EXPECTED, "/*.tsv": EXPECTED[:1], "/b.*": EXPECTED[1:]}[path]
    assert cells(own(f"{folder}{path}"), "train") == expected
    assert len(own(f"{tmp_path}/**/*.tsv").generate("train", 0)) == 3


def test_a_folder_has_files_of_one_form_and_all_or_none_with_splits(tmp_path: Path) -> None:
    put(tmp_path, "a.tsv", TSV)
    second = put(tmp_path, "b.csv", TSV)
    with pytest.raises(TaskError, match=r"the files of .* are \.csv and \.tsv: .* pattern"):
        read(tmp_path)
    put(tmp_path, "c.tsv", "text\tlabel\tsplit\na\tx\ttrain\n")
    with pytest.raises(TaskError, match=r"line 2 of \S*c\.tsv: either every line has a `split`"):
        read(tmp_path / "*.tsv")
    with pytest.raises(TaskError, match=r"no file matches \S*/\*\.jsonl"):
        read(tmp_path / "*.jsonl")
    (tmp_path / "c").mkdir()
    with pytest.raises(TaskError, match=r"the folder \S*/c has no files"):
        read(tmp_path / "c")
    (tmp_path / "c" / "b.csv").symlink_to(second)
    with pytest.raises(TaskError, match=r"c/b\.csv is a link that leads out of \S*/c"):
        read(tmp_path / "c")


@pytest.mark.parametrize("by_package", [False, True])
def test_a_folder_that_datasets_has_saved_is_a_table(tmp_path: Path, by_package: bool) -> None:
    saved = tmp_path / "saved"
    if by_package:
        datasets = pytest.importorskip("datasets", reason="the package datasets is not installed")
        rows = datasets.Dataset.from_dict({name: cells[::-1] for name, cells in TABLE.items()}).select([1, 0])
        datasets.DatasetDict({"train": rows}).save_to_disk(saved, num_shards={"train": 2})
    else:
        (saved / "train").mkdir(parents=True)
        for row, name in enumerate(("data-00000-of-00002.arrow", "data-00001-of-00002.arrow")):
            part = binary("stream", {column: cells[row : row + 1] for column, cells in TABLE.items()})
            put(saved / "train", name, part)
        for file in ("train/dataset_info.json", "train/state.json", "dataset_dict.json"):
            put(saved, file, "{}")
    assert cells(own(saved / "train"), "train") == EXPECTED
    with pytest.raises(TaskError, match=r"saved has several data sets of the package datasets: .*saved/validation"):
        read(saved)


def test_a_check_lists_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "scandir", lambda *_: pytest.fail("it lists a folder"))
    for path in (tmp_path, tmp_path / "**" / "*.csv", tmp_path / "absent", tmp_path / "*.xls"):
        own(path)


@pytest.mark.parametrize("form", ["parquet", "feather", "stream"])
def test_an_error_in_a_binary_table_names_its_row_or_column(tmp_path: Path, form: str) -> None:
    name = "a.parquet" if form == "parquet" else "a.arrow"

    def message(content: bytes) -> str:
        with pytest.raises(TaskError) as error:
            read(put(tmp_path, name, content))
        return str(error.value).replace(f"{tmp_path}/{name}", "FILE")

    assert message(binary(form, {**TABLE, "label": ["good", None]})).startswith("line 2 of FILE: `label` is empty")
    assert message(binary(form, {"Text": ["a"], "label": ["b"]})).endswith("column `text`: did you mean `Text`?")
    assert "neither a text" in message(binary(form, {**TABLE, "text": [{"a": 1}, {"a": 2}]}))
    content = binary(form, {"text": [f"{row:100}" for row in range(100)], "label": ["a"] * 100})
    assert message(content[: len(content) // 2]).startswith("FILE cannot be read or decompressed")


@pytest.mark.parametrize(
    ("name", "module", "command"),
    [("a.parquet", "pyarrow", "archlang[parquet]"), ("a.tsv.zst", ZSTD, "archlang[zstd]")],
)
def test_a_missing_package_is_named_with_the_command_that_installs_it(
    tmp_path: Path, name: str, module: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    if (package := sys.modules.get(module.partition(".")[0])) is not None:
        monkeypatch.delattr(package, "zstd", raising=False)
    with pytest.raises(MachineError, match=command.replace("[", r"\[")):
        read(put(tmp_path, name, b"?"))


def test_a_long_document_fits_into_a_cell(tmp_path: Path) -> None:
    files = own(put(tmp_path, "a.csv", f'text,label\n"{"a " * 209_000}",x\n'))
    assert len(files.generate("train", 0).inputs["x"][0]) == 209_000


def test_a_reader_that_waits_leaves_the_limit_of_cells_to_others(tmp_path: Path) -> None:
    before = csv.field_size_limit()
    rows = rows_of("file", [str(put(tmp_path, "a.csv", "text,label\na,b\nc,d\n"))], ["text"])
    assert (next(rows)[2], csv.field_size_limit()) == (["a"], before)


def test_messages_never_quote_a_file(tmp_path: Path) -> None:
    secret = "root:x:0:0"
    for name, content in (
        ("a.tsv", f"{secret}\n{secret}\n"),
        ("a.jsonl", f"{secret}\n"),
        ("b.tsv", f"text\tlabel\n{secret}"),
    ):
        with pytest.raises(TaskError) as error:
            read(put(tmp_path, name, content))
        assert "root" not in str(error.value).replace(str(tmp_path), "")


@pytest.mark.parametrize(
    "content",
    [gzip.compress(TSV.encode(), mtime=0)[:-9], b"text", lzma.compress(b"")],
    ids=["cut off", "text", "another compression"],
)
@pytest.mark.parametrize("ending", ["gz", "xz", "zst"])
def test_a_damaged_compressed_file_is_refused(tmp_path: Path, content: bytes, ending: str) -> None:
    if ending == "zst":
        zstd()
    if content == lzma.compress(b"") and ending == "xz":
        content = gzip.compress(b"")
    with pytest.raises(TaskError, match=rf"a\.tsv\.{ending} cannot be read or decompressed"):
        read(put(tmp_path, f"a.tsv.{ending}", content))


@pytest.mark.parametrize("ending", ["gz", "xz", "zst"])
def test_the_place_of_damage_is_the_line_before_it(tmp_path: Path, ending: str) -> None:
    module = {"gz": gzip, "xz": lzma}.get(ending) or zstd()
    rows = [f"{number} {number * number}\tx" for number in range(100_000)]
    content = module.compress("\n".join(["text\tlabel", *rows]).encode())
    with pytest.raises(TaskError, match=r"decompressed after line \d+: check") as error:
        read(put(tmp_path, f"a.tsv.{ending}", content[:-1_000]))
    assert 40_000 < int(error.value.message.rpartition(" ")[2]) < 100_000


def test_bytes_that_are_not_utf_8_are_refused_at_their_line(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=r"^line 2 of \S*a\.tsv: it is not UTF-8 text"):
        read(put(tmp_path, "a.tsv", b"text\tlabel\n\xff\tx\n"))


def test_only_regular_files_of_known_formats_are_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.tsv")
    (tmp_path / "folder.tsv").mkdir()
    for name in ("gone.tsv", "pipe.tsv", "folder.tsv"):
        with pytest.raises(TaskError, match=r"is missing, or is not a regular file|folder\.tsv has no files"):
            read(tmp_path / name)
    for name in ("a.xls", "a.txt", "a"):
        with pytest.raises(TaskError, match="neither CSV, TSV, JSONL, Parquet nor Arrow"):
            read(put(tmp_path, name, TSV))


@pytest.mark.parametrize("name", ["a.tsv", "a.tsv.gz"])
def test_a_file_that_becomes_a_pipe_is_refused_at_once(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(tmp_path, name, gzip.compress(TSV.encode()) if name.endswith(".gz") else TSV)

    def replace(*_: object) -> bool:
        path.unlink(missing_ok=True)
        os.mkfifo(path)
        return True

    # Whatever is asked about the path before it is opened.
    monkeypatch.setattr(Path, "is_file", replace)
    assert cells(own(path), "train") == EXPECTED
    replace()
    with pytest.raises(TaskError, match="is missing, or is not a regular file"):
        read(path)


def test_a_split_column_excludes_further_files(tmp_path: Path) -> None:
    path = put(tmp_path, "a.tsv", "text\tlabel\tsplit\na\tb\ttrain\n")
    with pytest.raises(TaskError, match="has a column `split`, and the recipe names further files"):
        read(path, test=str(path))
    with pytest.raises(TaskError, match="no line of .* is in the split `train`"):
        own(put(tmp_path, "b.tsv", "text\tlabel\tsplit\na\tb\ttest\n")).generate("test", 0)


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path = put(tmp_path, "a.tsv", TSV)
    before = path.stat()
    assert cells(own(path), "train") == EXPECTED
    path.write_text(TSV.replace("no", "oh"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert cells(own(path), "train")[1] == (("oh",), ("bad",))
