"""The command as a whole: help, versions, and the exit code of each kind of failure."""

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from importlib import metadata
from pathlib import Path

import pytest

import archlang as package
from archlang.cli.app import app
from archlang.errors import ErrorWithRemedy
from archlang.plan import check as check_module
from archlang.train.record import summaries
from tests.cli.conftest import GOOD, Command

COMMANDS = [info.name for info in app.registered_commands if info.name]


def test_help_lists_every_command(archlang: Command) -> None:
    result = archlang("--help")
    assert result.code == 0
    assert [name for name in COMMANDS if name not in result.out] == []
    assert {"check", "fmt", "show", "explain", "blocks", "tasks", "train", "eval"} <= set(COMMANDS)


def test_help_groups_the_commands_and_says_how_to_begin(archlang: Command) -> None:
    shown = archlang("--help").out
    places = [
        shown.index(part) for part in ("archlang new project", "Write", "Check", "See", "Train", "Share", "docs/")
    ]
    assert places == sorted(places)
    assert " Commands " not in shown


@pytest.mark.parametrize("command", [(), ("train",), ("runs",), ("data", "list")])
def test_help_shows_no_type_beside_a_flag(archlang: Command, command: tuple[str, ...]) -> None:
    lines = archlang(*command, "--help").out.lower().splitlines()
    own = [line for line in lines if not re.search("--help|-completion", line)]  # those are typer's
    assert not [line for line in own if "bool" in line]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_with_an_example(archlang: Command, command: str) -> None:
    result = archlang(command, "--help")
    assert result.code == 0
    assert f"Example: archlang {command}" in result.out


@pytest.mark.parametrize("command", [("summary",), ("data", "show"), ("new",)])
def test_the_lines_of_help_are_as_long_as_the_terminal_is_wide(
    archlang: Command, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    description, *_ = archlang(*command, "--help").out.split("Example:")
    # The usage is wrapped where the command has a long name, as that of `python -m pytest`.
    lines = [line.strip() for line in description.splitlines()[2:]]
    assert all(line.endswith(".") for line in lines if line not in ("", "{name}"))


def test_the_version_is_that_of_the_package_and_of_what_it_runs_with(archlang: Command) -> None:
    first, torch, python, _ = archlang("--version").out.splitlines()
    expected = (
        f"archlang {package.__version__}",
        f"torch {metadata.version('torch')}",
        f"Python {sys.version.split()[0]}",
    )
    assert (first, torch, python) == expected


def test_the_version_says_where_torch_is_missing(archlang: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    assert "torch is not installed" in archlang("--version").out


@pytest.mark.parametrize(
    "arguments", [(), ("chekc",), ("check",), ("check", "--nonsense", "x.arch"), ("train", "x.arch", "--steps", "0")]
)
def test_a_wrong_command_line_ends_with_2(archlang: Command, arguments: tuple[str, ...]) -> None:
    assert archlang(*arguments).code == 2


def test_a_misspelt_command_is_guessed(archlang: Command) -> None:
    assert "check" in archlang("chekc").err


def test_an_error_of_the_user_is_a_message_with_a_remedy(
    archlang: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: Path, allow: object) -> None:
        raise ErrorWithRemedy("no [bold]such\\[thing\\", "try [/] another\x1b[2J")

    monkeypatch.setattr(check_module, "check", fail)
    result = archlang("check", "good.arch")
    assert (result.code, result.out) == (1, "")
    assert result.err == "error: no [bold]such\\[thing\\\n  help: try [/] another\ufffd[2J\n"


def test_our_own_mistake_is_one_line_that_names_the_file_and_a_traceback_on_request(
    archlang: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ARCHLANG_CACHE", str(folder / "cache"))
    assert "No internal error is kept" in archlang("bug").out

    def fail(path: Path, allow: object) -> None:
        raise RuntimeError("[boom]")

    monkeypatch.setattr(check_module, "check", fail)
    monkeypatch.delenv("ARCHLANG_DEBUG", raising=False)
    result = archlang("check", "good.arch")
    assert (result.code, result.out) == (70, "")
    assert result.err.startswith("error: good.arch: internal error: RuntimeError: [boom]\n")
    assert "`archlang bug`" in result.err
    report = archlang("bug")
    for part in (f"torch {metadata.version('torch')}", "`archlang check good.arch`", GOOD, "RuntimeError: [boom]"):
        assert part in report.out
    assert "issue" in report.err
    monkeypatch.setenv("ARCHLANG_DEBUG", "1")
    with pytest.raises(RuntimeError):
        archlang("check", "good.arch")


def test_an_error_before_anything_can_be_printed_is_of_the_machine(
    archlang: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "archlang.cli.console", None)  # as where memory is short
    result = archlang("--version")
    assert result.code == 71
    assert result.err.startswith("error: archlang cannot be imported: ModuleNotFoundError: ")
    assert "\n  help: close other programs" in result.err


def test_an_interrupt_ends_with_130(archlang: Command, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(path: Path, allow: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(check_module, "check", stop)
    assert archlang("check", "good.arch").code == 130


def test_a_request_to_end_that_a_library_swallows_is_no_bug(
    archlang: Command, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def swallow(path: Path) -> None:
        with suppress(SystemExit):
            signal.raise_signal(signal.SIGTERM)
        raise ImportError("cannot load module more than once per process")

    monkeypatch.setattr(summaries, "find_runs", swallow)
    result = archlang("runs", "list", str(folder))
    assert (result.code, result.err) == (143, "")


def test_output_of_python_m_archlang_is_utf_8_in_every_locale() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "archlang", "blocks", "geometric_attention"], capture_output=True, check=False,
        env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    assert "σ" in done.stdout.decode("utf-8")
