"""Every row of `docs/exit-codes.md`, from a shell as a user has it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from archlang.errors import MachineError
from archlang.export import mistakes as export_mistakes
from archlang.reports.pages import library_missing
from tests.cli.conftest import GOOD, MODEL, TINY, Command

PAGE = Path(__file__).parents[2] / "docs" / "exit-codes.md"
# By the words of the page, a command of a shell that meets the fault. `archlang` is the command. Faults that a shell
# cannot cause for the superuser are tested below by raising their error.
FAULTS = {
    "standard output is full": "archlang check good.arch > /dev/full",
    "standard output is closed": "archlang check good.arch >&-",
    "standard input is closed": "archlang fmt - <&-",
    "standard error is closed": "archlang check missing.arch 2>&-",
    "the current folder has been deleted": "mkdir gone; cd gone; rmdir ../gone; archlang check good.arch",
    "the limit on the size of files is reached": "ulimit -f 0; archlang viz model.arch --out picture.svg",
    "the memory is too small to begin": "ulimit -v 50000; archlang check good.arch",
    "the reader of standard output has gone": "(archlang blocks --json; echo $? > code) | true; exit $(cat code)",
    "the path of a file is wrong": "archlang viz model.arch --out good.arch/picture.svg",
    "the cache folder cannot be written": "XDG_CACHE_HOME=/proc/none archlang check good.arch",
    "there is no home folder": "unset HOME XDG_CACHE_HOME; archlang check good.arch",
    "the locale knows only ASCII": "LC_ALL=C PYTHONUTF8=0 PYTHONCOERCECLOCALE=0 archlang blocks geometric_attention",
    "the terminal has no width": "COLUMNS=0 archlang tasks ctl",
}
# Faults that do not end a command; each costs the start of a process.
SLOW = {
    "standard input is closed", "the path of a file is wrong", "the cache folder cannot be written",
    "there is no home folder", "the locale knows only ASCII", "the terminal has no width",
}  # fmt: skip
RAISED: dict[str, Exception] = {
    "a file may not be written": PermissionError(13, "Permission denied", "runs"),
    "no further thread can start": RuntimeError("can't start new thread"),
    "a Python package is missing": ModuleNotFoundError("No module named 'torch._higher_order_ops'", name="torch"),
}
BUGS = (FileNotFoundError(2, "No such file", "x"), OSError("odd"), ModuleNotFoundError("x"))
# Tested with the runs that they are about.
ELSEWHERE = {
    "a run folder may not be read", "another process uses the run folder", "the device does not exist",
    "the model does not fit into memory",
}  # fmt: skip


def rows() -> dict[str, int]:
    """Returns the exit codes of the page's second table."""
    table = PAGE.read_text(encoding="utf-8").partition("## What counts as the machine")[2]
    return {fault: int(code) for fault, code in re.findall(r"^\| (.+) \| (\d+) \|$", table, re.MULTILINE)}


def shell(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs a script in a folder that has `good.arch` and `model.arch`. Its standard input is empty."""
    (folder / "good.arch").write_text(GOOD, encoding="utf-8")
    (folder / "model.arch").write_text(MODEL, encoding="utf-8")
    prelude = f'archlang() {{ "{sys.executable}" -m archlang "$@"; }}\n'
    return subprocess.run(
        ["bash", "-c", prelude + script],
        cwd=folder,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=False,
    )


def test_every_fault_of_the_page_is_tested() -> None:
    assert set(rows()) == {*FAULTS, *RAISED, *ELSEWHERE}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("fault", [pytest.param(fault, marks=[pytest.mark.slow] * (fault in SLOW)) for fault in FAULTS])
def test_a_fault_ends_with_its_code_and_is_never_called_a_bug(fault: str, tmp_path: Path) -> None:
    done = shell(FAULTS[fault], tmp_path)
    assert done.returncode == rows()[fault], done.stderr
    assert "internal error" not in done.stderr
    assert "Traceback" not in done.stderr
    if done.returncode == 71:
        assert re.match(r"error: .+\n  help: .+\n$", done.stderr)


@pytest.mark.parametrize(
    ("error", "fault"), [*((error, fault) for fault, error in RAISED.items()), *((error, None) for error in BUGS)]
)
def test_an_error_of_the_machine_ends_with_its_code_and_others_are_bugs(
    error: Exception, fault: str | None, archlang: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.delenv("ARCHLANG_DEBUG", raising=False)
    monkeypatch.setattr("archlang.plan.check.check", fail)
    result = archlang("check", "good.arch")
    assert result.code == (70 if fault is None else rows()[fault])
    assert re.match(r"error: .+\n  help: .+\n$", result.err)


def test_another_process_in_the_run_folder_is_of_the_machine(archlang: Command, folder: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    (folder / "tiny.arch").write_text(TINY + "}\n", encoding="utf-8")
    (folder / "run").mkdir()
    with (folder / "run" / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        result = archlang("train", "tiny.arch", "--out", "run", "--device", "cpu")
    assert result.code == rows()["another process uses the run folder"]
    assert "another process is training in run\n  help: wait for it" in result.err
    assert os.listdir(folder / "run") == [".lock"]


def refuse(*_: object) -> None:
    raise PermissionError(13, "Permission denied", "run")


@pytest.mark.parametrize(
    ("fault", "name", "fake", "command"),
    [
        ("the model does not fit into memory", "train.runs.training.available_memory", lambda: 100, "train tiny.arch"),
        ("a run folder may not be read", "disk.folder.Folder.open", refuse, "runs show run"),
    ],
)
def test_a_fault_of_the_machine_writes_nothing_and_is_not_called_damage(
    fault: str, name: str, fake: object, command: str, archlang: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "tiny.arch").write_text(TINY + "}\n", encoding="utf-8")
    monkeypatch.setattr(f"archlang.{name}", fake)
    result = archlang(*command.split())
    assert result.code == rows()[fault]
    assert "damaged" not in result.err.replace("nothing says that it is damaged", "")
    assert not (folder / "runs").exists()


@pytest.mark.parametrize(
    "error", [export_mistakes.packages_missing(["onnx"]), library_missing("pictures", "resvg")], ids=["export", "pages"]
)
def test_a_missing_package_is_the_fault_of_the_machine(error: Exception) -> None:
    assert isinstance(error, MachineError)
