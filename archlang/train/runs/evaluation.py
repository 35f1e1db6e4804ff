"""The evaluation of a run on every split, at its end or from its folder."""

import shlex
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from archlang.backend.architecture import Architecture
from archlang.backend.mistakes import BuildError
from archlang.compile import build
from archlang.errors import ArchlangError
from archlang.errors.machine import machine_error
from archlang.graph import Graph
from archlang.plan.from_file import rebind
from archlang.plan.measures import group_value
from archlang.plan.plan import BoundExtern, Plan
from archlang.plugins import Plugins
from archlang.tasks.kit import cache
from archlang.tasks.kit.cache import ReadsUserFiles
from archlang.tasks.kit.drawing import shared_rows
from archlang.tasks.kit.make_task import is_own, make_task
from archlang.tasks.kit.mistakes import items_shared
from archlang.tasks.kit.pages import PageTask
from archlang.tasks.kit.split import Split, digest
from archlang.tasks.kit.streams import StreamPart
from archlang.tasks.kit.task import Task, TaskWithVocabulary, group_names, streamed_splits
from archlang.train.cuda_graph import CudaGraphEvaluation, make_capture
from archlang.train.data import DeviceSplit
from archlang.train.devices import select_device
from archlang.train.record import mistakes as record_mistakes
from archlang.train.record import reading, schemas
from archlang.train.record.checkpoint import Checkpoint, Checkpoints
from archlang.train.record.mistakes import RunWarning
from archlang.train.refusals import why_evaluated_eagerly
from archlang.train.runs import mistakes
from archlang.train.runs.inputs import InputFormat
from archlang.train.score import DEFAULT_ANSWERS, Interrupted, add_written, compute_eagerly, evaluate
from archlang.train.settings import NO_SETTINGS, Settings
from archlang.train.stop import Stop
from archlang.train.trainer import SILENT, Trainer, Watcher, alternatives, ranking
from archlang.types.statics import StaticValue

_EVALUATING = "evaluating every split"


def measure(
    results: schemas.Results, metric: str, index: int | None, groups: Mapping[str, StaticValue]
) -> tuple[float | None, bool]:
    """Returns a metric of a split, such as `test.accuracy`, over the samples with these values of groups, None if it
    was not measured; and whether its split has no such samples.

    Args:
        index: The value of the group by which the task breaks its splits down."""
    split, _, name = metric.partition(".")
    values = {group: group_value(value, results.group_names.get(group, ())) for group, value in groups.items()}
    if index is not None:
        values[results.breakdown] = index
    measured = results.value(split, name, values)
    return measured, measured is None and bool(values) and results.value(split, name) is not None


def measured_claims(plan: Plan, results: schemas.Results) -> tuple[schemas.ClaimResult, ...]:
    """Returns each claim of a plan with its measurement.

    A path after `at` that is a setting (`task.order`) names the point that the claim is about. Any other path
    (`test.ignore`) names a group of the split."""
    claims = []
    for claim in plan.claims:
        groups = {path.partition(".")[2]: value for path, value in claim.at.items() if path not in plan.settings}
        is_of_point = all(plan.settings.get(path, value) == value for path, value in claim.at.items())
        measured, has_no_group = measure(results, claim.metric, claim.index, groups) if is_of_point else (None, False)
        index = "" if claim.index is None else f"[{claim.index}]"
        claims.append(schemas.ClaimResult(
            metric=f"{claim.metric}{index}", value=claim.value, deviation=claim.deviation,
            at={name: str(value) for name, value in claim.at.items()}, origin=claim.origin, measured=measured,
            median=claim.median, has_no_group=has_no_group, text=claim.text,
        ))  # fmt: skip
    return tuple(claims)


@contextmanager
def explaining_stored_model(path: Path) -> Iterator[None]:
    """Raises a RunError that names `path`, a file of the model, in place of an error of the model's code: only some
    mistakes of a graph or a vocabulary are found when they are read."""
    try:
        yield
    except BuildError as error:
        raise mistakes.stored_model_fails(path, str(error)) from error
    except (ArchlangError, OSError, MemoryError, Warning):
        raise
    except Exception as error:  # whatever the model's code does
        if machine_error(error) is not None:
            raise
        reason = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
        raise mistakes.stored_model_fails(path, reason) from error


@dataclass(frozen=True)
class Result:
    """How a run ended, or a new evaluation of it; without results if it was stopped."""

    folder: Path
    step: int
    results: schemas.Results | None = None
    trained: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """by group, the values that occur in the training split"""

    @property
    def stopped(self) -> bool:
        return self.results is None

    @property
    def splits(self) -> Mapping[str, schemas.SplitResult]:
        """The measurements of each split; none if it was stopped."""
        return {} if self.results is None else self.results.splits


def conclude(plan: Plan, trainer: Trainer, data: schemas.DataRecord, stop: Stop) -> Result:
    """Evaluates every split of a run that has reached its last step, and the training split only if there is no other,
    with the selected weights, and writes its results. `data` describes its splits."""
    if trainer.error is not None:
        raise trainer.error
    step, task = trainer.progress.step, trainer.task
    stopped = Result(trainer.record.folder, step)
    if trainer.stopped:
        return stopped
    trainer.fabric.barrier()  # the first process has written the checkpoints that all of them read
    best_step = trainer.restore_best()
    try:
        with trainer.watcher.working(_EVALUATING):
            splits = {
                name: trainer.score(name, stop, DEFAULT_ANSWERS).result()
                for name, split in trainer.splits.items()
                if len(split) and (name != "train" or len(trainer.splits) == 1)
            }
    except Interrupted:
        return stopped
    if not trainer.fabric.is_global_zero:
        return stopped
    if trainer.is_sharded and best_step is not None:
        trainer.checkpoints.join(best_step)
    _warn_of_divergence(splits)
    selecting_metric = trainer.settings.selecting[1]
    # Weights that the loss selects are compared by the task's first metric.
    metric = task.metrics[0] if selecting_metric == "loss" else selecting_metric
    results = schemas.Results(
        best_step=best_step,
        ended_early=step if step < trainer.total else None,
        breakdown=task.breakdown,
        in_distribution=tuple(task.in_distribution),
        splits=splits,
        group_names=group_names(task),
        selection=alternatives(trainer.progress.history, metric),
    )
    results = results.model_copy(update={"claims": measured_claims(plan, results)})
    trainer.record.write_json(schemas.RESULTS, results)
    return replace(stopped, results=results, trained=data.trained)


def _warn_of_divergence(splits: Mapping[str, schemas.SplitResult]) -> None:
    """Warns if a loss is NaN or infinite: the metrics of such a model look like those of others."""
    diverged = ", ".join(name for name, split in splits.items() if split.loss is None)
    if diverged:
        message = f"the loss of {diverged} is NaN or infinite: the training has diverged, and its metrics mean nothing"
        warnings.warn(message, RunWarning, stacklevel=3)


# From a run folder


@dataclass(frozen=True, eq=False)
class OpenedRun:
    """A run folder or a saved model: a module with its selected weights, and its task, with the vocabulary of the run.
    `data` describes the splits of the run, if they are recorded. `has_other_statics`: the task differs from that of the
    run."""

    folder: Path
    record: schemas.ModelRecord
    bound_task: BoundExtern
    module: Architecture
    step: int
    data: schemas.DataRecord | None
    device: torch.device
    plugins: Plugins
    input_format: InputFormat
    has_other_statics: bool = False

    @cached_property
    def task(self) -> Task:
        """The task."""
        task = make_task(self.bound_task.name, self.bound_task.python, self.bound_task.statics, self.plugins)
        return self.input_format.bind(task)

    def load(self, splits: Sequence[str] | None = None, watcher: Watcher = SILENT) -> dict[str, Split]:
        """Loads splits of the task; without names, all except `train`."""
        names = list(dict.fromkeys(splits or [split for split in self.task.split_names() if split != "train"]))
        for name in names:
            if name not in self.task.split_names():
                raise mistakes.no_such_split(self.bound_task.name, name, self.task.split_names())
        loaded = load_splits(self.bound_task.name, self.bound_task.statics, self.task, names, watcher)
        recorded = {} if self.data is None or self.has_other_statics else self.data.root
        for name, split in loaded.items() if recorded else ():
            if describe_split(split) != recorded.get(name):
                message = f"the {name} split is not the one that {self.folder} was made with"
                warnings.warn(message, RunWarning, stacklevel=3)
        return loaded

    def warn_of_changes(self, splits: Iterable[str]) -> None:
        """Warns if further splits of the user's own files are not those of the run."""
        for name in splits:
            try:
                self.load([name])
            except ArchlangError as error:
                message = f"the {name} split cannot be compared with that of {self.folder}: {error}"
                warnings.warn(message, RunWarning, stacklevel=3)


def open_run(
    folder: Path,
    *,
    checkpoint: str | int = "best",
    device: str = "auto",
    plugins: Iterable[str | Path] = (),
    sets: Mapping[str, str] | None = None,
) -> OpenedRun:
    """Opens a run folder. `plugins` are the Python files that the user trusts, those that the run was trained with.
    `sets`, such as `{"task.test": "[64, 128]"}`, change statics of a shipped task.

    `checkpoint` is `best`, the selected weights; `last`; or a step whose checkpoint is kept.

    Raises:
        RunError: the folder is no run folder or has no such checkpoint, or the task cannot be changed so.
        ProgramError: the task has no such statics.
        PluginError: a plugin cannot be imported, or the run was trained with others."""
    reading.require_intact(folder)
    record = reading.read_run(folder, schemas.ModelRecord)
    if record.task is None:
        raise mistakes.without_task(folder)
    trusted = reading.read_plugins(folder, record, plugins)
    bound_task = _with_statics(record.task, sets, record.gives) if sets else record.task
    input_format = reading.read_record(folder, schemas.VOCABULARY, InputFormat)
    torch_device = select_device(device)
    module, step = trained_module(folder, record, checkpoint, reading.read_graph(folder), trusted)
    data = (
        None
        if reading.is_saved(folder) and not reading.has(folder, schemas.DATA)
        else reading.read_record(folder, schemas.DATA, schemas.DataRecord)
    )
    return OpenedRun(
        folder, record, bound_task, module.to(torch_device), step, data, torch_device, trusted, input_format,
        bool(sets),
    )  # fmt: skip


def trained_module(
    folder: Path, record: schemas.ModelRecord, checkpoint: str | int, graph: Graph, plugins: Plugins
) -> tuple[Architecture, int]:
    """Returns the module of a run folder with the weights of a checkpoint as of `open_run`, and their step. Needs no
    Python of the task."""
    weights = stored_weights(folder, record, checkpoint)
    with explaining_stored_model(folder / reading.GRAPH_AT_TEST):
        module = build(graph, plugins, without=record.without_passes)
    types = {value.dtype for value in weights.weights.values() if value.is_floating_point()}
    if weights.stored_state is None and len(types) == 1:
        module.to(types.pop())  # that of a module which was saved in another precision
    weights.load_into(module)
    return module, weights.step


def _with_statics(task: BoundExtern, sets: Mapping[str, str], sizes: Mapping[str, int]) -> BoundExtern:
    if not is_own(task.python):
        raise mistakes.statics_of_own_task(task.name)
    task_now, sizes_now = rebind("task", task, sets)
    if sizes_now != sizes:
        raise mistakes.changed_sizes(task.name, sizes, sizes_now)
    return task_now


def stored_weights(folder: Path, record: schemas.ModelRecord, wanted: str | int) -> Checkpoint:
    """Returns the checkpoint of a step, the last one, or the best one so far, which is the last one before the first
    evaluation. A saved model has one."""
    checkpoints = Checkpoints(folder / reading.CHECKPOINTS)
    if reading.is_saved(folder) and (steps := checkpoints.steps()):
        return checkpoints.read(steps[-1])
    if wanted not in ("best", "last"):
        if isinstance(wanted, bool) or not str(wanted).isdecimal():
            raise mistakes.unknown_checkpoint(wanted)
        if int(wanted) not in checkpoints.steps():
            raise mistakes.no_such_checkpoint(folder, wanted, checkpoints.steps() or "none")
        return checkpoints.read(int(wanted))
    latest = checkpoints.latest()
    if latest is None:
        if checkpoints.steps():
            raise checkpoints.none_intact()
        raise mistakes.no_checkpoint(folder, shlex.quote(str(folder)))
    if wanted == "last" or latest.stored_state is None:
        return latest
    if "train.select" not in record.settings:
        raise record_mistakes.damaged(folder / schemas.RUN, "there is no setting `train.select`")
    split, _, metric = str(record.settings["train.select"]).partition(".")
    return checkpoints.first_intact(ranking(latest.state.history, split, metric)) or latest


def evaluate_run(
    folder: Path,
    splits: Sequence[str] | None = None,
    *,
    checkpoint: str | int = "best",
    device: str = "auto",
    written: int = DEFAULT_ANSWERS,
    plugins: Iterable[str | Path] = (),
    sets: Mapping[str, str] | None = None,
    watcher: Watcher = SILENT,
    eager: bool = False,
) -> Result:
    """Evaluates a run again: its selected weights or those of another `checkpoint`, on its task or with other statics
    of a shipped one, as `open_run` takes them. If the answers of a split are sequences, the model writes at most
    `written` of them without teacher forcing. On a GPU, batches are CUDA graphs where they can be, unless they are
    `eager`.

    Raises:
        ProgramError: the task has no such statics.
        RunError: the folder is no run folder, has no checkpoint, or the task has no such split."""
    run = open_run(folder, checkpoint=checkpoint, device=device, plugins=plugins, sets=sets)
    task, module = run.task, run.module
    loaded = run.load(splits, watcher)
    if isinstance(task, TaskWithVocabulary) and run.data is not None and not run.has_other_statics:
        run.warn_of_changes(name for name in run.data.root if name not in (*loaded, *streamed_splits(task)))
    train = run.record.train
    settings = NO_SETTINGS
    if train is not None:
        settings = Settings(train.statics).with_functions(run.plugins, run.bound_task.name, task.metrics)
    loss = None if train is None else train.statics.get("loss")
    reason = why_evaluated_eagerly(module.program.graph, loss, run.device.type, eager=eager)
    compute = compute_eagerly if reason else CudaGraphEvaluation(module, make_capture(run.device))
    with explaining_stored_model(folder / reading.GRAPH_AT_TEST), watcher.working(_EVALUATING):
        measured = {
            name: add_written(
                evaluate(
                    module, DeviceSplit(split, run.device), split, name, task, settings=settings, compute=compute
                ),
                module, split, task, run.device, written, compute=compute,
            ).result()
            for name, split in loaded.items()
            if len(split)
        }  # fmt: skip
    _warn_of_divergence(measured)
    results = schemas.Results(
        best_step=run.step, breakdown=task.breakdown, splits=measured, group_names=group_names(task)
    )
    return Result(folder, run.step, results, {} if run.data is None else run.data.trained)


# The data of a run


def load_splits(
    name: str, statics: Mapping[str, StaticValue], task: Task, splits: Iterable[str], watcher: Watcher
) -> dict[str, Split]:
    """Returns splits of the task `name`. They are generated once and then read from the cache."""
    with watcher.working(f"preparing the data of {name}"):
        return {split: cache.load(name, statics, task, split, cache.DATA_SEED) for split in splits}


def compare_with_train(task: Task, splits: Mapping[str, Split]) -> None:
    """Warns if rows of the user's files that other splits have are also in `train`, as the model reads them.

    Raises:
        TaskError: so are items of a page, although the splits have no length in common."""
    apart = task.disjoint if isinstance(task, PageTask) else ()
    for name, split in splits.items():
        if name == "train" or not (isinstance(task, ReadsUserFiles) or name in apart):
            continue
        shared = _shared_rows(split, splits["train"])
        if shared and isinstance(task, PageTask):
            raise items_shared(shared, len(split), name, task.name)
        if shared:
            message = f"the model reads {shared:,} of the {len(split):,} rows of {name} in train too"
            warnings.warn(message, RunWarning, stacklevel=3)


def _shared_rows(split: Split, train: Split) -> int:
    key = [digest(split), digest(train), "and answers"]
    return int(cache.entry("shared", key, list, lambda _: {"rows": shared_rows(split, train)}).facts["rows"])


def describe_data(splits: Mapping[str, Split]) -> schemas.DataRecord:
    """Returns what a run folder holds about its splits."""
    return schemas.DataRecord({name: describe_split(split) for name, split in splits.items()})


def describe_split(split: Split) -> schemas.SplitRecord:
    """Returns what a run folder holds about a split: enough to notice that it has changed."""
    groups = {name: np.unique(values).tolist() for name, values in split.groups.items()}
    stream = split.stream.source if isinstance(split, StreamPart) else ""
    return schemas.SplitRecord(items=len(split), groups=groups, sha256=digest(split), stream=stream)
