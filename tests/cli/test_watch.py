"""`archlang watch` checks a program again when it, or a file that it uses, is saved."""

import os
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby, permutations
from pathlib import Path

import pytest

from tests.cli.conftest import BAD, GOOD, Command

USER = 'use "./mine.arch"\nblock b(h: seq[n, d]) -> seq[n, d] { return layer(h) }\n'


Change = Callable[[], object]


def change_while_waiting(monkeypatch: pytest.MonkeyPatch, changes: Sequence[Change]) -> None:
    """Makes a change each few looks at the files, and then ends the command."""
    steps = iter([step for change in changes for step in (None, None, change, None, None)])

    def change_next(seconds: float) -> None:
        try:
            step = next(steps)
        except StopIteration:
            raise KeyboardInterrupt from None
        if step is not None:
            step()

    monkeypatch.setattr(time, "sleep", change_next)


def save_while_waiting(monkeypatch: pytest.MonkeyPatch, saves: Sequence[tuple[str, str | None]]) -> None:
    """Saves a text, or deletes a file, each few looks at the files, and then ends the command."""

    def save(name: str, text: str | None) -> None:
        Path(name).unlink() if text is None else Path(name).write_text(text, encoding="utf-8")

    change_while_waiting(monkeypatch, [partial(save, *each) for each in saves])


def test_a_folder_is_refused_at_once(archlang: Command, tmp_path: Path) -> None:
    result = archlang("watch", str(tmp_path))
    assert result.code == 2
    assert "is a folder" in result.err


def test_a_program_that_is_not_there_is_not_waited_for(archlang: Command, tmp_path: Path) -> None:
    result = archlang("watch", str(tmp_path / "missing.arch"))
    assert result.code == 1
    assert "E0108" in result.err + result.out


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


State = tuple[Callable[[Path], object], str]
# What can be at a path, each with a part of its answer.
STATES: dict[str, State] = {
    "a text": (lambda path: path.write_text(GOOD, encoding="utf-8"), "no errors"),
    "a link to a text": (lambda path: path.symlink_to("good.arch"), "no errors"),
    "a link to a mistake": (lambda path: path.symlink_to("bad.arch"), "nrom"),
    "a link to nothing": (lambda path: path.symlink_to("nothing.arch"), "there is no"),
    "a link to itself": (lambda path: path.symlink_to(path.name), "symbolic links"),
    "too large": (lambda path: path.write_bytes(b"#" * 1_000_001), "is larger than"),
    "not UTF-8": (lambda path: path.write_bytes(b"\xff"), "byte 0"),
    "not UTF-8 later": (lambda path: path.write_bytes(b"#\xff"), "byte 1"),
    "a pipe": (lambda path: os.mkfifo(path), "not a regular file"),
    "a device": (lambda path: path.symlink_to("/dev/zero"), "not a regular file"),
    "a folder": (lambda path: path.mkdir(), "it is a folder"),
}
# As above, where another file names the path.
USED_STATES: dict[str, State] = {
    **STATES,
    "a link to nothing": (STATES["a link to nothing"][0], "not a regular file"),
    "a link to itself": (STATES["a link to itself"][0], "not a regular file"),
    "a device": (STATES["a device"][0], "is outside"),
    "a folder": (STATES["a folder"][0], "not a regular file"),
    "a link to a file outside": (lambda path: path.symlink_to("../outside.arch"), "is outside"),
    "a link to another kind of file": (lambda path: path.symlink_to("good.txt"), "is not an `.arch` file"),
}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
@pytest.mark.parametrize(("file", "states"), [("a.arch", STATES), ("user.arch", USED_STATES)])
def test_each_state_of_a_file_is_answered_after_each_other(
    file: str, states: dict[str, State], archlang: Command, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    for path, text in (("good.arch", f"\n{GOOD}"), ("good.txt", GOOD), ("bad.arch", BAD), ("../outside.arch", GOOD)):
        Path(path).write_text(text, encoding="utf-8")
    Path("a.arch").write_text(f"{GOOD}\n\n", encoding="utf-8")
    Path("user.arch").write_text(USER.replace("mine", "a"), encoding="utf-8")
    order = [state for state, _ in groupby(state for pair in permutations(states, 2) for state in pair)]
    answers: list[str] = []

    def change(state: str) -> None:
        answers.append("".join(capsys.readouterr()))
        replace(Path("a.arch"), states[state][0])

    change_while_waiting(monkeypatch, [partial(change, state) for state in order])
    last = archlang("watch", file)
    answers = [*answers[1:], last.out + last.err]
    wrong = [(state, answer) for state, answer in zip(order, answers, strict=True) if states[state][1] not in answer]
    assert wrong == []


def replace(path: Path, make: Callable[[Path], object]) -> None:
    """Replaces what is at a path."""
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    else:
        path.unlink(missing_ok=True)
    make(path)
