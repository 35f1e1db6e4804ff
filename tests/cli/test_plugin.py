"""Tasks and blocks of a user's own: signatures in the program, classes in Python files, and nothing run without
`--plugin`."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from archlang.api.run import load_run
from archlang.api.saving import save
from archlang.plan.from_file import plan_recipe
from archlang.train.runs.training import train
from tests.cli.conftest import Command
from tests.tasks.kit.test_make_task import PLUGIN
from tests.tiny_run import TASK

PROGRAM = """
extern task even[size: int = 3](x: tokens[n]) -> logits[classes]
    gives vocab = 2, classes = 2
    python "mine:Even"

model small[d = 4](x: tokens[n]) -> logits[classes] {
    return embed[d](x) |> mean |> linear[classes]
}

recipe r {
    task  even[size = 8]
    model small
    train adamw[batch = 4, steps = 1, select = test.accuracy]
}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Path:
    (tmp_path / "r.arch").write_text(PROGRAM)
    side_effect = 'from pathlib import Path\nPath("ran").touch()\n'
    (tmp_path / "mine.py").write_text(side_effect + PLUGIN.replace('return ("train",)', 'return ("train", "test")'))
    return tmp_path


def test_a_run_is_trained_resumed_and_evaluated(archlang: Command, folder: Path) -> None:
    run = ("--device", "cpu", "--plugin", "mine.py")
    assert archlang("train", "r.arch", "--out", "run", *run).code == 0
    assert "add `--plugin mine.py`" in archlang("eval", "run", "--device", "cpu").err
    results = json.loads(archlang("eval", "run", "--json", *run).out)
    assert results["splits"]["test"]["items"] == 8
    assert archlang("train", "--resume", "run", *run).code == 0
    # The task is not part of the model, whether it comes from the run or was saved from it.
    assert archlang("export", "run", "-o", "run.py").code == 0
    save(load_run("run", plugins=["mine.py"]), "saved")
    assert archlang("export", "saved", "-o", "saved.py").code == 0
    # The run has a copy of the class.
    assert archlang("eval", "run", "--device", "cpu", "--plugin", "run/plugins/mine.py").code == 0


@pytest.mark.slow
def test_the_points_of_a_table_are_trained_in_other_processes(archlang: Command, folder: Path) -> None:
    result = archlang("table", "r.arch", "--out", "runs", "--seeds", "2", "--device", "cpu", "--plugin", "mine.py")
    assert result.code == 0, result.out + result.err
    assert len(list((folder / "runs").glob("*/results.json"))) == 2


def test_check_holds_the_class_against_its_signature(archlang: Command, folder: Path) -> None:
    assert archlang("check", "r.arch", "--plugin", "mine.py").code == 0
    (folder / "r.arch").write_text(PROGRAM.replace("vocab = 2", "vocab = 5"))
    result = archlang("check", "r.arch", "--plugin", "mine.py")
    assert result.code == 1
    assert "gives vocab = 5, and its class has 2 tokens" in result.err


def test_data_show_prints_it(archlang: Command) -> None:
    result = archlang("data", "show", "even", "--program", "r.arch", "--plugin", "mine.py")
    assert result.code == 0
    assert "one zero" in result.out


@pytest.mark.slow
def test_a_search_runs_with_a_plugin_task(archlang: Command, folder: Path) -> None:
    pytest.importorskip("optuna", reason="the extra `tune` is not installed")
    (folder / "r.arch").write_text(PROGRAM.replace("steps = 1, ", "steps = 1, lr = 1e-3, ").replace(
        "select = test.accuracy]\n", "select = test.accuracy]\n    search train.lr in 1e-4..1e-2 log\n"
    ))  # fmt: skip
    asked = ("tune", "r.arch", "--trials", "2", "--out", "study", "--device", "cpu")
    assert "add `--plugin mine.py`" in archlang(*asked).err
    result = archlang(*asked, "--plugin", "mine.py", "--json")
    assert result.code == 0, result.err
    assert len(json.loads(result.out)["trials"]) == 2


BLOCK = """
extern block twice(x: seq[n, d]) -> seq[n, d] reads x pointwise python "blocks:Twice"

model small[d = 4](x: tokens[n]) -> logits[classes] {
    return embed[d](x) |> twice |> mean |> linear[classes]
}

recipe r {
    task  TASK
    model small
    train adamw[batch = 4, steps = 1]
}
""".replace("TASK", TASK)
TWICE = """from pathlib import Path
from torch import nn
Path("ran").touch()

class Twice(nn.Module):
    def __init__(self, *, d):
        super().__init__()

    def forward(self, x, *, mask_n=None):
        return 2 * x
"""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a recipe whose block is in lib/blocks.py, and a run of it."""
    folder = tmp_path_factory.mktemp("trained")
    (folder / "b.arch").write_text(BLOCK)
    (folder / "lib").mkdir()
    (folder / "lib" / "blocks.py").write_text(TWICE)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        train(plan_recipe("b.arch", plugins=["lib/blocks.py"]), Path("run"), device="cpu")
        Path("ran").unlink()
    return folder


@pytest.fixture
def block_run(trained: Path, folder: Path) -> Path:
    """A copy of the folder, as the current folder."""
    shutil.copytree(trained, folder, dirs_exist_ok=True)
    return folder


def test_a_block_of_the_users_own_works_in_every_command(archlang: Command, block_run: Path) -> None:
    for command in (
        ("eval", "run"), ("inspect", "run"), ("predict", "run", "--input", "a"), ("export", "run", "--out", "m.py"),
        ("train", "--resume", "run"), ("show", "b.arch", "--torch"), ("check", "b.arch"), ("summary", "b.arch"),
        ("viz", "b.arch"), ("report", "b.arch"), ("table", "b.arch", "--dry-run"),
    ):  # fmt: skip
        result = archlang(*command, "--plugin", "lib/blocks.py")
        assert result.code == 0, (command, result.err)
    assert "class Twice(nn.Module):" in (block_run / "m.py").read_text()


def test_a_table_and_a_search_name_the_missing_plugin_before_any_run(archlang: Command, block_run: Path) -> None:
    recipe = BLOCK.partition("recipe")[2].replace("model small", "model plain").replace(" r {", " plain {")
    plain = BLOCK.partition("model")[2].partition("recipe")[0].replace("small", "plain").replace("twice |> ", "")
    searched = BLOCK.replace("steps = 1]\n", "steps = 1]\n    search train.batch in [2, 4]\n")
    (block_run / "both.arch").write_text(f"model{plain}recipe{recipe}{searched}")
    for command in (("table", "both.arch"), ("tune", "both.arch", "r"), ("table", "both.arch", "--engine", "ray")):
        result = archlang(*command, "--out", "out", "--device", "cpu")
        assert result.code == 1, command
        assert "`twice` is Python of its own" in result.err
        assert "add `--plugin blocks.py`" in result.err
        assert "failed" not in result.out + result.err
        assert not (block_run / "out").exists()


def test_a_run_does_not_run_its_copy_of_python(archlang: Command, block_run: Path) -> None:
    for command in (
        ("eval", "run"), ("inspect", "run"), ("export", "run", "--out", "m.py"), ("train", "--resume", "run"),
    ):  # fmt: skip
        result = archlang(*command)
        assert result.code == 1, command
        assert "run was made with Python of your own, blocks.py" in result.err
        assert "add `--plugin blocks.py`; or read the copy" in result.err
        assert "name it: `--plugin run/plugins/blocks.py`" in result.err
    assert not (block_run / "ran").exists()


def test_going_on_with_other_python_is_refused(archlang: Command, block_run: Path) -> None:
    recorded = json.loads((block_run / "run" / "run.json").read_text())["plugins"]
    assert recorded == {"blocks.py": hashlib.sha256(TWICE.encode()).hexdigest()}
    assert (block_run / "run" / "plugins" / "blocks.py").read_text() == TWICE
    (block_run / "lib" / "blocks.py").write_text(TWICE.replace("2 * x", "3 * x"))
    for command in (("eval", "run"), ("train", "--resume", "run"), ("train", "b.arch", "--out", "run")):
        result = archlang(*command, "--plugin", "lib/blocks.py", "--device", "cpu")
        assert result.code == 1, command
        assert "blocks.py is not the file that run was made with" in result.err
    # The run's own copy is used if the user names it.
    assert archlang("eval", "run", "--device", "cpu", "--plugin", "run/plugins/blocks.py").code == 0


@pytest.mark.usefixtures("forked_workers")
def test_a_table_runs_again_with_changed_python(archlang: Command, block_run: Path) -> None:
    table = ("table", "b.arch", "--out", "runs", "--device", "cpu", "--seeds", "2", "--plugin", "lib/blocks.py")
    assert archlang(*table, "--together", "--workers", "1").code == 0
    assert len(list((block_run / "runs").glob("*/results.json"))) == 2
    assert "0 runs to train and 2 done" in archlang(*table, "--dry-run").out
    (block_run / "lib" / "blocks.py").write_text(TWICE.replace("2 * x", "3 * x"))
    assert "2 runs to train and 0 done" in archlang(*table, "--dry-run").out


def test_without_the_flag_no_python_of_a_program_runs(archlang: Command, block_run: Path) -> None:
    for command in (
        ("train", "r.arch", "--out", "other"), ("table", "r.arch", "--out", "runs"),
        ("data", "show", "even", "--program", "r.arch"), ("train", "b.arch"), ("table", "b.arch", "--dry-run"),
        ("show", "b.arch", "--lowered"), ("export", "b.arch", "--out", "m.py"),
    ):  # fmt: skip
        result = archlang(*command)
        assert result.code == 1, command
        assert f"add `--plugin {'blocks.py' if 'b.arch' in command else 'mine.py'}`" in result.err
    assert archlang("check", "b.arch", "r.arch").code == 0
    assert not (block_run / "ran").exists()


def test_check_with_the_file_finds_a_class_that_cannot_be_constructed(archlang: Command, block_run: Path) -> None:
    (block_run / "lib" / "blocks.py").write_text(TWICE.replace("*, d", "*, width"))
    result = archlang("check", "b.arch", "--plugin", "lib/blocks.py")
    assert result.code == 1
    assert "b.arch:5:27: `twice` cannot be constructed" in result.err


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("2 * x", "x @ x", "lib/blocks.py:10 fails: RuntimeError: "),
        ("2 * x", "x @ x", "correct the file; it was called at b.arch:5:27: twice"),
        ("return 2 * x", "__import__('sys').exit(3)", "lib/blocks.py:10 fails: SystemExit: 3"),
        ("super().__init__()", "__import__('sys').exit(3)", "b.arch:5:27: `twice` cannot be constructed"),
    ],
)
def test_an_error_or_an_exit_of_a_block_is_named_at_its_line(
    old: str, new: str, message: str, archlang: Command, block_run: Path
) -> None:
    (block_run / "lib" / "blocks.py").write_text(TWICE.replace(old, new))
    result = archlang("train", "b.arch", "--out", "other", "--device", "cpu", "--plugin", "lib/blocks.py")
    assert result.code == 1
    assert message in result.err
