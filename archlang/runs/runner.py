"""From a plan to a trained, tested and recorded run; and from a run folder to new measurements."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from rich.console import Console

from archlang.backend.architecture import Architecture
from archlang.backend.runtime.compiled import compile_bodies
from archlang.compile import build
from archlang.diagnostics import ArchlangError
from archlang.plan.plan import Plan
from archlang.record import mistakes as record_mistakes
from archlang.record.checkpoint import Checkpoint, Checkpoints
from archlang.record.mistakes import RunError
from archlang.record.reading import read_graph, read_record
from archlang.record.run_folder import Record, RecordWarning
from archlang.record.schemas import DATA, RESULTS, RUN, Alternative, DataRecord, Results, RunRecord, SplitRecord
from archlang.record.trackers import open_trackers
from archlang.runs import mistakes
from archlang.runs.claims import Comparison, compare
from archlang.runs.progress import Display, Silent, measuring
from archlang.tasks.kit import cache
from archlang.tasks.kit.make_task import make_task
from archlang.tasks.kit.split import Split, digest
from archlang.tasks.kit.task import Task
from archlang.train.data import Data
from archlang.train.decoding import MOST, add_written
from archlang.train.devices import compiler_told, enough_memory, make_fabric
from archlang.train.generators import random_state
from archlang.train.loop import Trained, Training
from archlang.train.optimizers import make_optimizer
from archlang.train.score import Interrupted, Score, evaluate
from archlang.train.selection import alternatives, ranking
from archlang.train.settings import Settings
from archlang.train.step.cuda_graph import graphs_told, make_capture
from archlang.train.step.stacked import Member, NotTogether, Together, TogetherWarning, at_one_step
from archlang.train.stop import Stop
from archlang.types.statics import StaticValue

_HIGHEST_SEED = 2**32 - 1


@dataclass(frozen=True)
class Outcome:
    """How a run ended, or what was measured of it again. `scores` are empty if it was stopped."""

    folder: Path
    step: int
    stopped: bool
    scores: tuple[Score, ...]
    claims: tuple[Comparison, ...]
    breakdown: str
    metrics: tuple[str, ...]
    trained: Mapping[str, Sequence[int]]
    """by group, the values that training has seen"""
    others: tuple[Alternative, ...] = ()
    """what stopping at the lowest loss would have meant"""


# Training


def train(
    plan: Plan,
    folder: Path,
    *,
    device: str = "auto",
    precision: str = "32",
    devices: int = 1,
    nodes: int = 1,
    track: Sequence[str] = (),
    compiled: bool = False,
    graphs: bool = False,
    console: Console | None = None,
    stop: Stop | None = None,
) -> Outcome:
    """Trains one point of a recipe into a run folder, or goes on with the run that the folder holds. With several
    `devices` or `nodes` the program is started once for each, and the first of them writes. `track` names services that
    are told of the curves. With `compiled`, torch compiles the bodies of loops; with `graphs`, steps are CUDA graphs.

    Raises:
        RunError: the run cannot begin or go on; what was written before is whole.
        TaskError: the task cannot be made as asked."""
    settings, task = _parts(plan)
    fabric = make_fabric(device, precision, devices, nodes)
    record = Record(folder)
    record.check(plan, precision)
    if devices * nodes > 1:
        fabric.launch()
        # Its name may hold the time, which each process has taken for itself.
        record = Record(Path(fabric.broadcast(str(folder))))
    splits = _load_all(plan, settings, task, console)
    # Before the seed is set: what is tested does not change what is trained.
    tested = None if plan.at_test is plan.graph else build(plan.at_test)
    fabric.seed_everything(plan.seed, verbose=False)
    module = build(plan.graph)
    optimizer = make_optimizer(plan.train, settings, module, precision)
    if compiled:
        compile_bodies(module)
    capture = make_capture(module, fabric.device, precision, fabric.world_size) if graphs else None
    data = describe_data(splits)
    display = Display(console, plan.recipe) if console is not None else None
    stop = stop or Stop()
    try:
        taken_up = record.begin(plan, precision, data, fabric.device) if fabric.is_global_zero else True
        fabric.barrier()
        record.trackers = open_trackers(track if fabric.is_global_zero else (), plan, record.folder)
        with enough_memory(fabric.device, settings.batch), compiler_told(), graphs_told(), stop.listening():
            training = Training(
                fabric, module, tested or module, optimizer, settings, task, splits, record, plan.seed,
                display or Silent(),
            )  # fmt: skip
            if capture is not None:
                training.use_graphs(capture)
            if taken_up and training.resume() and console is not None:
                console.print(f"going on at step {training.progress.step}", markup=False)
            with display.showing(training.total, training.progress.step) if display else nullcontext():
                trained = training.run(stop)
            leads = fabric.is_global_zero
            outcome = None
            if leads and not trained.stopped:
                outcome = _finish(plan, training, splits, data, record, stop, fabric.device, console)
        fabric.barrier()
    finally:
        record.close()
        if fabric.world_size > 1:
            torch.distributed.destroy_process_group()
    return outcome or _stopped(record, trained, task)


def train_together(
    plans: Sequence[Plan],
    folders: Sequence[Path],
    *,
    device: str = "auto",
    precision: str = "32",
    stop: Stop | None = None,
) -> list[Outcome | ArchlangError]:
    """Trains points that differ by their seeds alone as one model, each into its own folder as `train` does: how each
    ended, or what went wrong with it. They go on from the last step of which all have a checkpoint. Those that cannot
    be trained together are trained one after another, with a warning.

    Raises:
        RunError: none of them can begin or go on.
        TaskError: the task cannot be made as asked."""
    stop = stop or Stop()
    ended = _as_one(plans, folders, device, precision, stop)
    for index, (plan, folder) in enumerate(zip(plans, folders, strict=True)):
        if index not in ended:
            try:
                ended[index] = train(plan, folder, device=device, precision=precision, stop=stop)
            except ArchlangError as error:
                ended[index] = error
    return [ended[index] for index in range(len(plans))]


def _as_one(
    plans: Sequence[Plan], folders: Sequence[Path], device: str, precision: str, stop: Stop
) -> dict[int, Outcome | ArchlangError]:
    """What became of those that could be trained together, or cannot be trained."""
    first = plans[0]
    settings, task = _parts(first)
    fabric = make_fabric(device, precision)
    splits = _load_all(first, settings, task, None)
    data = describe_data(splits)
    tested = None if first.at_test is first.graph else build(first.at_test)
    placed: dict[str, Data] = {}
    ended: dict[int, Outcome | ArchlangError] = {}
    members: dict[int, Member] = {}
    with ExitStack() as records, enough_memory(fabric.device, settings.batch), stop.listening():
        for index, (plan, folder) in enumerate(zip(plans, folders, strict=True)):
            record = Record(folder)
            records.callback(record.close)
            try:
                _parts(plan)
                fabric.seed_everything(plan.seed, verbose=False)
                module = build(plan.graph)
                optimizer = make_optimizer(plan.train, settings, module, precision)
                taken_up = record.begin(plan, precision, data, fabric.device)
                training = Training(
                    fabric, module, tested or module, optimizer, settings, task, splits, record, plan.seed, Silent(),
                    placed,
                )  # fmt: skip
                members[index] = Member(training, module, taken_up, random_state(fabric.device))
            except ArchlangError as error:
                ended[index] = error
        for step, indices in at_one_step(members):
            group = [members[index] for index in indices]
            try:
                together = Together(group, partial(make_optimizer, first.train, settings, precision=precision))
                together.resume(step)
                found = together.run(stop)
            except NotTogether as why:
                said = f"`{first.model}` cannot train together: {why}; its seeds train one after another"
                warnings.warn(said, TogetherWarning, stacklevel=3)
                continue
            for index, member, how in zip(indices, group, found, strict=True):
                ended[index] = _end(plans[index], how, member.training, splits, data, stop, fabric.device)
    return ended


def _end(
    plan: Plan,
    how: Trained | RunError,
    training: Training,
    splits: Mapping[str, Split],
    data: DataRecord,
    stop: Stop,
    device: torch.device,
) -> Outcome | ArchlangError:
    """What became of one of several runs."""
    if isinstance(how, RunError):
        return how
    outcome = None
    if not how.stopped:
        try:
            outcome = _finish(plan, training, splits, data, training.record, stop, device, None)
        except ArchlangError as error:
            return error
    return outcome or _stopped(training.record, how, training.task)


def _parts(plan: Plan) -> tuple[Settings, Task]:
    """How a point is trained, and on what."""
    settings = Settings.of(plan.train.statics)
    if not 0 <= plan.seed <= _HIGHEST_SEED:
        raise mistakes.seed_out_of_bounds(plan.seed, _HIGHEST_SEED)
    task = make_task(plan.task.name, plan.task.python, plan.task.statics, plan.task.plugin)
    split, metric = settings.selecting
    if split not in task.split_names():
        raise mistakes.no_such_split(plan.task.name, split, task.split_names())
    if metric not in (*task.metrics, "loss"):
        raise mistakes.no_such_metric(plan.task.name, metric, task.metrics)
    return settings, task


def _load_all(plan: Plan, settings: Settings, task: Task, console: Console | None) -> dict[str, Split]:
    splits = load_splits(plan.task.name, plan.task.statics, task, task.split_names(), console)
    for name in ("train", settings.selecting[0]):
        if not len(splits[name]):
            raise mistakes.empty_split(plan.task.name, name)
    return splits


def _stopped(record: Record, trained: Trained, task: Task) -> Outcome:
    return Outcome(record.folder, trained.step, True, (), (), task.breakdown, task.metrics, {})


def _finish(
    plan: Plan,
    training: Training,
    splits: Mapping[str, Split],
    data: DataRecord,
    record: Record,
    stop: Stop,
    device: torch.device,
    console: Console | None,
) -> Outcome | None:
    """Measures every split but the one that was trained on, with the selected weights; None if it is stopped."""
    best = training.restore_best()
    try:
        with measuring(console) as watcher:
            scores = tuple(
                add_written(
                    training.score(name, stop), training.tested(), split, training.task, device,
                    stopping=lambda: stop.asked, watcher=watcher,
                )
                for name, split in splits.items()
                if name != "train" and len(split)
            )  # fmt: skip
    except Interrupted:
        return None
    task = training.task
    claims = compare(plan, scores, task.breakdown)
    others = alternatives(training.progress.history, _selected_by(training.settings, task))
    record.write_json(
        RESULTS,
        Results(
            best_step=best,
            breakdown=task.breakdown,
            in_distribution=tuple(task.in_distribution),
            splits={score.split: score.result() for score in scores},
            selection=others,
            claims=tuple(claim.result() for claim in claims),
        ),
    )
    return Outcome(
        record.folder, training.progress.step, False, scores, claims, task.breakdown, _measured(task, scores),
        data.trained, others,
    )  # fmt: skip


def _measured(task: Task, scores: Iterable[Score]) -> tuple[str, ...]:
    """The metrics of a task, and what was measured besides."""
    return tuple(dict.fromkeys((*task.metrics, *(metric for score in scores for metric in score.metrics))))


def _selected_by(settings: Settings, task: Task) -> str:
    """The metric that selects; the task's first where it is the loss that does."""
    metric = settings.selecting[1]
    return task.metrics[0] if metric == "loss" else metric


# Tasks


def load_splits(
    name: str, statics: Mapping[str, StaticValue], task: Task, wanted: Iterable[str], console: Console | None
) -> dict[str, Split]:
    """The splits of a task, generated once and then read from the cache."""
    with console.status(f"preparing the data of {name}") if console is not None else nullcontext():
        return {split: cache.load(name, statics, task, split, cache.DATA_SEED) for split in wanted}


def describe_data(splits: Mapping[str, Split]) -> DataRecord:
    """Returns what a run records of its splits."""
    return DataRecord({name: describe_split(split) for name, split in splits.items()})


def describe_split(split: Split) -> SplitRecord:
    """Returns what a run records of a split: enough to notice that the data have changed."""
    groups = {name: np.unique(values).tolist() for name, values in split.groups.items()}
    return SplitRecord(items=len(split), groups=groups, sha256=digest(split))


# A run again


@dataclass(frozen=True, eq=False)
class Opened:
    """A run folder's task, called `name`, and its selected weights."""

    folder: Path
    recipe: str
    name: str
    statics: Mapping[str, StaticValue]
    task: Task
    module: Architecture
    step: int
    data: DataRecord
    device: torch.device

    def load(self, wanted: Sequence[str] | None, console: Console | None) -> dict[str, Split]:
        """Some splits of the task; all but `train` if none are named.

        Raises:
            RunError: the task has no such split."""
        names = list(dict.fromkeys(wanted or [split for split in self.task.split_names() if split != "train"]))
        for split in names:
            if split not in self.task.split_names():
                raise mistakes.no_such_split(self.name, split, self.task.split_names())
        found = load_splits(self.name, self.statics, self.task, names, console)
        for split, items in found.items():
            if describe_split(items) != self.data.root.get(split):
                message = f"the {split} split is not the one that {self.folder} was made with"
                warnings.warn(message, RecordWarning, stacklevel=3)
        return found


def open_run(folder: Path, *, device: str = "auto", plugin: str = "") -> Opened:
    """A run from its folder alone. A task of the user's own has its class in the file `plugin`.

    Raises:
        RunError: the folder is no run, or has no checkpoint."""
    run, data = read_record(folder, RUN, RunRecord), read_record(folder, DATA, DataRecord)
    if "train.select" not in run.settings:
        raise record_mistakes.damaged(folder / RUN, "there is no setting `train.select`")
    split, _, metric = str(run.settings["train.select"]).partition(".")
    task = make_task(run.task.name, run.task.python, run.task.statics, plugin)
    fabric = make_fabric(device)
    saved = _selected(folder, split, metric)
    module = build(read_graph(folder))
    saved.load_into(module)
    module.to(fabric.device)
    return Opened(
        folder, run.recipe, run.task.name, run.task.statics, task, module, saved.step, data, fabric.device
    )  # fmt: skip


def evaluate_run(
    folder: Path,
    splits: Sequence[str] | None = None,
    *,
    device: str = "auto",
    written: int = MOST,
    plugin: str = "",
    console: Console | None = None,
) -> Outcome:
    """Measures the selected weights of a run again. Of a split whose answers are sequences, the model writes at most
    `written` by itself.

    Raises:
        RunError: the folder is no run, has no checkpoint, or the task has no such split."""
    run = open_run(folder, device=device, plugin=plugin)
    task, module = run.task, run.module
    found = run.load(splits, console)
    with measuring(console) as watcher:
        scores = tuple(
            add_written(
                evaluate(module, Data(items, run.device), items, split, task), module, items, task, run.device,
                written, watcher=watcher,
            )
            for split, items in found.items()
            if len(items)
        )  # fmt: skip
    return Outcome(folder, run.step, False, scores, (), task.breakdown, _measured(task, scores), run.data.trained)


def _selected(folder: Path, split: str, metric: str) -> Checkpoint:
    """The best checkpoint of a run so far; where nothing was measured yet, the latest."""
    checkpoints = Checkpoints(folder / "checkpoints")
    latest = checkpoints.latest()
    if latest is None:
        if checkpoints.steps():
            raise record_mistakes.no_whole_checkpoint(checkpoints.folder)
        raise mistakes.no_checkpoint(folder)
    return checkpoints.first_intact(ranking(latest.state.history, split, metric)) or latest
