"""`archlang data`, and the confirmation before training."""

import hashlib
import json
import lzma
from pathlib import Path
from types import MappingProxyType

import pytest

from archlang.cli import data
from archlang.data import fetch, registry, store
from archlang.data.registry import Dataset, Digest, OfficialFile
from archlang.errors.terminal import Terminal
from archlang.tasks.scan import commands
from tests.cli.conftest import Command

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
    """The folder of data sets; there is one data set with two files."""
    monkeypatch.setenv("ARCHLANG_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("ARCHLANG_CACHE", str(tmp_path / "cache"))
    lines = [
        ("scan", name, str(len(content)), f"sha256:{hashlib.sha256(content).hexdigest()}", name)
        for name, content in FILES.items()
    ]
    monkeypatch.setattr(registry, "_lines", lambda: lines)
    datasets = {"scan": Dataset("scan", "commands", ("scan",), "http://nowhere", "BSD", "http://home", {})}
    for module in (registry, store):
        monkeypatch.setattr(module, "DATASETS", MappingProxyType(datasets))
    return tmp_path / "data" / "scan"


@pytest.fixture
def net(monkeypatch: pytest.MonkeyPatch, place: Path) -> list[str]:
    """A server with the files. Returns the requests."""
    asked: list[str] = []

    def served(file: OfficialFile, watcher: fetch.DownloadWatcher) -> tuple[Path, Digest]:
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


def test_list_shows_local_files_and_their_folder(archlang: Command, place: Path) -> None:
    put(place, "tasks_test_simple.txt", TEST)
    result = archlang("data", "list")
    assert "1 of 2 here" in result.out
    assert str(place.parent) in result.out
    content = json.loads(archlang("data", "list", "--json").out)
    assert content["folder"] == str(place.parent)
    (dataset,) = content["datasets"]
    assert (dataset["name"], dataset["files"], dataset["at_hand"], dataset["licence"]) == ("scan", 2, 1, "BSD")


def test_get_fetches_the_named_files_and_prints_their_paths(archlang: Command, net: list[str], place: Path) -> None:
    result = archlang("data", "get", "scan", "tasks_test_simple.txt")
    assert net == ["tasks_test_simple.txt"]
    assert str(place / "tasks_test_simple.txt") in result.out
    assert "licence: BSD" in result.out
    content = json.loads(archlang("data", "get", "scan", "--json").out)
    assert [file["member"] for file in content] == list(FILES)
    assert all(file["digest"].startswith("sha256:") for file in content)


def test_verify_refuses_a_damaged_file_by_name_and_digest(archlang: Command, place: Path) -> None:
    put(place, "tasks_test_simple.txt.xz", lzma.compress(TEST))
    put(place, "tasks_train_simple.txt", CONTENT[:-1])
    result = archlang("data", "verify")
    assert result.code == 1
    assert "right      scan/tasks_test_simple.txt" in result.out
    assert "damaged    scan/tasks_train_simple.txt" in result.out
    assert hashlib.sha256(CONTENT).hexdigest() in result.err
    assert hashlib.sha256(CONTENT[:-1]).hexdigest() in result.err
    states = [file["state"] for file in json.loads(archlang("data", "verify", "scan", "--json").out)]
    assert states == ["damaged", "right"]


def test_verify_accepts_missing_files(archlang: Command, place: Path) -> None:
    result = archlang("data", "verify", "scan")
    assert result.code == 0
    assert f"missing    scan/tasks_test_simple.txt  expected at {place / 'tasks_test_simple.txt'}" in result.out
    assert "0 of 2 files are present" in result.out


def test_path_prints_a_folder_or_an_existing_file(archlang: Command, place: Path) -> None:
    assert archlang("data", "path").out == f"{place.parent}\n"
    assert archlang("data", "path", "scan").out == f"{place}\n"
    result = archlang("data", "path", "scan", "tasks_test_simple.txt")
    assert result.code == 1
    assert "archlang data get scan tasks_test_simple.txt" in result.err
    put(place, "tasks_test_simple.txt.xz", lzma.compress(TEST))
    assert archlang("data", "path", "scan", "tasks_test_simple.txt").out == f"{place / 'tasks_test_simple.txt.xz'}\n"


# show


def test_show_prints_sizes_histograms_and_examples(archlang: Command) -> None:
    result = archlang("data", "show", "scan[split = length]", "--set", "cutoff=40", "--split", "test")
    assert (result.code, result.err) == (0, "")
    assert "128" in result.out
    assert "beyond" in result.out
    assert "█" in result.out
    assert "I_TURN_LEFT" in result.out


def test_show_prints_the_same_as_json(archlang: Command) -> None:
    content = json.loads(archlang("data", "show", "scan", "--json", "--examples", "1").out)
    assert (content["task"], content["kind"], content["statics"]["split"]) == ("scan", "sequence to sequence", "simple")
    test = content["splits"]["test"]
    assert test["items"] == 4_182
    assert sum(count for _, _, count in test["histogram"]["bars"]) == 4_182
    assert sum(test["groups"]["length"].values()) == 4_182
    assert len(test["examples"]) == 1


def test_show_says_which_items_of_a_stream_are_the_first(archlang: Command, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text('{"text": "so much depends"}\n' * 30)
    task = f'text[path = "{tmp_path}/a.jsonl", valid = "{tmp_path}/b.jsonl", stream = 100]'
    result = archlang("data", "show", task)
    assert (result.code, result.err) == (0, "")
    assert "the first 7 of a stream" in result.out
    splits = json.loads(archlang("data", "show", task, "--json").out)["splits"]
    assert splits["train"]["stream"].startswith("1 file, ")
    assert "stream" not in splits["valid"]


def test_show_underlines_an_error_in_a_task(archlang: Command) -> None:
    result = archlang("data", "show", "scan[splitt = length]")
    assert result.code == 1
    assert "E0301" in result.err
    assert "task scan[splitt = length]" in result.err
    assert "no split" in archlang("data", "show", "scan", "--split", "valid").err


def test_show_names_a_missing_file(archlang: Command, net: list[str]) -> None:
    result = archlang("data", "show", "scan[data = files]")
    assert (result.code, net) == (1, [])
    assert "archlang data get scan" in result.err


# Nothing is fetched unasked


@pytest.fixture
def program(tmp_path: Path) -> str:
    (tmp_path / "r.arch").write_text(PROGRAM)
    return "r.arch"


def test_without_a_terminal_train_fetches_nothing_and_names_the_command(
    archlang: Command, net: list[str], program: str, tmp_path: Path
) -> None:
    result = archlang("train", program, "--device", "cpu", "--out", "run")
    assert (result.code, net) == (1, [])
    assert "2 files of scan" in result.err
    assert "archlang data get scan" in result.err
    assert "--yes" in result.err
    assert not (tmp_path / "run").exists()


def test_with_yes_train_fetches_and_trains(archlang: Command, net: list[str], program: str) -> None:
    result = archlang("train", program, "--device", "cpu", "--out", "run", "--yes")
    assert result.code == 0
    assert net == list(FILES)


@pytest.mark.parametrize(("answer", "code", "fetched"), [("y\n", 0, list(FILES)), ("n\n", 1, []), ("\n", 1, [])])
def test_on_a_terminal_train_asks_for_confirmation(
    archlang: Command, net: list[str], program: str, answer: str, code: int, fetched: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(data, "_may_ask", lambda: True)
    result = archlang("train", program, "--device", "cpu", "--out", "run", stdin=answer.encode())
    assert (result.code, net) == (code, fetched)
    assert "http://nowhere/tasks_train_simple.txt, licence: BSD" not in result.err
    assert "http://nowhere/tasks_train_simple.txt" in result.out


def test_a_table_asks_once_for_all_its_rows(archlang: Command, net: list[str], program: str) -> None:
    result = archlang("table", program, "--seeds", "2", "--out", "runs")
    assert (result.code, net) == (1, [])
    assert result.err.count("archlang data get scan") == 1


def test_files_at_hand_are_not_asked_for(archlang: Command, net: list[str], program: str, place: Path) -> None:
    for name, content in FILES.items():
        put(place, name, content)
    assert archlang("train", program, "--device", "cpu", "--out", "run").code == 0
    assert net == []


# The bar


def test_on_a_terminal_a_bar_moves_and_waiting_is_announced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shown = Terminal(force_terminal=True, width=100, file=(tmp_path / "out").open("w"))
    file = registry.DATASETS["scan"].files[0]

    def slow(file: OfficialFile, watcher: fetch.DownloadWatcher) -> tuple[Path, Digest]:
        watcher.waiting()
        watcher.moved(500_000, 1_000_000)
        assert file.digest is not None
        return tmp_path, file.digest

    monkeypatch.setattr(fetch, "fetch", slow)
    ((got, place, _),) = data.fetch_all([file], shown)
    shown.file.close()
    assert (got, place) == (file, tmp_path)
    assert "another process is fetching tasks_train_simple.txt" in (tmp_path / "out").read_text()
