"""Every command answers a damaged run folder, or one of a stranger with links and pipes in place of its files, with its
results or with an error that names the fault; none writes elsewhere or hangs.

The damages are in `tests/train/record/damages.py`. By default a sample of them meets two commands each; `-m slow` tries
every damage with every command."""

import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from archlang.train.record.reading import RECIPE
from tests.cli.conftest import Command, CommandResult
from tests.sampling import one_in
from tests.train.record.damages import Damage, damages_of
from tests.train.record.test_run_folder import contents

COMMANDS: Mapping[str, Sequence[str]] = {
    "show": ("runs", "show", "run"),
    "list": ("runs", "list", "."),
    "compare": ("runs", "compare", "run", "run"),
    "report": ("report", "run"),
    "eval": ("eval", "run", "--device", "cpu"),
    "inspect": ("inspect", "run", "--device", "cpu"),
    "resume": ("train", "--resume", "run", "--device", "cpu"),
}
# One in so many damages is tried by default.
SAMPLE = 251


@pytest.fixture
def run(claimed_run: Path, tmp_path: Path) -> Path:
    """A copy of a finished run."""
    return Path(shutil.copytree(claimed_run, tmp_path / "run"))


def is_answered(result: CommandResult) -> bool:
    """Returns whether a command ended with its results, or with an error with a remedy."""
    texts = result.out + result.err
    if any(text in texts for text in ("Traceback", "internal error", "\x1b")):
        return False
    return result.code == 0 or (result.code == 1 and "error:" in result.err and "help:" in result.err)


def try_damages(
    damages: Sequence[Damage],
    commands: Callable[[int], Sequence[str]],
    claimed_run: Path,
    folder: Path,
    archlang: Command,
) -> None:
    failures = []
    for number, damage in enumerate(damages):
        for command in commands(number):
            shutil.copytree(claimed_run, folder / "run")
            damage.apply(folder / "run")
            result = archlang(*COMMANDS[command])
            if not is_answered(result):
                failures.append(f"{command} where {damage.name}: {result.code}: {result.err[-500:]}")
            shutil.rmtree(folder / "run", ignore_errors=True)
    assert not failures, "\n".join([f"{len(failures)} failures", *failures])
    assert not list(folder.iterdir())


pytestmark = [
    pytest.mark.filterwarnings("ignore::archlang.train.record.checkpoint.RunWarning"),
    pytest.mark.filterwarnings("ignore::archlang.train.record.run_folder.RunWarning"),
]


def test_a_sample_of_damages_is_answered(claimed_run: Path, tmp_path: Path, archlang: Command) -> None:
    names = [*COMMANDS]
    try_damages(
        damages_of(claimed_run)[::SAMPLE],
        lambda number: [names[number % len(names)], names[(number + 3) % len(names)]],
        claimed_run, tmp_path, archlang,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_every_damage_is_answered(command: str, claimed_run: Path, tmp_path: Path, archlang: Command) -> None:
    try_damages(damages_of(claimed_run), lambda number: [command], claimed_run, tmp_path, archlang)


DETECTED = [
    ("weights.safetensors declares a huge header", "eval"),
    ("weights.safetensors has complex weights", "eval"),
    ("weights.safetensors lacks a weight", "resume"),
    ("state.pt calls a function", "resume"),
    ("state.pt is a pickle of protocol 0", "resume"),
    ("state.pt begins with another format", "resume"),
    ("state.pt position is -1", "resume"),
    ("state.pt micro is 0", "resume"),
    ("state.pt history is missing", "eval"),
    ("state.pt optimizer has a moment of another shape", "resume"),
    ("state.pt random of numpy is behind its end", "resume"),
    ("graph_at_test.txt imports os", "eval"),
    ("graph_at_test.txt uses an unknown value", "resume"),
    ("graph_at_test.txt is nested by loops", "eval"),
    ("graph_at_test.txt has other widths", "eval"),
    ("run.json is nested deeply", "show"),
    ("results.json is a folder", "show"),
    ("run.json seed is NaN", "show"),
    ("run.json task.statics.symbols is -1", "eval"),
    ("run.json train.statics.lr is null", "resume"),
    ("data.json train.items is -1", "eval"),
    ("metrics.jsonl has a flipped bit", "resume"),
    ("metrics.jsonl is cut", "resume"),
]


@pytest.mark.parametrize(("name", "command"), one_in(3, DETECTED))
def test_a_damage_is_refused_with_its_file(
    name: str, command: str, run: Path, tmp_path: Path, archlang: Command
) -> None:
    (damage,) = [damage for damage in damages_of(run) if damage.name == name]
    damage.apply(run)
    result = archlang(*COMMANDS[command])
    assert is_answered(result)
    assert result.code == 1
    message = result.err.replace("\n", " ")
    # Python that the graph names is refused like that of a run with blocks of one's own.
    assert damage.file in message or "step-" in message or "is Python of its own" in message, message
    assert not (tmp_path / "hacked").exists()


def test_a_run_folder_imports_no_python_of_its_own(run: Path, tmp_path: Path, archlang: Command) -> None:
    (tmp_path / "trap.py").write_text("raise SystemExit(99)\n")
    text = (run / "run.json").read_text()
    for old in ("archlang.tasks.ctl:", "torch.optim:"):
        assert old in text
        (run / "run.json").write_text(text.replace(old, "trap:"))
        for command in ("eval", "inspect", "resume"):
            result = archlang(*COMMANDS[command])
            assert "trap" not in sys.modules
            if command == "resume" or "tasks" in old:
                assert (result.code, "help:" in result.err) == (1, True), command


def test_damaged_runs_are_listed_with_the_reason(claimed_run: Path, tmp_path: Path, archlang: Command) -> None:
    for name, content in (("bytes", b"\xff\xfe"), ("deep", b"[" * 200_000), ("shape", b"[]")):
        shutil.copytree(claimed_run, tmp_path / name)
        (tmp_path / name / "run.json").write_bytes(content)
    result = archlang("runs", "list", ".")
    assert result.code == 0
    assert "there are no runs" not in result.out
    for name in ("bytes", "deep", "shape"):
        assert f"damaged: {name}/run.json is damaged" in result.out.replace("\n", " ")
    shutil.copytree(claimed_run, tmp_path / "whole")
    listed = archlang("runs", "list", ".", "--json").out
    assert listed.count('"state": "damaged"') == 3
    assert '"folder": "whole"' in listed


def test_a_file_is_no_folder_of_runs(tmp_path: Path, archlang: Command) -> None:
    (tmp_path / "file").write_text("x")
    result = archlang("runs", "list", "file")
    assert (result.code, "is a file" in result.err) == (1, True)


def test_the_copy_of_a_program_is_not_run(run: Path, archlang: Command) -> None:
    (run / RECIPE).write_bytes(os.urandom(1000) + b"\xff")
    assert archlang(*COMMANDS["show"]).code == 0


# Links and pipes

OWN = (
    "recipe.arch", "run.json", "data.json", "graph.txt", "graph_at_test.txt", "metrics.jsonl", "timings.jsonl",
    "vocabulary.json", "results.json", ".lock", "checkpoints", "tensorboard", "report.html", "inspect.html",
    ".results.json.part", ".report.html.part",
)  # fmt: skip


@pytest.mark.parametrize(
    ("command", "names"),
    [
        # `tests/train/record/test_run_folder.py` has the claim for the files of the record.
        ("resume", ("recipe.arch", "checkpoints", "report.html", "inspect.html", ".results.json.part")),
        ("report", ("report.html", ".report.html.part", ".lock")),
        ("inspect", ("inspect.html", "checkpoints")),
        ("eval", ("checkpoints", "run.json")),
    ],
)
def test_a_command_changes_no_file_through_a_link(
    command: str, names: tuple[str, ...], run: Path, archlang: Command, tmp_path: Path
) -> None:
    victims = Path(shutil.copytree(run, tmp_path / "victims"))
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
        assert is_answered(result), (name, result.err)
        assert contents(victims) == before, name
        shutil.rmtree(run, ignore_errors=True)


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("show", ".lock"), ("list", ".lock"), ("report", ".lock"), ("compare", "results.json"),
        ("show", "metrics.jsonl"), ("eval", "graph_at_test.txt"), ("inspect", "run.json"), ("resume", ".lock"),
        ("resume", "metrics.jsonl"), ("resume", "recipe.arch"),
    ],
)  # fmt: skip
def test_no_command_waits_for_a_pipe(command: str, name: str, run: Path, archlang: Command) -> None:
    (run / name).unlink()
    os.mkfifo(run / name)
    assert is_answered(archlang(*COMMANDS[command]))


def test_a_link_in_place_of_the_page_is_named(run: Path, archlang: Command, tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("precious")
    (run / "report.html").symlink_to(tmp_path / "victim")
    result = archlang("report", "run")
    assert result.err == (
        "error: run/report.html is a link; inside its folders, archlang opens only files and folders\n"
        "  help: remove it, or replace it by a copy of what it points to, or choose another file with `--out`\n"
    )
    assert archlang("report", "run", "--out", "page.html").code == 0
