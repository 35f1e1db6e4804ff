"""The command as a user starts it, in a folder with a few programs."""

import io
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner

from archlang.cli.app import app
from archlang.cli.main import main
from tests.tiny_run import TASK

GOOD = "block layer(h: seq[n, d]) -> seq[n, d] {\n    return norm(h)\n}\n"
BAD = "block layer(h: seq[n, d]) -> seq[n, d] {\n    return nrom(h)\n}\n"
UGLY = "block layer ( h:seq[n,d] )->seq[n,d]{ # why\nreturn   norm( h ) }"
BROKEN = "block {"
MODEL = """model m[d = 8](x: tokens[n]) -> logits[classes] {
    return embed[d](x) |> last |> linear[classes]
}

recipe r {
    task  ctl
    model m
    train adamw[steps = 1]
}

recipe wide {
    task  ctl
    model m[d = 16]
    train adamw[steps = 1]
}
"""

# The beginning of a program that trains in a fraction of a second; the recipe is still open.
TINY = """
model tiny[d = 8](x: tokens[n]) -> logits[classes] {
    return embed[d](x) |> mean |> linear[classes]
}

recipe tiny {
    task  TASK
    model tiny
    train adamw[lr = 1e-2, batch = 8, steps = 4]
""".replace("TASK", TASK)


@dataclass(frozen=True)
class CommandResult:
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str


Command = Callable[..., CommandResult]


@pytest.fixture(scope="module")
def train_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Path]:
    """Returns a function that trains a program into a folder below the returned one, once for the tests of a file."""

    @cache
    def train(program: str, out: str) -> Path:
        folder = tmp_path_factory.mktemp("trained")
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            (folder / "tiny.arch").write_text(program)
            result = CliRunner().invoke(app, ["train", "tiny.arch", "--device", "cpu", "--out", out])
        assert result.exit_code == 0, result.output
        return folder

    return train


@pytest.fixture(scope="session")
def claimed_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run with a claim, to be copied."""
    from archlang.plan.from_file import plan_recipe  # imports numpy
    from archlang.train.runs import training  # imports torch

    folder = tmp_path_factory.mktemp("claimed")
    (folder / "tiny.arch").write_text(TINY + '    claim test.accuracy[5] = 1.00 ± 0.02 from "nobody"\n}\n')
    training.train(plan_recipe(folder / "tiny.arch"), folder / "run", device="cpu")
    return folder / "run"


@pytest.fixture
def archlang(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Returns a function that runs a command line; `stdin` is its standard input."""

    def run(*arguments: str, stdin: bytes = b"") -> CommandResult:
        monkeypatch.setattr(sys, "argv", ["archlang", *arguments])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as end:
            main()
        code = end.value.code
        assert isinstance(code, int)
        return CommandResult(code, *capsys.readouterr())

    return run


@pytest.fixture(autouse=True)
def _in_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The working folder, with programs that are good, bad, ugly and broken, and one with recipes."""
    programs = {"good": GOOD, "bad": BAD, "ugly": UGLY, "broken": BROKEN, "model": MODEL}
    for name, text in programs.items():
        (tmp_path / f"{name}.arch").write_text(text, encoding="utf-8")
    return tmp_path
