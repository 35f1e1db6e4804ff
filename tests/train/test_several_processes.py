"""Several processes that share each batch have the curve of one process, started by archlang, torchrun or SLURM."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch

from archlang.plan.from_file import plan_recipe
from archlang.train.runs import training

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not torch.distributed.is_available(), reason="the processes need gloo"
)

# Items have different numbers of scored positions, the batches of an epoch are uneven, the last one has a single item,
# and a loop adds its ponder.
PROGRAM = """
model small[d = 8](x: tokens[n]) -> logits[n, vocab] {
    h = embed[d](x)
    repeat 3 halting h by global_halt[causal = true] { h <- norm(h + attention[1, causal = true](h)) }
    return linear[vocab](h)
}

recipe small {
    task  flipflop[length = 16, train_size = 61, iid_size = 8, valid_size = 8, test_length = [16], test_size = 8]
    model small
    train sgd[lr = 0.5, batch = 15, micro = 4, steps = 8, every = 4, clip = 1.0, ponder = 0.5]
}
"""
ARCHLANG = [sys.executable, "-m", "archlang"]
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "main.py"]
# `archlang`, with a check that no module still holds the process group when it is destroyed, which could deadlock.
MAIN = """
import gc
import torch
from archlang.cli.main import main
from torch.nn.parallel import DistributedDataParallel

destroy = torch.distributed.destroy_process_group

def checked():
    assert not any(isinstance(value, DistributedDataParallel) for value in gc.get_objects())
    destroy()

torch.distributed.destroy_process_group = checked
main()
"""


# `archlang`, with evaluations that take longer than processes wait for each other.
SLOW = """
import time
from datetime import timedelta
from functools import partial
import torch
from archlang.cli.main import main
from archlang.train import score, trainer
from archlang.train.runs import training

forward, train_all = score.forward, training.train_all

def slow_forward(*args):
    time.sleep(0.3)
    return forward(*args)

def train_impatiently(*args):
    if torch.distributed.is_initialized():
        torch.distributed.distributed_c10d._set_pg_timeout(timedelta(seconds=1), None)
    train_all(*args)

score.forward, training.train_all = slow_forward, train_impatiently
trainer.evaluate = partial(score.evaluate, batch=1)
main()
"""


# `archlang`, with a process other than the first that gets a signal in its third step.
SIGNALLED = """
import os
import sys
from datetime import timedelta
import torch
from archlang.cli.main import main
from archlang.train.step import EagerStep

take = EagerStep.take

def take_with_signal(step, number, items):
    if number == 1:
        torch.distributed.distributed_c10d._set_pg_timeout(timedelta(seconds=3), None)
    if number == 2 and step.run.fabric.global_rank == 1:
        os.kill(os.getpid(), int(os.environ["SIGNAL"]))
    return take(step, number, items)

EagerStep.take = take_with_signal
main()
"""


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of one process."""
    folder = tmp_path_factory.mktemp("alone")
    (folder / "small.arch").write_text(PROGRAM)
    train_here(folder)
    return folder


def train_here(folder: Path) -> None:
    """Trains in this process, which has torch already."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        training.train(plan_recipe("small.arch"), Path("run"), device="cpu")


def environment() -> dict[str, str]:
    """The environment without the variables of a process group."""
    variables = {
        name: value for name, value in os.environ.items() if not name.startswith(("LOCAL_", "MASTER_", "RANK"))
    }
    return {**variables, "OMP_NUM_THREADS": "1"}


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    process = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, env=environment())
    assert process.returncode == 0, process.stderr
    return process


def numbers(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    return [{name: value for name, value in json.loads(line).items() if name != "split"} for line in lines]


def assert_same_curve(left: Path, right: Path) -> None:
    for left_line, right_line in zip(numbers(left), numbers(right), strict=True):
        assert left_line == pytest.approx(right_line, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize(
    "command", [pytest.param(ARCHLANG, id="archlang"), pytest.param(TORCHRUN, id="torchrun", marks=pytest.mark.slow)]
)
def test_two_processes_have_the_curve_of_one(alone: Path, tmp_path: Path, command: list[str]) -> None:
    shutil.copy(alone / "small.arch", tmp_path)
    (tmp_path / "main.py").write_text(MAIN)
    devices = ["--devices", "2"] if command is ARCHLANG else []
    process = run([*command, "train", "small.arch", "--out", "run", "--device", "cpu", *devices], tmp_path)
    assert_same_curve(tmp_path / "run", alone / "run")
    assert process.stdout.count("the run is in") == 1
    assert json.loads((tmp_path / "run" / "results.json").read_text())["splits"].keys() == {"iid", "valid", "test"}


@pytest.mark.slow
def test_processes_search_for_weights_without_a_gradient_only_where_a_step_may_leave_some_out(
    alone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_CPP_LOG_LEVEL", "WARNING")  # torch warns where the search finds nothing
    options = ["--out", "run", "--device", "cpu"]
    searched = run([*ARCHLANG, "train", str(alone / "small.arch"), *options, "--devices", "2"], tmp_path)
    assert "find_unused_parameters=True was specified" in searched.stderr
    text = PROGRAM.replace("halting h by global_halt[causal = true] ", "").replace(", ponder = 0.5", "")
    for devices in ("1", "2"):
        folder = tmp_path / devices
        folder.mkdir()
        (folder / "small.arch").write_text(text)
        process = run([*ARCHLANG, "train", "small.arch", *options, "--devices", devices], folder)
        assert "find_unused_parameters" not in process.stderr
    assert_same_curve(tmp_path / "1" / "run", tmp_path / "2" / "run")


@pytest.mark.slow
def test_two_tasks_of_a_slurm_job_have_the_curve_of_one(alone: Path, tmp_path: Path) -> None:
    shutil.copy(alone / "small.arch", tmp_path)
    job = {
        "SLURM_JOB_ID": "4711", "SLURM_JOB_NAME": "small", "SLURM_NTASKS": "2", "SLURM_NTASKS_PER_NODE": "2",
        "SLURM_NNODES": "1", "SLURM_NODEID": "0", "SLURM_NODELIST": "localhost", "MASTER_PORT": str(free_port()),
    }  # fmt: skip
    command = [*ARCHLANG, "train", "small.arch", "--out", "run", "--device", "cpu", "--devices", "2"]
    tasks = [
        subprocess.Popen(
            command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**environment(), **job, "SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank)},
        )
        for rank in range(2)
    ]  # fmt: skip
    outputs = [task.communicate(timeout=120) for task in tasks]
    assert [task.returncode for task in tasks] == [0, 0], outputs
    assert_same_curve(tmp_path / "run", alone / "run")
    assert sum(out.count("the run is in") for out, _ in outputs) == 1


@pytest.mark.slow
def test_two_processes_resume_the_run_of_one(alone: Path, tmp_path: Path) -> None:
    shutil.copytree(alone / "run", tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "checkpoints" / "step-00000008")
    (tmp_path / "run" / "results.json").unlink()
    run([*ARCHLANG, "train", "--resume", "run", "--device", "cpu", "--devices", "2"], tmp_path)
    assert_same_curve(tmp_path / "run", alone / "run")


@pytest.mark.slow
def test_processes_share_an_evaluation_that_is_longer_than_they_wait_for_each_other(
    alone: Path, tmp_path: Path
) -> None:
    results = []
    for devices in ("1", "2"):
        folder = tmp_path / devices
        shutil.copytree(alone, folder)
        (folder / "slow.py").write_text(SLOW)
        (folder / "run" / "results.json").unlink()
        run([sys.executable, "slow.py", "train", "--resume", "run", "--device", "cpu", "--devices", devices], folder)
        results.append((folder / "run" / "results.json").read_text())
    assert results[0] == results[1]


def train_with_signal(folder: Path, number: signal.Signals) -> tuple[int, str]:
    """Returns the exit code of two processes of which the second gets a signal, and what they say."""
    (folder / "signalled.py").write_text(SIGNALLED)
    options = ["--out", "run", "--device", "cpu", "--devices", "2"]
    process = subprocess.Popen(
        [sys.executable, "signalled.py", "train", "small.arch", *options], cwd=folder, stderr=subprocess.PIPE,
        text=True, env={**environment(), "SIGNAL": str(int(number))}, start_new_session=True,
    )  # fmt: skip
    assert process.stderr is not None
    with process.stderr:
        code = process.wait(120)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # a process that is frozen
        return code, process.stderr.read()


def test_processes_stop_after_the_same_step_if_one_of_them_is_asked(alone: Path, tmp_path: Path) -> None:
    shutil.copy(alone / "small.arch", tmp_path)
    assert train_with_signal(tmp_path, signal.SIGTERM)[0] == 128 + signal.SIGTERM
    saved = {folder.name for folder in (tmp_path / "run" / "checkpoints").iterdir()}
    assert saved == {"step-00000004", "step-00000005"}
    train_here(tmp_path)
    assert_same_curve(tmp_path / "run", alone / "run")


def test_a_process_that_waits_too_long_for_another_names_itself_and_its_host(alone: Path, tmp_path: Path) -> None:
    shutil.copy(alone / "small.arch", tmp_path)
    code, errors = train_with_signal(tmp_path, signal.SIGSTOP)
    assert code == 71, errors
    assert f"the process of rank 0 on {socket.gethostname()} lost the others: " in errors
    assert "it resumes from the last checkpoint" in errors


@pytest.mark.slow
@pytest.mark.parametrize(("refused", "reason"), [(["--set", "train.batch=1"], "cannot be shared by 2 processes")])
def test_what_several_processes_cannot_train_is_an_error_that_is_printed_once(
    refused: list[str], reason: str, tmp_path: Path
) -> None:
    (tmp_path / "small.arch").write_text(PROGRAM)
    options = ["--out", "run", "--device", "cpu", "--devices", "2", *refused]
    process = subprocess.run(
        [*ARCHLANG, "train", "small.arch", *options], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert process.returncode == 1
    assert process.stderr.count(reason) == 1
    assert "Traceback" not in process.stderr
