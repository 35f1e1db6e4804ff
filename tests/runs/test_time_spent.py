"""The time that finished runs have taken."""

import json
from pathlib import Path

import pytest

from archlang.record.schemas import StepTiming
from archlang.runs.table import TimeSpent, time_spent, training_seconds

_SOFTWARE = {
    "archlang": "0.1.0", "python": "3", "torch": "2", "machine": "m", "system": "s", "processor": "p", "cores": 8,
    "threads": 2, "device": "cpu", "gpus": [],
}  # fmt: skip
# 2 s, then 3 s of training steps, and 1 s of evaluation.
_TIMINGS = [
    {"step": 10, "time": 0.0, "steps_per_second": 5.0},
    {"step": 10, "split": "valid", "seconds": 1.0},
    {"step": 40, "time": 90.0, "steps_per_second": 10.0},
]


def run_folder(folder: Path, done: bool = True, **software: object) -> Path:
    folder.mkdir()
    (folder / "versions.json").write_text(json.dumps({**_SOFTWARE, **software}))
    (folder / "timings.jsonl").write_text("".join(json.dumps(line) + "\n" for line in _TIMINGS))
    if done:
        (folder / "results.json").write_text("{}")
    return folder


def test_the_seconds_of_a_run_are_those_of_its_training_steps() -> None:
    timings = [StepTiming.model_validate(line) for line in (_TIMINGS[0], _TIMINGS[2])]
    assert training_seconds(timings) == 2.0 + 3.0
    assert training_seconds([]) is None


def test_the_time_of_finished_runs_counts_steps_and_validation_by_the_threads_of_a_cpu(tmp_path: Path) -> None:
    resumed = [{**_SOFTWARE, "threads": 4, "step": 20}]
    folders = [
        run_folder(tmp_path / "two threads"),
        run_folder(tmp_path / "resumed with four", resumed=resumed),
        run_folder(tmp_path / "gpu", device="cuda:0"),
        run_folder(tmp_path / "not done", done=False),
        tmp_path / "not begun",
    ]
    assert time_spent(folders) == TimeSpent(3, (6 * 2 + 6 * 4) / 3600, 6 / 3600)


@pytest.mark.parametrize(
    "line",
    [
        "{}",
        '{"step": 1' + 400 * "0" + ', "time": 0.0, "steps_per_second": 5.0}',
        '{"step": 10, "time": 0.0, "steps_per_second": 1e-308}',
        '{"step": 10, "time": 0.0, "steps_per_second": -1.0}',
        '{"step": 10, "split": "valid", "seconds": -1.0}',
        '{"step": 10, "split": "valid", "seconds": 1e999}',
        '{"step": 10, "split": "valid", "seconds": NaN}',
    ],
)
def test_a_run_whose_times_are_damaged_is_not_counted(tmp_path: Path, line: str) -> None:
    folder = run_folder(tmp_path / "run")
    (folder / "timings.jsonl").write_text(line + "\n")
    assert time_spent([folder]) == TimeSpent()


def test_a_record_of_a_run_without_its_times_is_not_counted(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run")
    (folder / "timings.jsonl").unlink()
    assert time_spent([folder]) == TimeSpent()


@pytest.mark.parametrize("threads", [-1, 10**400])
def test_a_run_with_an_impossible_number_of_threads_is_not_counted(tmp_path: Path, threads: int) -> None:
    assert time_spent([run_folder(tmp_path / "run", threads=threads)]) == TimeSpent()


def test_the_sentence_names_the_unit_and_rounds_up() -> None:
    assert TimeSpent(1, 0.001).sentence() == (
        "Cost: at most 0.01 core-hours of training in 1 finished run (wall time of steps and validation, on a CPU "
        "times the threads)."
    )
    assert TimeSpent(2, 0.0, 1.5).sentence() == (
        "Cost: at most 1.50 GPU-hours of training in 2 finished runs (wall time of steps and validation)."
    )
    assert "at most 1.00 core-hours and 0.50 GPU-hours" in TimeSpent(5, 1.0, 0.5).sentence()
