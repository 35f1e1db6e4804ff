"""Existing run folders: finding them, summarizing them, and comparing their settings."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from archlang.disk.folder import Folder
from archlang.plan.overrides import static_text
from archlang.train.record import mistakes, reading
from archlang.train.record.mistakes import disk_errors_as
from archlang.train.record.schemas import METRICS, RUN, EvaluationTiming, Results, RunRecord, SavingTiming, StepTiming

_LONGEST_LINE = 1 << 16  # bytes of `metrics.jsonl`


@dataclass(frozen=True)
class RunSummary:
    """What `archlang runs` shows of a run folder."""

    folder: Path
    record: RunRecord
    results: Results | None
    state: str
    """`done`, `running` or `stopped`"""
    step: int
    size: int
    """bytes"""

    @property
    def facts(self) -> dict[str, str | int]:
        """What was trained."""
        run = self.record
        return {"recipe": run.recipe, "model": run.model, "task": run.task.name, "seed": run.seed}

    @property
    def settings(self) -> dict[str, str]:
        """Every static, as the language writes it."""
        return {name: static_text(value) for name, value in self.record.settings.items()}

    @property
    def history(self) -> tuple[str, ...]:
        """With which software the run began, and with which other it was resumed."""
        from archlang.train.record.run_folder import read_history  # imports torch

        return read_history(self.folder)

    def json_value(self) -> dict[str, Any]:  # Any: JSON
        """Returns the summary as `archlang runs list --json` prints it."""
        splits = {} if self.results is None else self.results.splits
        metrics = {name: split.metrics for name, split in splits.items()}
        return {
            "folder": str(self.folder), **self.facts, "state": self.state, "step": self.step, "bytes": self.size,
            "metrics": metrics,
        }  # fmt: skip


@dataclass(frozen=True)
class DamagedRun:
    """A run folder that cannot be read, and why."""

    folder: Path
    reason: str
    state: str = "damaged"
    """`damaged`, or `unreadable` where the machine is the cause"""

    def json_value(self) -> dict[str, Any]:  # Any: JSON
        """Returns the run as `archlang runs list --json` prints it."""
        return {"folder": str(self.folder), "state": self.state, "reason": self.reason}


def summarize(folder: Path) -> RunSummary:
    """Returns the summary of a run folder."""
    run, results = reading.read_record(folder, RUN, RunRecord), reading.read_results(folder)
    state = "running" if reading.is_in_use(folder) else "done" if results is not None else "stopped"
    with disk_errors_as(mistakes.not_read, folder), Folder.open(folder) as opened:
        step, size = _last_step(opened), opened.total_size()
    return RunSummary(folder, run, results, state, step, size)


def find_runs(folder: Path) -> Iterator[RunSummary | DamagedRun]:
    """Yields every run in a folder or below it, by path, without saved models.

    Raises:
        RunError: The folder is a file.
        FileNotFoundError: It is relative to a current folder that has been deleted."""
    os.getcwd()
    if folder.exists() and not folder.is_dir():
        raise mistakes.not_a_folder(folder)
    runs = []
    for path, folders, files in os.walk(folder):
        folders[:] = set(folders) - {reading.CHECKPOINTS, reading.CURVES}
        runs += [Path(path)] if RUN in files and not reading.is_saved(Path(path)) else []
    yield from map(_summary_or_damage, sorted(runs))


def _summary_or_damage(folder: Path) -> RunSummary | DamagedRun:
    try:
        return summarize(folder)
    except mistakes.RunMachineError as error:
        return DamagedRun(folder, error.message, "unreadable")
    except mistakes.RunError as error:
        return DamagedRun(folder, error.message)


def run_costs(timings: Sequence[reading.Timing]) -> dict[str, float]:
    """Returns what the record of a run says of its cost: `seconds_of_steps` with those of making batches,
    `seconds_of_data`, `seconds_of_evaluation` and `seconds_of_saving`; the mean `samples_per_second`,
    `tokens_per_second`, `flops_per_second` and `peak_share` of the steps; and the largest `memory` in bytes."""
    lines = [line for line in timings if isinstance(line, StepTiming)]
    starts = [0, *(line.step for line in lines)]
    seconds = [
        (line.step - start) / line.steps_per_second if line.steps_per_second else 0.0
        for start, line in zip(starts, lines, strict=False)
    ]
    costs: dict[str, float | None] = {"seconds_of_steps": sum(seconds) if lines else None}
    for name, values in (
        ("seconds_of_data", [line.data_seconds for line in lines if line.data_seconds is not None]),
        ("seconds_of_evaluation", [line.seconds for line in timings if isinstance(line, EvaluationTiming)]),
        ("seconds_of_saving", [line.saving for line in timings if isinstance(line, SavingTiming)]),
    ):
        costs[name] = sum(values) if values else None
    for name in ("samples_per_second", "tokens_per_second", "flops_per_second", "peak_share"):
        pairs = [(getattr(line, name), time) for line, time in zip(lines, seconds, strict=True)]
        known = [(value * time, time) for value, time in pairs if value is not None and time]
        costs[name] = sum(amount for amount, _ in known) / sum(time for _, time in known) if known else None
    costs["memory"] = max((line.memory for line in lines if line.memory is not None), default=None)
    return {name: value for name, value in costs.items() if value is not None}


def differences(runs: Sequence[RunSummary]) -> dict[str, tuple[str, ...]]:
    """Returns the settings in which some of the runs differ, with the value of each run."""
    facts = [{**{name: str(value) for name, value in run.facts.items()}, **run.settings} for run in runs]
    names = dict.fromkeys(name for run in facts for name in run)
    rows = {name: tuple(run.get(name, "") for run in facts) for name in names}
    return {name: values for name, values in rows.items() if len(set(values)) > 1}


def _last_step(folder: Folder) -> int:
    if not folder.has(METRICS):
        return 0
    with folder.open_file(METRICS) as file:
        # A listing of many runs reads no long file. A running or killed process may have written half of the last line.
        file.seek(max(file.seek(0, os.SEEK_END) - _LONGEST_LINE, 0))
        line = file.read().rpartition(b"\n")[0].rpartition(b"\n")[2]
    try:
        return reading.parse_metrics(line).step if line else 0
    except ValidationError as error:
        raise mistakes.damaged(folder.path / METRICS, f"the last line: {reading.explain(error)}") from error
