"""Training data that are read while a model trains: files of the user's own, and data sets of the Hub."""

import gzip
import io
import json
import re
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from archlang.errors import MachineError
from archlang.tasks.file import File
from archlang.tasks.kit import cache
from archlang.tasks.kit.mistakes import TaskError
from archlang.tasks.kit.split import Split, digest, join_splits
from archlang.tasks.kit.streams import StreamPart
from archlang.tasks.text import Text
from tests.hub import COMMIT, Hub

TEXTS = [f"text {number} " + "réd wheel 車 " * (number % 7) for number in range(700)]


def jsonl(texts: list[str]) -> bytes:
    return "".join(json.dumps({"id": number, "text": text}) + "\n" for number, text in enumerate(texts)).encode()


def in_parquet(texts: list[str]) -> bytes:
    file = io.BytesIO()
    parquet.write_table(pyarrow.table({"text": texts, "id": range(len(texts))}), file, row_group_size=64)
    return file.getvalue()


@pytest.fixture(autouse=True)
def valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ARCHLANG_CACHE", str(tmp_path / "cache"))
    (tmp_path / "valid.jsonl").write_bytes(jsonl(["a text for valid"]))
    return tmp_path / "valid.jsonl"


def task(path: Path | str, valid: Path, **statics: object) -> Text:
    return Text(path=str(path), valid=str(valid), **({"stream": 3_000, "length": 16} | statics))


def first_part(text: Text) -> StreamPart:
    part = text.generate("train", 0)
    assert isinstance(part, StreamPart)
    return part


def parts(text: Text, count: int) -> list[StreamPart]:
    """Returns the first parts of a stream."""
    found = [first_part(text)]
    while len(found) < count:
        found.append(found[-1].stream.part(found[-1].after))
    return found


def read_on(found: list[StreamPart]) -> None:
    """Appends parts until one cannot be read."""
    while True:
        found.append(found[-1].stream.part(found[-1].after))


def stored(split: Split) -> Split:
    """Returns a part as another split."""
    return Split.of_parts(split.parts())


# Files


@pytest.mark.parametrize("form", ["jsonl", "jsonl.gz", "parquet", "folder", "csv"])
@pytest.mark.parametrize("stride", [0, 5])
def test_the_parts_of_a_stream_are_the_items_of_the_stored_split_again_and_again(
    form: str, stride: int, tmp_path: Path, valid: Path
) -> None:
    path = tmp_path / f"train.{form}"
    if form == "folder":
        path.mkdir()
        for number in range(3):
            (path / f"{number}.txt").write_text("".join(TEXTS[number::3]))
    elif form == "csv":
        path.write_text("text\n" + "\n".join(TEXTS) + "\n")
    else:
        path.write_bytes(in_parquet(TEXTS) if form == "parquet" else jsonl(TEXTS))
        if form == "jsonl.gz":
            path.write_bytes(gzip.compress(path.read_bytes()))
    items = task(path, valid, stream=0, stride=stride).generate("train", 0)
    read = join_splits(map(stored, parts(task(path, valid, stride=stride), 30)))
    assert len(read) > 2 * len(items)
    for start in (0, len(items)):
        assert digest(read.select(np.arange(start, start + len(items)))) == digest(items)


def test_a_part_has_as_many_characters_as_asked_for_and_ends_with_that_document(tmp_path: Path, valid: Path) -> None:
    texts = [f"text {number} " + "red wheel " * (number % 7) for number in range(400)]
    (tmp_path / "a.jsonl").write_bytes(jsonl(texts))
    for size in (1, 100, 3_000):
        for part in parts(task(tmp_path / "a.jsonl", valid, packed=True, stream=size), 4):
            assert set(part.inputs["x"].lengths[:-1].tolist()) <= {16}
            assert size <= part.notes["bytes"].values.sum() < size + max(map(len, texts))


@pytest.mark.parametrize("of_hub", [False, True])
def test_a_part_ends_where_the_stream_ends_and_the_next_one_begins_at_its_beginning(
    of_hub: bool, tmp_path: Path, valid: Path, request: pytest.FixtureRequest
) -> None:
    if of_hub:
        request.getfixturevalue("hub").files = {"a.jsonl": jsonl(TEXTS)}
    (tmp_path / "a.jsonl").write_bytes(jsonl(TEXTS))
    path = on_hub() if of_hub else tmp_path / "a.jsonl"
    items = task(tmp_path / "a.jsonl", valid, stream=0).generate("train", 0)
    for part in parts(task(path, valid, stream=1_000_000_000), 3):
        assert (digest(part), part.place, part.after) == (digest(items), None, None)
    exact = parts(task(path, valid, stream=sum(map(len, TEXTS))), 3)
    assert [digest(part) for part in exact] == [digest(items)] * 3
    # The first part ends with the last document, so that the next place has none.
    assert exact[0].after is not None
    assert exact[1].place is None


def test_a_part_is_the_same_wherever_reading_begins(tmp_path: Path, valid: Path) -> None:
    for number in range(3):
        (tmp_path / f"a{number}.jsonl").write_bytes(jsonl(TEXTS[number * 100 :][:300]))
    found = parts(task(tmp_path / "a*.jsonl", valid), 9)
    assert len({digest(part) for part in found}) == len({json.dumps(part.place) for part in found}) > 3
    for part in reversed(found):
        again = first_part(task(tmp_path / "a*.jsonl", valid)).stream.part(json.loads(json.dumps(part.place)))
        assert (digest(again), again.after) == (digest(part), part.after)


def test_rows_of_other_splits_are_left_out(tmp_path: Path, valid: Path) -> None:
    rows = [{"text": f"text {number}", "split": ("train", "valid", "test")[number % 3]} for number in range(90)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    text = task(tmp_path / "a.jsonl", valid)
    assert text.split_names() == ("train", "valid")
    part = first_part(text)
    assert [text.spell(row)[4::2] for row in map(part.inputs["x"].__getitem__, range(30))] == [
        f"text{'   '}{number}".replace("   ", " ") for number in range(0, 90, 3)
    ]


def test_what_a_stream_is_read_from_is_described_by_names_sizes_and_ends(tmp_path: Path, valid: Path) -> None:
    file = tmp_path / "a.jsonl"
    sources = []
    for texts in (TEXTS, [*TEXTS, "more"], [*TEXTS[:-1], TEXTS[-1].upper()]):
        file.write_bytes(jsonl(texts))
        sources.append(first_part(task(file, valid)).stream.source)
    assert len(set(sources)) == 3
    assert all(re.fullmatch("1 file, names, sizes and ends sha256:[0-9a-f]{64}", source) for source in sources)


def test_nothing_of_a_stream_is_stored_and_valid_does_not_depend_on_it(tmp_path: Path, valid: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(jsonl(TEXTS))
    text = task(file, valid)
    assert text.files() == (str(valid),)
    for split in ("train", "valid"):
        cache.load("text", {"path": str(file)}, text, split, cache.DATA_SEED)
    names = [path.name.rpartition("-")[0] for path in (tmp_path / "cache" / "tasks").iterdir()]
    assert sorted(names) == ["text-valid", "texts"]


def test_a_line_that_cannot_be_read_is_named_and_a_stream_without_documents_is_refused(
    tmp_path: Path, valid: Path
) -> None:
    file = tmp_path / "a.jsonl"
    file.write_bytes(jsonl(TEXTS) + b"SECRET\n")
    found = [first_part(task(file, valid))]
    with pytest.raises(TaskError, match=r"line 701 of .*a\.jsonl: expected a JSON object") as caught:
        read_on(found)
    assert "SECRET" not in str(caught.value)
    assert digest(found[0].stream.part(found[-1].place)) == digest(found[-1])
    file.write_bytes(jsonl(["", ""]))
    with pytest.raises(TaskError, match=r"there is no document for training in .*a\.jsonl.*`split`"):
        first_part(task(file, valid))
    file.write_bytes(b'{"txt": "a"}\n')
    with pytest.raises(TaskError, match=r"there is no column `text`.*txt"):
        first_part(task(file, valid))
    with pytest.raises(TaskError, match="is missing, or is not a regular file"):
        first_part(task(tmp_path / "b.jsonl", valid))


@pytest.mark.parametrize(
    ("statics", "message"),
    [
        ({"valid": ""}, 'requires `stream == 0 or valid != ""`'),
        ({"test_share": 0.1}, "requires `stream == 0 or test_share == 0`"),
        ({"by": "words"}, "requires `stream == 0 or by == bytes"),
        ({"by": "bpe", "words": 300}, "requires `stream == 0 or by == bytes"),
        ({"path": "/a/hf:/owner/name"}, "hf://owner/name names no commit"),
        ({"path": "/a/hf:/owner/name@main"}, "hf://owner/name@main names no commit"),
        ({"path": f"/a/hf:/../name@{COMMIT}"}, "names no commit"),
        ({"path": f"/a/hf:/owner/name@{COMMIT}", "stream": 0}, "`text` reads no files from hf://owner/name@"),
        ({"valid": f"/a/hf:/owner/name@{COMMIT}"}, "`text` reads no files from hf://owner/name@"),
    ],
)
def test_what_cannot_be_streamed_is_refused_before_anything_is_read(
    statics: dict[str, object], message: str, tmp_path: Path, valid: Path
) -> None:
    with pytest.raises(TaskError, match=re.escape(message)):
        Text(**({"path": str(tmp_path / "a.jsonl"), "valid": str(valid), "stream": 10} | statics))


def test_other_tasks_read_no_data_set_of_the_hub() -> None:
    with pytest.raises(TaskError, match="`file` reads no files from hf://owner/name@"):
        File(path=f"/a/hf:/owner/name@{COMMIT}")


# The Hub


def on_hub(subset: str = "") -> str:
    """Returns the path of the data set as a program's folder has it."""
    return f"/a/hf:/owner/name{subset}@{COMMIT}"


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_a_data_set_of_the_hub_is_read_at_its_commit_and_resumed_at_any_place(
    form: str, hub: Hub, tmp_path: Path, valid: Path
) -> None:
    write = jsonl if form == "jsonl" else in_parquet
    hub.files = {f"train-{number}.{form}": write(TEXTS[number::2]) for number in range(2)}
    found = parts(task(on_hub(), valid), 30)
    assert found[0].stream.source == f"hf://owner/name@{COMMIT}"
    (tmp_path / "a.jsonl").write_bytes(jsonl([*TEXTS[0::2], *TEXTS[1::2]]))
    items = task(tmp_path / "a.jsonl", valid, stream=0).generate("train", 0)
    read = join_splits(map(stored, found))
    assert len(read) > 2 * len(items)
    for start in (0, len(items)):
        assert digest(read.select(np.arange(start, start + len(items)))) == digest(items)
    for part, following in list(pairwise(found))[::-2]:
        again = first_part(task(on_hub(), valid)).stream.part(json.loads(json.dumps(part.place)))
        # The package writes the same place in several ways.
        assert (digest(again), digest(again.stream.part(again.after))) == (digest(part), digest(following))
    assert {path.name for path in tmp_path.iterdir()} <= {"a.jsonl", "cache", "hub", "valid.jsonl"}


def test_a_subset_and_a_column_are_named_and_others_are_refused_with_what_there_is(hub: Hub, valid: Path) -> None:
    names = "".join(f"- config_name: {name}\n  data_files: {name}.jsonl\n" for name in ("big", "small"))
    hub.files = {"README.md": f"---\nconfigs:\n{names}---\n".encode()}
    hub.files |= {"big.jsonl": jsonl(TEXTS), "small.jsonl": jsonl(TEXTS[:3])}
    small = first_part(task(on_hub("/small"), valid))
    assert small.notes["bytes"].values.sum() == sum(len(text.encode()) for text in TEXTS[:3])
    for path, statics, message in [
        (on_hub(), {}, r"Please pick one among the available configs: \['big', 'small'\]"),
        (on_hub("/smal"), {}, r"Available: \['big', 'small'\]"),
        (on_hub("/big"), {"text": "txt"}, "has no column `txt`: its columns are id, text"),
        (on_hub("/big"), {"text": "id"}, "`id` of hf://owner/name/big@.* has values that are no texts"),
        (f"/a/hf:/owner/other@{COMMIT}", {}, "'owner/other' doesn't exist on the Hub"),
    ]:
        with pytest.raises(TaskError, match=message):
            first_part(task(path, valid, **statics))


def test_no_code_of_a_data_set_is_run(hub: Hub, tmp_path: Path, valid: Path) -> None:
    hub.files = {"a.jsonl": jsonl(TEXTS), "name.py": f"open({str(tmp_path / 'run')!r}, 'w')".encode()}
    with pytest.raises(TaskError, match="Dataset scripts are no longer supported"):
        first_part(task(on_hub(), valid))
    assert not (tmp_path / "run").exists()
    (tmp_path / "owner" / "name").mkdir(parents=True)
    with pytest.raises(TaskError, match="there is a folder owner/name here, which would be read in place of hf://"):
        first_part(task(on_hub(), valid))


def test_a_hub_that_cannot_be_reached_is_a_fault_of_the_machine_and_reading_goes_on_afterwards(
    hub: Hub, valid: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.files = {f"{number}.jsonl": jsonl(TEXTS) for number in range(4)}
    text = task(on_hub(), valid)
    found = parts(text, 3)
    hub.is_down = True
    monkeypatch.setattr(time, "sleep", lambda _: None)
    with pytest.raises(MachineError, match=f"hf://owner/name@{COMMIT} cannot be reached: .*503"):
        read_on(found)
    hub.is_down = False
    assert found[0].stream.part(found[-1].after).place == found[-1].after
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MachineError, match=r"extra `datasets` are not installed.*archlang\[datasets\]"):
        first_part(task(on_hub(), valid))
