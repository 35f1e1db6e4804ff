"""The shell completes programs, recipes, run folders, and names of the library."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import MODEL, Command

Complete = Callable[..., list[str]]


@pytest.fixture
def complete(archlang: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Complete:
    """Returns a function that completes the last word of a command line, in a folder with a program and a run."""
    monkeypatch.chdir(tmp_path)
    Path("mine.arch").write_text(MODEL, encoding="utf-8")
    Path("notes.txt").touch()
    Path("runs/first").mkdir(parents=True)
    Path("runs/first/run.json").touch()

    def run(*words: str) -> list[str]:
        monkeypatch.setenv("_ARCHLANG_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", " ".join(["archlang", *words]))
        monkeypatch.setenv("COMP_CWORD", str(len(words)))
        return archlang().out.split()

    return run


@pytest.mark.parametrize(
    ("words", "completions"),
    [
        (("check", "mi"), {"mine.arch", "mixed/chunked_pointers"}),
        (("train", "gut"), {"gut", "gutlb"}),
        (("train", "mine.arch", "w"), {"wide"}),
        (("train", "gutlb", "b"), {"baseline"}),
        (("eval", "ru"), {"runs/"}),
        (("blocks", "geometric"), {"geometric_attention"}),
        (("blocks", "pan"), {"panm"}),
        (("tasks", "ct"), {"ctl"}),
        (("optimizers", "adam"), {"adam", "adamw"}),
        (("explain", "E050"), {"E0501"}),
        (("new", "b"), {"block"}),
        (("recipes", "papers/ndr/t"), {"papers/ndr/table1"}),
    ],
)
def test_a_word_is_completed(words: tuple[str, ...], completions: set[str], complete: Complete) -> None:
    assert completions <= set(complete(*words))


def test_run_folders_are_offered_first(complete: Complete) -> None:
    assert complete("inspect", "") == ["runs/first"]


def test_other_files_are_not_programs(complete: Complete) -> None:
    assert complete("check", "no") == []
