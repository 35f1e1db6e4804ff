"""A run folder from a stranger, with links and pipes in place of its files: no command writes elsewhere or hangs."""

import os
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Command, CommandResult

COMMANDS = {
    "show": ("runs", "show", "run"),
    "list": ("runs", "list", "."),
    "compare": ("runs", "compare", "run", "run"),
    "report": ("report", "run"),
    "eval": ("eval", "run", "--split", "valid", "--device", "cpu"),
    "inspect": ("inspect", "run", "--split", "valid", "--device", "cpu"),
    "resume": ("train", "--resume", "run", "--device", "cpu"),
    "rm": ("runs", "rm", "run", "--yes"),
}
OWN = (
    "recipe.arch", "run.json", "data.json", "graph.txt", "graph_at_test.txt", "metrics.jsonl", "timings.jsonl",
    "vocabulary.json", "results.json", ".lock", "checkpoints", "tensorboard", "report.html", "inspect.html",
    ".results.json.part", ".report.html.part",
)  # fmt: skip


@pytest.fixture
def run(claimed_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(claimed_run, tmp_path / "work" / "run")
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work" / "run"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def is_clean(result: CommandResult) -> bool:
    """Returns whether a command succeeded, or failed with a message of one sentence and a remedy."""
    return result.code == 0 or (result.code == 1 and "error: " in result.err and "help: " in result.err)


def assert_nothing_changes_through_a_link(
    names: tuple[str, ...], command: str, run: Path, archlang: Command, victims: Path
) -> None:
    shutil.copytree(run, victims)
    for name in OWN:
        if not (victims / name).exists():
            (victims / name).write_text("precious")
    # What is truncated or begun again would otherwise be the same afterwards.
    (victims / ".lock").write_text("precious")
    for name in ("metrics.jsonl", "timings.jsonl"):
        (victims / name).write_bytes(2 * (victims / name).read_bytes())
    before = contents(victims)
    for name in names:
        shutil.copytree(victims, run, dirs_exist_ok=True)
        (shutil.rmtree if (run / name).is_dir() else os.unlink)(run / name)
        (run / name).symlink_to(victims / name)
        result = archlang(*COMMANDS[command])
        assert is_clean(result), (name, result.err)
        assert contents(victims) == before, name
        shutil.rmtree(run, ignore_errors=True)


@pytest.mark.parametrize(
    ("command", "names"),
    [
        # `tests/train/record/test_run_folder.py` has the claim for the files of the record.
        ("resume", ("recipe.arch", "checkpoints", "report.html", "inspect.html", ".results.json.part")),
        ("report", ("report.html", ".report.html.part", ".lock")),
        ("inspect", ("inspect.html", "checkpoints")),
        ("eval", ("checkpoints", "run.json")),
        ("rm", ("checkpoints", "tensorboard", ".lock")),
    ],
)
def test_a_command_changes_no_file_through_a_link(
    command: str, names: tuple[str, ...], run: Path, archlang: Command, tmp_path: Path
) -> None:
    assert_nothing_changes_through_a_link(names, command, run, archlang, tmp_path / "victims")


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("show", ".lock"), ("list", ".lock"), ("report", ".lock"), ("compare", "results.json"),
        ("show", "metrics.jsonl"), ("eval", "graph_at_test.txt"), ("inspect", "run.json"), ("resume", ".lock"),
        ("resume", "metrics.jsonl"), ("resume", "recipe.arch"), ("rm", ".lock"),
    ],
)  # fmt: skip
def test_no_command_waits_for_a_pipe(command: str, name: str, run: Path, archlang: Command) -> None:
    (run / name).unlink()
    os.mkfifo(run / name)
    assert is_clean(archlang(*COMMANDS[command]))


def test_a_link_in_place_of_the_page_is_named(run: Path, archlang: Command, tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("precious")
    (run / "report.html").symlink_to(tmp_path / "victim")
    result = archlang("report", "run")
    assert result.err == (
        "error: run/report.html is a link; inside its folders, archlang opens only files and folders\n"
        "  help: remove it, or replace it by a copy of what it points to, or choose another file with `--out`\n"
    )
    assert archlang("report", "run", "--out", "page.html").code == 0


def test_a_link_to_a_run_is_not_removed(run: Path, archlang: Command, tmp_path: Path) -> None:
    Path("link").symlink_to("run")
    result = archlang("runs", "rm", "link", "--yes")
    assert (result.code, "link is a link" in result.err) == (1, True)
    assert run.exists()
