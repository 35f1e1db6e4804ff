"""`archlang watch` checks a program again when it, or a file that it uses, is saved."""

import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cli.conftest import BAD, GOOD, Command

USER = 'use "./mine.arch"\nblock b(h: seq[n, d]) -> seq[n, d] { return layer(h) }\n'


def save_while_waiting(monkeypatch: pytest.MonkeyPatch, saves: Sequence[tuple[str, str | None]]) -> None:
    """Saves a text, or deletes a file, each few looks at the files, and then ends the command."""
    quiet = ("", None)
    steps = iter([step for save in saves for step in (quiet, quiet, save, quiet, quiet)])

    def save_next(seconds: float) -> None:
        step = next(steps, None)
        if step is None:
            raise KeyboardInterrupt
        name, text = step
        if name:
            Path(name).unlink() if text is None else Path(name).write_text(text, encoding="utf-8")

    monkeypatch.setattr(time, "sleep", save_next)


def test_a_program_is_checked_again_when_a_used_file_is_saved(
    archlang: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("user.arch").write_text(USER, encoding="utf-8")
    save_while_waiting(monkeypatch, [("mine.arch", GOOD), ("mine.arch", BAD), ("mine.arch", None), ("user.arch", GOOD)])
    Path("mine.arch").write_text(GOOD + "\n", encoding="utf-8")
    result = archlang("watch", "user.arch")
    assert result.code == 130
    results = [line.split(": ")[1] for line in result.out.splitlines()]
    assert results == ["no errors", "no errors", "1 error", "1 error", "no errors"]
    assert "nrom" in result.err


def test_a_mistake_is_printed_once_by_a_save_in_two_steps(
    archlang: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.arch").write_text(GOOD, encoding="utf-8")
    steps = iter(["", BAD, None, None, None, BAD, None, None])

    def save(seconds: float) -> None:
        try:
            text = next(steps)
        except StopIteration:
            raise KeyboardInterrupt from None
        if text is not None:
            Path("bad.arch").write_text(text, encoding="utf-8")

    monkeypatch.setattr(time, "sleep", save)
    result = archlang("watch", "bad.arch")
    assert [line.split(": ")[1] for line in result.out.splitlines()] == ["no errors", "1 error"]
    assert result.err.count("nrom(h)") == 1


def test_a_program_is_checked_again_when_a_missing_file_that_it_uses_is_written(
    archlang: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("user.arch").write_text(USER, encoding="utf-8")
    save_while_waiting(monkeypatch, [("mine.arch", GOOD)])
    result = archlang("watch", "user.arch")
    assert [line.split(": ")[1] for line in result.out.splitlines()] == ["1 error", "no errors"]
