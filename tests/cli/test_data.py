"""`archlang data`, and the question before a training, as a user meets them."""

from __future__ import annotations

import hashlib
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from rich.console import Console

from archlang.cli import downloads
from archlang.data import fetch, registry, required_files, store
from archlang.data.digests import Digest
from archlang.data.registry import Dataset, OfficialFile
from archlang.tasks.scan import commands

Command = Callable[..., Any]  # Any: what the fixture of conftest.py gives

CONTENT = "".join(f"IN: {' '.join(words)} OUT: {' '.join(done)}\n" for words, done in commands()).encode()
TEST = b"IN: walk OUT: I_WALK\nIN: jump OUT: I_JUMP\n"
FILES = {"tasks_train_simple.txt": CONTENT, "tasks_test_simple.txt": TEST}
PROGRAM = """
model small[d = 4](source: tokens[n], target: tokens[m]) -> logits[m, vocab] {
    return linear[vocab](embed[d](target))
}
recipe r {
    task  scan[data = files]
    model small
    train adamw[batch = 64, steps = 1, select = test.accuracy]
}
"""


@pytest.fixture(autouse=True)
def place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of data sets, of which there is one, with two files."""
    monkeypatch.setenv("ARCHLANG_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("ARCHLANG_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    lines = [
        ("scan", name, str(len(content)), f"sha256:{hashlib.sha256(content).hexdigest()}", name)
        for name, content in FILES.items()
    ]
    monkeypatch.setattr(registry, "_lines", lambda: lines)
    known = {"scan": Dataset("scan", "commands", ("scan",), "http://nowhere", "BSD", "http://home", {})}
    for module in (registry, store, required_files):
        monkeypatch.setattr(module, "DATASETS", MappingProxyType(known))
    return tmp_path / "data" / "scan"


@pytest.fixture
def net(monkeypatch: pytest.MonkeyPatch, place: Path) -> list[str]:
    """A net that has the files. What was asked of it."""
    asked: list[str] = []

    def served(file: OfficialFile, watcher: fetch.Watcher) -> tuple[Path, Digest]:
        asked.append(file.member)
        content = FILES[file.member]
        watcher.moved(len(content), len(content))
        place.mkdir(parents=True, exist_ok=True)
        (place / file.member).write_bytes(content)
        assert file.digest is not None
        return place / file.member, file.digest

    monkeypatch.setattr(fetch, "fetch", served)
    return asked


def put(place: Path, name: str, content: bytes) -> None:
    place.mkdir(parents=True, exist_ok=True)
    (place / name).write_bytes(content)


# list, get, verify and path


def test_list_says_what_is_at_hand_and_where_it_lies(archlang: Command, place: Path) -> None:
    put(place, "tasks_test_simple.txt", TEST)
    said = archlang("data", "list")
    assert "1 of 2 here" in said.out
    assert str(place.parent) in said.out
    told = json.loads(archlang("data", "list", "--json").out)
    assert told["folder"] == str(place.parent)
    (one,) = told["datasets"]
    assert (one["name"], one["files"], one["at_hand"], one["licence"]) == ("scan", 2, 1, "BSD")


def test_get_fetches_what_is_named_and_says_where_it_is(archlang: Command, net: list[str], place: Path) -> None:
    said = archlang("data", "get", "scan", "tasks_test_simple.txt")
    assert net == ["tasks_test_simple.txt"]
    assert str(place / "tasks_test_simple.txt") in said.out
    assert "licence: BSD" in said.out
    told = json.loads(archlang("data", "get", "scan", "--json").out)
    assert [one["member"] for one in told] == list(FILES)
    assert all(one["digest"].startswith("sha256:") for one in told)


def test_get_of_an_unknown_set_offers_the_near_one(archlang: Command, net: list[str]) -> None:
    said = archlang("data", "get", "scam")
    assert (said.code, net) == (1, [])
    assert "did you mean `scan`?" in said.err


def test_verify_refuses_a_damaged_file_by_name_and_digest(archlang: Command, place: Path) -> None:
    put(place, "tasks_test_simple.txt.xz", lzma.compress(TEST))
    put(place, "tasks_train_simple.txt", CONTENT[:-1])
    said = archlang("data", "verify")
    assert said.code == 1
    assert "right      scan/tasks_test_simple.txt" in said.out
    assert "damaged    scan/tasks_train_simple.txt" in said.out
    assert hashlib.sha256(CONTENT).hexdigest() in said.err
    assert hashlib.sha256(CONTENT[:-1]).hexdigest() in said.err
    states = [one["state"] for one in json.loads(archlang("data", "verify", "scan", "--json").out)]
    assert states == ["damaged", "right"]


def test_verify_counts_what_is_not_there_as_no_mistake(archlang: Command, place: Path) -> None:
    said = archlang("data", "verify", "scan")
    assert said.code == 0
    assert f"missing    scan/tasks_test_simple.txt  expected at {place / 'tasks_test_simple.txt'}" in said.out
    assert "0 of 2 files are at hand" in said.out


def test_path_prints_a_folder_or_a_file_that_is_there(archlang: Command, place: Path) -> None:
    assert archlang("data", "path").out == f"{place.parent}\n"
    assert archlang("data", "path", "scan").out == f"{place}\n"
    said = archlang("data", "path", "scan", "tasks_test_simple.txt")
    assert said.code == 1
    assert "archlang data get scan tasks_test_simple.txt" in said.err
    put(place, "tasks_test_simple.txt.xz", lzma.compress(TEST))
    assert archlang("data", "path", "scan", "tasks_test_simple.txt").out == f"{place / 'tasks_test_simple.txt.xz'}\n"


# show


def test_show_prints_sizes_histograms_and_examples(archlang: Command) -> None:
    said = archlang("data", "show", "scan[split = length]", "--set", "cutoff=40", "--split", "test")
    assert (said.code, said.err) == (0, "")
    assert "128" in said.out
    assert "beyond" in said.out
    assert "█" in said.out
    assert "I_TURN_LEFT" in said.out


def test_show_gives_a_script_the_same_as_json(archlang: Command) -> None:
    told = json.loads(archlang("data", "show", "scan", "--json", "--examples", "1").out)
    assert (told["task"], told["kind"], told["statics"]["split"]) == ("scan", "sequence to sequence", "simple")
    test = told["splits"]["test"]
    assert test["items"] == 4_182
    assert sum(count for _, _, count in test["histogram"]["bars"]) == 4_182
    assert sum(test["groups"]["length"].values()) == 4_182
    assert len(test["examples"]) == 1


def test_show_underlines_what_is_wrong_with_a_task(archlang: Command) -> None:
    said = archlang("data", "show", "scan[splitt = length]")
    assert said.code == 1
    assert "E0301" in said.err
    assert "task scan[splitt = length]" in said.err
    assert "no split" in archlang("data", "show", "scan", "--split", "valid").err


def test_show_says_which_file_it_misses(archlang: Command, net: list[str]) -> None:
    said = archlang("data", "show", "scan[data = files]")
    assert (said.code, net) == (1, [])
    assert "archlang data get scan" in said.err


# Nothing is fetched unasked


@pytest.fixture
def program(tmp_path: Path) -> str:
    (tmp_path / "r.arch").write_text(PROGRAM)
    return "r.arch"


def test_without_a_terminal_train_fetches_nothing_and_says_what_to_type(
    archlang: Command, net: list[str], program: str, tmp_path: Path
) -> None:
    said = archlang("train", program, "--device", "cpu", "--out", "run")
    assert (said.code, net) == (1, [])
    assert "2 files of scan" in said.err
    assert "archlang data get scan" in said.err
    assert "--yes" in said.err
    assert not (tmp_path / "run").exists()


def test_with_yes_train_fetches_and_trains(archlang: Command, net: list[str], program: str) -> None:
    said = archlang("train", program, "--device", "cpu", "--out", "run", "--yes")
    assert said.code == 0
    assert net == list(FILES)


@pytest.mark.parametrize(("answer", "code", "fetched"), [("y\n", 0, list(FILES)), ("n\n", 1, []), ("\n", 1, [])])
def test_on_a_terminal_train_asks(
    archlang: Command, net: list[str], program: str, answer: str, code: int, fetched: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(downloads, "_may_ask", lambda: True)
    said = archlang("train", program, "--device", "cpu", "--out", "run", given=answer.encode())
    assert (said.code, net) == (code, fetched)
    assert "http://nowhere/tasks_train_simple.txt, licence: BSD" not in said.err
    assert "http://nowhere/tasks_train_simple.txt" in said.out


def test_a_table_asks_once_for_all_its_rows(archlang: Command, net: list[str], program: str) -> None:
    said = archlang("table", program, "--seeds", "2", "--out", "runs")
    assert (said.code, net) == (1, [])
    assert said.err.count("archlang data get scan") == 1


def test_what_is_at_hand_is_not_asked_for(archlang: Command, net: list[str], program: str, place: Path) -> None:
    for name, content in FILES.items():
        put(place, name, content)
    assert archlang("train", program, "--device", "cpu", "--out", "run").code == 0
    assert net == []


# The bar


def test_on_a_terminal_a_bar_moves_and_another_process_is_waited_for_aloud(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shown = Console(force_terminal=True, width=100, record=True, file=(tmp_path / "out").open("w"))
    file = registry.DATASETS["scan"].files[0]

    def slow(file: OfficialFile, watcher: fetch.Watcher) -> tuple[Path, Digest]:
        watcher.waiting()
        watcher.moved(500_000, 1_000_000)
        assert file.digest is not None
        return tmp_path, file.digest

    monkeypatch.setattr(fetch, "fetch", slow)
    ((got, place, _),) = downloads.fetch_all([file], shown)
    shown.file.close()
    assert (got, place) == (file, tmp_path)
    assert "another process is fetching tasks_train_simple.txt" in (tmp_path / "out").read_text()
