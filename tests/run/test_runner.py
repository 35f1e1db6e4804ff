"""A run is reproducible, can be killed at any moment, and never writes over another one."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from archlang.compile import plan
from archlang.run import loop, runner
from archlang.run.mistakes import RunError


def trained(program: Path, folder: Path, **sets: str) -> runner.Outcome:
    settings = {name.replace("__", "."): value for name, value in sets.items()}
    return runner.train(plan(program, sets=settings), folder, device="cpu")


def contents(folder: Path, name: str) -> bytes:
    return (folder / name).read_bytes()


def final_weights(folder: Path) -> bytes:
    return (sorted((folder / "checkpoints").glob("step-*"))[-1] / "weights.safetensors").read_bytes()


def test_the_same_seed_gives_the_same_record_bit_for_bit(program: Path, tmp_path: Path) -> None:
    trained(program, tmp_path / "a")
    trained(program, tmp_path / "b")
    assert contents(tmp_path / "a", "metrics.jsonl") == contents(tmp_path / "b", "metrics.jsonl")
    assert contents(tmp_path / "a", "results.json") == contents(tmp_path / "b", "results.json")
    assert final_weights(tmp_path / "a") == final_weights(tmp_path / "b")


def test_another_seed_gives_another_record(program: Path, tmp_path: Path) -> None:
    trained(program, tmp_path / "a")
    trained(program, tmp_path / "b", seed="2")
    assert contents(tmp_path / "a", "metrics.jsonl") != contents(tmp_path / "b", "metrics.jsonl")


def test_a_killed_run_goes_on_as_if_nothing_had_happened(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained(program, tmp_path / "whole")

    class Killed(BaseException):
        """What nothing in a run catches."""

    step = loop.Training._step
    for moment in (3, 14, 27, 35):

        def failing(self: loop.Training, at: int, moment: int = moment) -> object:
            if at == moment:
                raise Killed
            return step(self, at)

        monkeypatch.setattr(loop.Training, "_step", failing)
        with pytest.raises(Killed):
            trained(program, tmp_path / "killed")
    monkeypatch.setattr(loop.Training, "_step", step)
    trained(program, tmp_path / "killed")
    for name in ("metrics.jsonl", "results.json"):
        assert contents(tmp_path / "whole", name) == contents(tmp_path / "killed", name)
    assert final_weights(tmp_path / "whole") == final_weights(tmp_path / "killed")


def command(program: Path, folder: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "archlang", "train", str(program), "--device", "cpu", "--out", str(folder), *more]


def wait_for_lines(file: Path, process: subprocess.Popen[bytes], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not (file.exists() and file.stat().st_size) and process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)


def test_sigkill_loses_nothing(program: Path, tmp_path: Path) -> None:
    more = ("--steps", "400")
    subprocess.run(command(program, tmp_path / "whole", *more), check=True, capture_output=True)
    killed = tmp_path / "killed"
    process = subprocess.Popen(command(program, killed, *more), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for_lines(killed / "metrics.jsonl", process)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    subprocess.run(command(program, killed, *more), check=True, capture_output=True)
    assert contents(tmp_path / "whole", "metrics.jsonl") == contents(killed, "metrics.jsonl")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_cleanly_with_a_checkpoint(number: signal.Signals, program: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    process = subprocess.Popen(
        command(program, folder, "--steps", "100000", "--set", "train.every=100000"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "ARCHLANG_DEBUG": "1"},
    )
    wait_for_lines(folder / "metrics.jsonl", process)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0
    assert b"stopped at step" in said
    assert list((folder / "checkpoints").glob("step-*"))


def test_a_folder_with_another_run_is_left_as_it_is(program: Path, tmp_path: Path) -> None:
    trained(program, tmp_path / "run")
    before = {file: file.read_bytes() for file in (tmp_path / "run").rglob("*") if file.is_file()}
    with pytest.raises(RunError, match="holds another run"):
        trained(program, tmp_path / "run", model__d="16")
    program.write_text(program.read_text().replace("norm(h)", "h"))
    with pytest.raises(RunError, match="holds another run"):
        trained(program, tmp_path / "run")
    assert before == {file: file.read_bytes() for file in (tmp_path / "run").rglob("*") if file.is_file()}


def test_a_folder_with_something_else_is_left_as_it_is(program: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    with pytest.raises(RunError, match="holds something else"):
        trained(program, tmp_path / "mine")
    assert [file.name for file in (tmp_path / "mine").iterdir()] == ["thesis.tex"]


def test_claims_stand_beside_what_was_measured(program: Path, tmp_path: Path) -> None:
    outcome = trained(program, tmp_path / "run")
    whole, part = outcome.claims
    test = next(score for score in outcome.scores if score.split == "test")
    assert whole["measured"] == test.metrics["accuracy"]
    assert part["measured"] == test.groups["length"][5]["accuracy"]


def test_eval_needs_nothing_but_the_folder(program: Path, tmp_path: Path) -> None:
    outcome = trained(program, tmp_path / "run")
    program.unlink()
    (tmp_path / "run").rename(tmp_path / "moved")
    again = runner.evaluate_run(tmp_path / "moved", device="cpu")
    assert again.scores == outcome.scores


def test_a_static_of_test_time_is_used_for_testing_only(program: Path, tmp_path: Path) -> None:
    program.write_text(
        program.read_text().replace("claim test.accuracy[5]", "test model.steps = 9\n    claim test.accuracy[5]")
    )
    with_test = trained(program, tmp_path / "run")
    metrics = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert max(line["mean_depth"] for line in metrics if "mean_depth" in line) <= 2
    assert "limit = 9" in (tmp_path / "run" / "graph_at_test.txt").read_text()
    assert with_test.scores


def test_a_damaged_checkpoint_is_passed_over(program: Path, tmp_path: Path) -> None:
    trained(program, tmp_path / "run")
    *_, last = sorted((tmp_path / "run" / "checkpoints").glob("step-*"))
    with (last / "weights.safetensors").open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"\x55")
    with pytest.warns(UserWarning, match="damaged"):
        again = trained(program, tmp_path / "run")
    assert again.step == 40


def test_a_loss_that_is_no_number_stops_the_run(program: Path, tmp_path: Path) -> None:
    with pytest.raises(RunError, match="not a number"):
        trained(program, tmp_path / "run", train__lr="1e30", train__clip="0.0")


def test_a_device_that_is_not_there_is_named(program: Path, tmp_path: Path) -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    with pytest.raises(RunError, match="no device `cuda`"):
        runner.train(plan(program), tmp_path / "run", device="cuda")
    assert not (tmp_path / "run").exists()


def test_a_full_disk_is_a_clear_error(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object, **kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("archlang.run.checkpoint.torch.save", full)
    with pytest.raises(RunError, match="No space left on device"):
        trained(program, tmp_path / "run")
    assert not list((tmp_path / "run" / "checkpoints").iterdir())


@pytest.mark.parametrize(
    ("select", "complaint"), [("nowhere.accuracy", "no split `nowhere`"), ("valid.beauty", "no metric `beauty`")]
)
def test_a_metric_to_select_by_must_exist(select: str, complaint: str, program: Path, tmp_path: Path) -> None:
    with pytest.raises(RunError, match=complaint):
        trained(program, tmp_path / "run", train__select=select)
    assert not (tmp_path / "run").exists()
