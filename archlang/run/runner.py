"""From a plan to a trained, tested and recorded run; and from a run folder to new measurements."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from lightning_fabric import Fabric
from rich.console import Console

from archlang.backend.build import build
from archlang.graph.plan import Plan
from archlang.graph.text import parse_graph
from archlang.run import mistakes
from archlang.run.checkpoint import Checkpoints
from archlang.run.data import Data
from archlang.run.loop import Stop, Training
from archlang.run.progress import Display, Silent
from archlang.run.record import Record, decode
from archlang.run.score import Score, evaluate
from archlang.run.settings import Settings
from archlang.tasks import cache
from archlang.tasks.base import Split, Task
from archlang.types.statics import StaticValue, Symbol

# Data are drawn from the run's seed for training, and are the same for every seed in all other splits.
_DATA_SEED = 0
_PRECISIONS = {"32": "32-true", "bf16": "bf16-mixed", "16": "16-mixed"}


@dataclass(frozen=True)
class Outcome:
    """How a run ended. `scores` are empty if it was stopped."""

    folder: Path
    step: int
    stopped: bool
    scores: tuple[Score, ...]
    claims: tuple[Mapping[str, Any], ...]  # Any: JSON
    breakdown: str
    metrics: tuple[str, ...]
    trained: Mapping[str, tuple[int, ...]]


def make_task(name: str, python: str, statics: Mapping[str, StaticValue]) -> Task:
    """A task from its signature's Python; only archlang's own tasks are imported."""
    module, _, attribute = python.partition(":")
    if not module.startswith("archlang.tasks."):
        raise mistakes.RunError(f"the task `{name}` is not one of archlang's", "only shipped tasks can be run")
    plain = {key: _plain(value) for key, value in statics.items()}
    task: Task = getattr(importlib.import_module(module), attribute)(**plain)
    return task


def _plain(value: StaticValue) -> object:
    if isinstance(value, Symbol):
        return value.text
    if isinstance(value, tuple):
        return tuple(_plain(item) for item in value)
    return value


def make_fabric(device: str = "auto", precision: str = "32") -> Fabric:
    """One device and one process.

    Raises:
        RunError: there is no such device here."""
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    kind, _, index = device.partition(":")
    available = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not available.get(kind, False) or (kind == "cuda" and index and int(index) >= torch.cuda.device_count()):
        raise mistakes.no_device(device)
    if precision not in _PRECISIONS:
        raise mistakes.RunError(f"there is no precision `{precision}`", f"choose one of {', '.join(_PRECISIONS)}")
    devices: list[int] | int = [int(index)] if index else 1
    return Fabric(accelerator=kind, devices=devices, precision=_PRECISIONS[precision])  # type: ignore[arg-type] # a name of Fabric's


def train(
    plan: Plan,
    folder: Path,
    *,
    device: str = "auto",
    precision: str = "32",
    console: Console | None = None,
    stop: Stop | None = None,
) -> Outcome:
    """Trains one point of a recipe into a run folder, or goes on with the run that the folder holds.

    Raises:
        RunError: the run cannot begin or go on; what was written before is whole.
        TaskError: the task cannot be made as asked."""
    settings = Settings.of(plan.train.statics)
    fabric = make_fabric(device, precision)
    task = make_task(plan.task.name, plan.task.python, plan.task.statics)
    _check_selecting(plan, settings, task)
    record = Record(folder)
    taken_up = record.holds(plan)
    splits = load_splits(plan.task.name, plan.task.statics, task, task.split_names(), console)
    for name in ("train", settings.selecting[0]):
        if not len(splits[name]):
            raise mistakes.empty_split(plan.task.name, name)
    if not taken_up:
        record.begin(plan)
    fabric.seed_everything(plan.seed, verbose=False)
    module = build(plan.graph)
    at_test = module if plan.at_test is plan.graph else build(plan.at_test)
    display = Display(console, plan.recipe) if console is not None else None
    watcher = display or Silent()
    training = Training(fabric, module, at_test, plan.train.python, settings, task, splits, record, plan.seed, watcher)
    try:
        if taken_up and training.resume() and console is not None:
            console.print(f"going on with {folder} at step {training.progress.step}", markup=False)
        stop = stop or Stop()
        showing = display.showing(training.total, training.progress.step) if display else nullcontext()
        with stop.listening(), showing:
            trained = training.run(stop)
        if trained.stopped:
            return Outcome(folder, trained.step, True, (), (), task.breakdown, task.metrics, {})
        training.restore_best()
        scores = _test(training, splits, task, console)
        claims = _claims(plan, scores, task)
        _keep(record, scores, claims, trained.best_step)
        return Outcome(folder, trained.step, False, scores, claims, task.breakdown, task.metrics, _trained_on(splits))
    finally:
        record.close()


def _check_selecting(plan: Plan, settings: Settings, task: Task) -> None:
    split, metric = settings.selecting
    if split not in task.split_names():
        raise mistakes.no_such_split(plan.task.name, split, task.split_names())
    if metric not in task.metrics:
        raise mistakes.no_such_metric(plan.task.name, metric, task.metrics)


def load_splits(
    name: str, statics: Mapping[str, StaticValue], task: Task, wanted: Sequence[str], console: Console | None
) -> dict[str, Split]:
    """The splits of a task, generated once and then read from the cache."""
    status = console.status(f"preparing the data of {name}") if console is not None else nullcontext()
    with status:
        return {split: cache.load(name, statics, task, split, _DATA_SEED) for split in wanted}


def _trained_on(splits: Mapping[str, Split]) -> dict[str, tuple[int, ...]]:
    """By group, the values that training has seen."""
    groups = splits["train"].groups.items()
    return {name: tuple(int(value) for value in np.unique(values)) for name, values in groups}


def _test(training: Training, splits: Mapping[str, Split], task: Task, console: Console | None) -> tuple[Score, ...]:
    """Every split but the one that was trained on, with the selected weights."""
    module = training.tested()
    device = next(module.parameters()).device
    status = console.status("measuring every split") if console is not None else nullcontext()
    with status:
        return tuple(
            evaluate(module, Data(split, device), split, name, task)
            for name, split in splits.items()
            if name != "train" and len(split)
        )


def _claims(plan: Plan, scores: Sequence[Score], task: Task) -> tuple[dict[str, Any], ...]:
    """Each claim with what was measured, where this point is the one that it is about."""
    by_name = {score.split: score for score in scores}
    rows = []
    for claim in plan.claims:
        about = {name: value for name, value in claim.at.items() if name in plan.settings}
        measured = None
        if all(plan.settings[name] == value for name, value in about.items()):
            split, _, metric = claim.metric.partition(".")
            score = by_name.get(split)
            if score is not None:
                groups = {name: value for name, value in claim.at.items() if name not in plan.settings}
                measured = _measured(score, metric, claim.index, groups, task)
        rows.append(
            {
                "metric": claim.metric if claim.index is None else f"{claim.metric}[{claim.index}]",
                "value": claim.value,
                "deviation": claim.deviation,
                "at": {name: str(value) for name, value in claim.at.items()},
                "from": claim.origin,
                "measured": measured,
            }
        )
    return tuple(rows)


def _measured(score: Score, metric: str, index: int | None, at: Mapping[str, StaticValue], task: Task) -> float | None:
    """A metric of a split, or of one group of it: `test.accuracy[20]`, or `at test.ignore = 0.1`."""
    if index is not None:
        return score.groups.get(task.breakdown, {}).get(index, {}).get(metric)
    for path, value in at.items():
        group = score.groups.get(path.partition(".")[2], {})
        # Groups are whole numbers: a probability is counted in per cent.
        number = round(value * 100) if isinstance(value, float) else value
        found = group.get(number) if isinstance(number, int) else None
        return None if found is None else found.get(metric)
    return score.metrics.get(metric)


def _keep(record: Record, scores: Sequence[Score], claims: Sequence[Mapping[str, Any]], best: int | None) -> None:
    record.write_json(
        "results.json",
        {
            "best_step": best,
            "splits": {
                score.split: {
                    "items": score.items,
                    "loss": score.loss,
                    "metrics": dict(score.metrics),
                    "groups": {name: dict(values) for name, values in score.groups.items()},
                }
                for score in scores
            },
            "claims": list(claims),
        },
    )


def evaluate_run(
    folder: Path, splits: Sequence[str] | None = None, *, device: str = "auto", console: Console | None = None
) -> Outcome:
    """Measures the selected weights of a run again, from its folder alone.

    Raises:
        RunError: the folder is no run, has no checkpoint, or the task has no such split."""
    run = _read_json(folder, "run.json")
    statics = {name: decode(value) for name, value in run["task"]["statics"].items()}
    task = make_task(run["task"]["name"], run["task"]["python"], statics)
    wanted = list(splits or [name for name in task.split_names() if name != "train"])
    for name in wanted:
        if name not in task.split_names():
            raise mistakes.no_such_split(run["task"]["name"], name, task.split_names())
    checkpoints = Checkpoints(folder / "checkpoints")
    latest = checkpoints.latest()
    if latest is None:
        raise mistakes.no_checkpoint(folder)
    best = latest.state.get("best_step")
    saved = checkpoints.read(best) if best in checkpoints.steps() else latest
    text = _read(folder, "graph_at_test.txt")
    fabric = make_fabric(device)
    module = build(parse_graph(text))
    module.load_state_dict(dict(saved.weights))
    module.to(fabric.device)
    data = load_splits(run["task"]["name"], statics, task, [*wanted, "train"], console)
    scores = tuple(
        evaluate(module, Data(data[name], fabric.device), data[name], name, task) for name in wanted if len(data[name])
    )
    return Outcome(folder, saved.step, False, scores, (), task.breakdown, task.metrics, _trained_on(data))


def _read(folder: Path, name: str) -> str:
    try:
        return (folder / name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise mistakes.not_a_run(folder, name) from None


def _read_json(folder: Path, name: str) -> dict[str, Any]:  # Any: JSON
    try:
        found = json.loads(_read(folder, name))
    except ValueError as error:
        raise mistakes.damaged(folder / name, str(error)) from error
    if not isinstance(found, dict):
        raise mistakes.damaged(folder / name, "it holds no object")
    return found
