"""Splits are generated once and loaded from then on; damaged ones are generated again."""

import errno
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from archlang.disk.cache_folder import cache_folder
from archlang.disk.folder import Folder
from archlang.tasks.file_language_model import FileLanguageModel
from archlang.tasks.kit import cache
from archlang.tasks.kit.mistakes import CacheWarning
from archlang.tasks.kit.split import Ragged, Split, digest
from archlang.tasks.kit.task import Kind, Unit
from archlang.types.statics import Interval, StaticValue, Symbol
from tests.tasks.every import page


class Counting:
    """A task that counts its calls."""

    vocabulary = ("a", "b")
    kind = Kind.CLASSIFICATION
    breakdown = "length"
    in_distribution = ("train", "test")
    unit = Unit.SAMPLE
    metrics = ("accuracy",)

    def __init__(self, version: int = 1) -> None:
        self.version = version
        self.generated = 0

    def split_names(self) -> tuple[str, ...]:
        return ("train", "test")

    def generate(self, split: str, seed: int) -> Split:
        self.generated += 1
        x = Ragged.of([[seed, 1, 1], [0]] if split == "train" else [])
        return Split({"x": x}, np.arange(len(x)), groups={"length": x.lengths})


NO_STATICS: Mapping[str, StaticValue] = {}


def load(task: Counting, statics: Mapping[str, StaticValue] = NO_STATICS, split: str = "train", seed: int = 0) -> Split:
    return cache.load("counting", statics, task, split, seed)


def test_a_split_is_generated_once() -> None:
    task = Counting()
    first, second = load(task), load(task)
    assert task.generated == 1
    assert digest(first) == digest(second) == digest(task.generate("train", 0))


def test_an_empty_split_is_cached() -> None:
    task = Counting()
    assert len(load(task, split="test")) == len(load(task, split="test")) == 0
    assert task.generated == 1


def test_arrays_are_memory_mapped_and_what_is_written_to_them_is_not_stored() -> None:
    split = load(Counting())
    assert isinstance(split.inputs["x"].values.base, np.memmap)
    split.inputs["x"].values[:] = 5
    assert digest(load(Counting())) == digest(Counting().generate("train", 0))


@pytest.mark.parametrize(
    "statics",
    [{"n": 1}, {"n": 1.0}, {"n": True}, {"n": Symbol("one")}, {"n": Interval(1, 2)}, {"n": (1, 2)}, {"n": ((1,), 2)}],
)
def test_the_key_depends_on_the_statics(statics: dict[str, StaticValue]) -> None:
    task = Counting()
    load(task, {"n": 2})
    load(task, statics)
    load(task, statics)
    assert task.generated == 2


def test_the_key_depends_on_seed_split_and_version() -> None:
    task, newer = Counting(), Counting(version=2)
    load(task)
    load(task, seed=1)
    load(task, split="test")
    load(newer)
    assert (task.generated, newer.generated) == (3, 1)


def only_entry() -> Path:
    (place,) = (cache_folder() / "tasks").iterdir()
    return place


def flip(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1] + b"?")


@pytest.mark.parametrize(
    ("spoil", "name", "reason"),
    [
        *((flip, name, "is damaged") for name in ("inputs.x.values.npy", "targets.npy", "manifest.json")),
        (lambda file: file.write_text('{"sha256": {}}'), "manifest.json", "is damaged"),
        *((Path.unlink, name, "is missing") for name in ("inputs.x.offsets.npy", "manifest.json")),
    ],
)
def test_a_spoiled_split_is_generated_again(spoil: Callable[[Path], object], name: str, reason: str) -> None:
    task = Counting()
    good = digest(load(task))
    spoil(only_entry() / name)
    with pytest.warns(CacheWarning, match=reason):
        assert digest(load(task)) == good
    assert digest(load(task)) == good
    assert task.generated == 2


def test_a_forged_entry_runs_no_code() -> None:
    class Runs:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return pytest.fail, ("it runs",)

    good = digest(load(Counting()))
    np.save(only_entry() / "targets.npy", np.array([Runs()], dtype=object), allow_pickle=True)
    manifest = json.loads((only_entry() / "manifest.json").read_text())
    manifest["content"]["parts"]["targets"] = [cache._sha256(only_entry() / "targets.npy")]
    manifest["sha256"] = cache._check(manifest["content"])
    (only_entry() / "manifest.json").write_text(json.dumps(manifest))
    with pytest.warns(CacheWarning, match="is damaged"):
        assert digest(load(Counting())) == good


def test_facts_that_differ_from_the_written_ones_are_not_used() -> None:
    good = digest(load(Counting()))
    manifest = only_entry() / "manifest.json"
    manifest.write_text(manifest.read_text().replace(good, "0" * 64))
    with pytest.warns(CacheWarning, match=r"manifest\.json differs from what was written"):
        assert digest(load(Counting())) == good


def test_a_class_of_ones_own_generates_whole_splits_even_if_its_base_generates_pieces(tmp_path: Path) -> None:
    class Reversed(FileLanguageModel):
        def make(self, split: str, seed: int) -> Split:
            return super().make(split, seed).select([1, 0])

    (tmp_path / "a.txt").write_text("a\nb b\n")
    task: Any = Reversed(path=str(tmp_path / "a.txt"), words=2)  # Any: both a `Task` and a `ShippedTask`
    assert cache.load("own", {}, task, "train", 0).groups["length"].tolist() == [2, 1]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
@pytest.mark.parametrize("name", ["targets.npy", "manifest.json"])
def test_a_pipe_in_place_of_a_cached_file_does_not_wait(name: str) -> None:
    load(Counting())
    (only_entry() / name).unlink()
    os.mkfifo(only_entry() / name)
    with pytest.warns(CacheWarning, match="not a regular file"):
        load(Counting())


def test_no_temporary_folder_remains() -> None:
    load(Counting())
    assert sorted(path.name for path in only_entry().iterdir()) == [
        "groups.length.npy", "inputs.x.offsets.npy", "inputs.x.values.npy", "manifest.json", "targets.npy",
    ]  # fmt: skip


def test_without_a_cache_folder_the_split_is_generated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.write_text("not a folder")
    monkeypatch.setenv("ARCHLANG_CACHE", str(file))
    task = Counting()
    with pytest.warns(CacheWarning):
        assert len(load(task)) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other owners")
def test_splits_that_others_can_write_are_not_used() -> None:
    task = Counting()
    load(task)
    (cache_folder() / "tasks").chmod(0o777)
    with pytest.warns(CacheWarning, match="another user can write it"):
        load(task)
    assert task.generated == 2


def test_with_a_full_disk_the_split_is_generated_and_nothing_remains(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Folder, "create_file", full)
    task = Counting()
    with pytest.warns(CacheWarning, match=r"No space left.*set ARCHLANG_CACHE"):
        assert len(load(task)) == 2
    assert list((cache_folder() / "tasks").iterdir()) == []


def test_two_processes_may_generate_the_same_split() -> None:
    program = (
        "from archlang.tasks import load, digest\n"
        "from archlang.tasks.listops import ListOps\n"
        "print(digest(load('listops', {}, ListOps(train_size=2000), 'train', 0)))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYTHONWARNINGS": "error"}
    running = [
        subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(2)
    ]
    answers = [process.communicate()[0] for process in running]
    assert [process.returncode for process in running] == [0, 0]
    assert answers[0] == answers[1] != ""
    assert only_entry().name.startswith("listops-train-")


def test_who_needs_an_entry_that_is_being_made_waits_for_it() -> None:
    class Slow(Counting):
        def generate(self, split: str, seed: int) -> Split:
            time.sleep(0.2)
            return super().generate(split, seed)

    task = Slow()
    with ThreadPoolExecutor() as threads:
        first, second = threads.map(lambda _: digest(load(task)), range(2))
    assert (first, task.generated) == (second, 1)


def test_fields_keep_the_order_of_a_models_inputs() -> None:
    task = page("id_sort")(train_size=3)
    for _ in range(2):
        assert list(cache.load("id_sort", {}, task, "train", 0).inputs) == ["source", "id", "target"]
