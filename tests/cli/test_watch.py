"""`archlang watch` checks a program again when it, or a file that it uses, is saved."""

import time
from pathlib import Path

import pytest

from tests.cli.conftest import BAD, GOOD, Command

USER = 'use "./mine.arch"\nblock b(h: seq[n, d]) -> seq[n, d] { return layer(h) }\n'


def test_a_program_is_checked_again_when_a_used_file_is_saved(
    archlang: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("user.arch").write_text(USER, encoding="utf-8")
    saves = iter([("mine.arch", GOOD), ("mine.arch", BAD), ("mine.arch", None), ("user.arch", GOOD)])

    def save(seconds: float) -> None:
        name, text = next(saves, ("", None))
        if not name:
            raise KeyboardInterrupt
        Path(name).unlink() if text is None else Path(name).write_text(text, encoding="utf-8")

    monkeypatch.setattr(time, "sleep", save)
    Path("mine.arch").write_text(GOOD + "\n", encoding="utf-8")
    result = archlang("watch", "user.arch")
    assert result.code == 130
    results = [line.split(": ")[1] for line in result.out.splitlines()]
    assert results == ["no errors", "no errors", "1 error", "1 error", "no errors"]
    assert "nrom" in result.err
