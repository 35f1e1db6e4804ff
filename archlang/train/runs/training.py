"""From a plan to a trained and evaluated run in its folder; or from plans that differ in their seeds alone to runs that
are trained together, each in its own folder."""

import gc
import os
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext
from functools import partial
from pathlib import Path

import torch

from archlang.compile import build
from archlang.disk.memory import available_memory
from archlang.errors import ArchlangError
from archlang.plan.plan import Plan
from archlang.plan.rules import HIGHEST_SEED
from archlang.tasks.kit.make_task import make_task
from archlang.tasks.kit.split import Split
from archlang.tasks.kit.task import Task
from archlang.train import mistakes as train_mistakes
from archlang.train.cuda_graph import CudaGraphEvaluation, CudaGraphStep, ignoring_eager_steps, make_capture
from archlang.train.devices import explaining_out_of_memory, leaving_process_group, make_fabric, require_device
from archlang.train.memory import Measure, Memory, Remat, size, training_memory
from archlang.train.optimizers import make_optimizer
from archlang.train.record.curves import load_tracker, open_trackers
from archlang.train.record.mistakes import RunWarning
from archlang.train.record.run_folder import RunFolder, recorded_threads
from archlang.train.refusals import describe_steps, is_capturable, is_elementwise, uses_every_weight, why_eager
from archlang.train.runs import mistakes
from archlang.train.runs.evaluation import Result, compare_with_train, conclude, describe_data, load_splits
from archlang.train.runs.inputs import InputFormat
from archlang.train.runs.start import Start
from archlang.train.settings import Settings
from archlang.train.stacked import WEIGHTS_APART, StackedStep
from archlang.train.step import EagerStep
from archlang.train.stop import Stop
from archlang.train.trainer import SAVED_EVERY, SILENT, CannotStack, Interval, Trainer, Watcher, train_all


@leaving_process_group
def train(
    plan: Plan,
    folder: Path,
    *,
    device: str = "auto",
    precision: str = "32",
    devices: int = 1,
    nodes: int = 1,
    track: Sequence[str] = (),
    eager: bool = False,
    remat: Remat = 0,
    shard: bool = False,
    save: Interval = SAVED_EVERY,
    watcher: Watcher = SILENT,
    stop: Stop | None = None,
    splits: Sequence[str] = (),
) -> Result:
    """Trains one point of a recipe into a run folder, or resumes the run that the folder holds.

    With several `devices` or `nodes` the program is started once for each, and the first process writes. `track` names
    services that receive the curves. On a GPU, steps are CUDA graphs where they can be, and torch compiles the model
    where that repays, unless they are `eager`; with `remat`, loops keep their states only, and the backward pass
    computes so many steps together again; with `shard`, each of several processes holds a share of the weights, of
    their gradients and of the optimizer's state. A checkpoint follows each evaluation, and the steps or the time of
    `save`. A run that is stopped before its end needs only some of the `splits` of its task.

    Raises:
        RunError: the run cannot begin or continue; files that were written before are intact.
        TaskError: the task cannot be made."""
    settings, task = make_settings(plan)
    # Before other processes start, which would repeat the error.
    place = require_device(plan, device, precision, devices, nodes, shard=shard, remat=bool(remat))
    leaves_weights_out = not uses_every_weight(plan.graph)
    fabric = make_fabric(place, precision, devices, nodes, sharded=shard, leaves_weights_out=leaves_weights_out)
    record = RunFolder(folder)
    resumes = check_files(plan, folder, precision, track)
    if devices * nodes > 1:
        fabric.launch()
        # The name may hold the time at which each process was started.
        record = RunFolder(Path(fabric.broadcast(str(folder))))
    stop = stop or Stop()
    with (
        closing(record),
        _threads_of(record.folder) if resumes else nullcontext(),
        explaining_out_of_memory(fabric.device, settings.batch),
        ignoring_eager_steps(),
    ):
        require_memory(plan, fabric.device, devices, nodes, sharded=shard)
        loaded = _load_data(plan, settings, task, watcher, splits)
        data = describe_data(loaded)
        start = Start(settings, record.folder)
        trainer = Trainer(
            plan, settings, task, loaded, fabric, record, watcher, precision,
            remat=remat, sharded=shard, eager=eager, save=save, prepare=start.prepare,
        )  # fmt: skip
        reason = why_eager(plan, fabric.device.type, precision, devices * nodes, remat=bool(remat), eager=eager)
        if reason:
            step = EagerStep(trainer)
        else:
            capture = make_capture(fabric.device)
            step = CudaGraphStep(trainer, capture, moves=is_capturable(plan.train))
            trainer.compute = CudaGraphEvaluation(trainer.test_model, capture)
        record.steps = describe_steps(fabric.device.type, reason, trainer.is_compiled)
        if fabric.is_global_zero:
            input_format = InputFormat.of(task, trainer.test_model, loaded)
            record.begin(plan, precision, data, input_format, fabric.device, track, start.record)
        fabric.barrier()
        record.trackers += open_trackers(track if fabric.is_global_zero else (), plan, record.folder)
        with stop.listening():
            if trainer.resume():
                watcher.note(f"resuming at step {trainer.progress.step}")
            elif text := start.describe():
                watcher.note(text)
            if record.steps:
                watcher.note(f"steps run {record.steps}")
            with watcher.running(trainer.total, trainer.progress.step):
                train_all([trainer], step, stop)
            result = conclude(plan, trainer, data, stop)
        fabric.barrier()
        return result


def make_settings(plan: Plan) -> tuple[Settings, Task]:
    """Returns how a plan is trained, with the functions of the user's own, and its task."""
    if not 0 <= plan.seed <= HIGHEST_SEED:
        raise mistakes.seed_out_of_bounds(plan.seed, HIGHEST_SEED)
    task = make_task(plan.task.name, plan.task.python, plan.task.statics, plan.plugins)
    settings = Settings(plan.train.statics)
    split, metric = settings.selecting
    if split not in task.split_names():
        has_shares = hasattr(task, f"{split}_share")
        raise mistakes.no_selecting_split(plan.task.name, split, metric, task.split_names(), has_shares)
    settings = settings.with_functions(plan.plugins, plan.task.name, task.metrics)
    metrics = (*task.metrics, *settings.own_metrics)
    if metric not in (*metrics, "loss"):
        raise mistakes.no_such_metric(plan.task.name, metric, metrics)
    return settings, task


def check_files(plan: Plan, folder: Path, precision: str, track: Sequence[str] = ()) -> bool:
    """Returns whether the folder already holds this run. Changes nothing.

    Raises:
        MachineError: the package of a tracker is not installed.
        PluginError: the function of a tracker cannot be loaded.
        RunError: the folder holds something else, or there are no such trackers or weights to begin with."""
    resumes = RunFolder(folder).check(plan, precision)
    Start(Settings(plan.train.statics), folder).check()
    for name in track:
        load_tracker(name, plan)
    return resumes


def describe_start(plan: Plan, folder: Path) -> str:
    """Returns with which weights of another run a run begins, in words; empty if with none. Takes no memory for the
    model.

    Raises:
        RunError: none of the weights fits, they have changed, or no weight is left to train."""
    start = Start(Settings(plan.train.statics), folder)
    if plan.train.statics.get("weights") or plan.train.statics.get("frozen"):
        with torch.device("meta"):
            start.prepare(build(plan.graph, plan.plugins))
    return start.describe()


def _load_data(
    plan: Plan, settings: Settings, task: Task, watcher: Watcher = SILENT, splits: Sequence[str] = ()
) -> dict[str, Split]:
    loaded = load_needed(plan, settings, task, watcher, splits or task.split_names())
    compare_with_train(task, loaded)
    return loaded


def load_needed(
    plan: Plan, settings: Settings, task: Task, watcher: Watcher = SILENT, splits: Sequence[str] = ()
) -> dict[str, Split]:
    """Returns these splits; without any, those that no training can do without.

    Raises:
        RunError: one that no training can do without is empty."""
    needed = ("train", settings.selecting[0])
    loaded = load_splits(plan.task.name, plan.task.statics, task, splits or needed, watcher)
    for name in needed:
        if not len(loaded[name]):
            raise mistakes.empty_split(name, plan.task.name, hasattr(task, "valid_share"))
    return loaded


def require_memory(
    plan: Plan,
    device: torch.device,
    devices: int = 1,
    nodes: int = 1,
    *,
    sharded: bool = False,
    remat: Remat = 0,
    length: int | None = None,
    measure: Measure | None = None,
) -> Memory:
    """Returns what training needs on each device, with the activations of samples of `length`, or without activations.

    Raises:
        RunMachineError: there is less memory. A run that is not refused may still need too much."""
    memory = training_memory(plan, length, devices * nodes, sharded=sharded, remat=remat, measure=measure)
    whole = training_memory(plan, None).weights
    # Each process builds its model on the host, and then moves it to its device.
    on_host = max(memory.total, whole) if device.type == "cpu" else whole
    needs = [("cpu", on_host * devices, available_memory())]
    if device.type == "cuda":
        # A run before this one in the same process, whose parts hold each other, would keep its graphs.
        gc.collect()
        torch.cuda.empty_cache()
        needs.append((str(device), memory.total, torch.cuda.mem_get_info(device)[0]))
    for name, needed, available in needs:
        if available is not None and needed > available:
            raise train_mistakes.model_too_large(size(needed), name, memory, max(available, 0) / 1e9)
    return memory


@contextmanager
def _threads_of(folder: Path) -> Iterator[None]:
    """Computes with as many threads as the run of a folder had, if there are as many cores."""
    # Other numbers of threads add in another order, and a table gives its workers fewer than a single run has.
    before, recorded = torch.get_num_threads(), recorded_threads(folder)
    if recorded is not None and 1 <= recorded <= (os.cpu_count() or 1):
        torch.set_num_threads(recorded)
    try:
        yield
    finally:
        torch.set_num_threads(before)


# Several seeds together


def train_together(
    plans: Sequence[Plan],
    folders: Sequence[Path],
    *,
    device: str = "auto",
    precision: str = "32",
    eager: bool = False,
    save: Interval = SAVED_EVERY,
    stop: Stop | None = None,
) -> list[Result | ArchlangError]:
    """Trains points that differ in their seeds alone as one model, each into its own folder as `train` does. Returns
    how each of them ended, or its error.

    On a GPU, steps are CUDA graphs where they can be, unless they are `eager`. Runs resume from the last step at which
    all of them have a checkpoint. Runs that cannot be trained together are trained one after another, with a warning.

    Raises:
        RunError: none of the runs can begin or resume.
        TaskError: the task cannot be made."""
    stop = stop or Stop()
    settings = Settings(plans[0].train.statics)
    begins_elsewhere = settings.weights or settings.frozen  # each module alone is prepared
    ends = {} if begins_elsewhere else _train_stacked(plans, folders, device, precision, eager, save, stop)
    for index, (plan, folder) in enumerate(zip(plans, folders, strict=True)):
        if index not in ends:
            try:
                ends[index] = train(plan, folder, device=device, precision=precision, eager=eager, save=save, stop=stop)
            except ArchlangError as error:
                ends[index] = error
    return [ends[index] for index in range(len(plans))]


def _train_stacked(
    plans: Sequence[Plan], folders: Sequence[Path], device: str, precision: str, eager: bool, save: Interval, stop: Stop
) -> dict[int, Result | ArchlangError]:
    first = plans[0]
    settings, task = make_settings(first)
    fabric = make_fabric(require_device(first, device, precision), precision)
    require_memory(first, fabric.device)
    reason = why_eager(first, fabric.device.type, precision, eager=eager)
    if not (reason or is_capturable(first.train)):
        reason = f"the host reads the learning rate of `{first.train.name}`"
    steps = describe_steps(fabric.device.type, reason)
    loaded = _load_data(first, settings, task)
    data = describe_data(loaded)
    ends: dict[int, Result | ArchlangError] = {}
    runs: dict[int, Trainer] = {}
    with ExitStack() as records, explaining_out_of_memory(fabric.device, settings.batch), stop.listening():
        for index, (plan, folder) in enumerate(zip(plans, folders, strict=True)):
            record = RunFolder(folder)
            records.callback(record.close)
            record.steps = steps
            try:
                make_settings(plan)
                shared = next(iter(runs.values()), None)
                run = Trainer(plan, settings, task, loaded, fabric, record, SILENT, precision, save=save, shared=shared)
                input_format = InputFormat.of(task, run.test_model, loaded)
                record.begin(plan, precision, data, input_format, fabric.device)
                runs[index] = run
            except ArchlangError as error:
                ends[index] = error
        if (step := _common_step(runs.values())) is not None:
            group = list(runs.values())
            try:
                if not is_elementwise(first.train):
                    raise CannotStack(f"the optimizer `{first.train.name}` needs the weights of each seed alone")
                capture = None if reason else make_capture(fabric.device)
                stacked = StackedStep(group, partial(make_optimizer, first.train, precision=precision), capture)
                stacked.resume(step)
                with warnings.catch_warnings(), ignoring_eager_steps():
                    warnings.filterwarnings("ignore", WEIGHTS_APART)
                    train_all(group, stacked, stop)
            except CannotStack as error:
                message = f"`{first.model}` cannot train together: {error}; its seeds train one after another"
                warnings.warn(message, RunWarning, stacklevel=3)
                return ends
            for index, run in runs.items():
                try:
                    ends[index] = conclude(plans[index], run, data, stop)
                except ArchlangError as error:
                    ends[index] = error
    return ends


def _common_step(runs: Collection[Trainer]) -> int | None:
    """Returns the last step at which each of several runs has an intact checkpoint, or 0 if none has any; None if there
    is no such step."""
    checkpoints = [run.checkpoints for run in runs]
    common = set.intersection(*(set(each.steps()) or {0} for each in checkpoints)) if len(runs) > 1 else ()
    for step in sorted(common, reverse=True):
        if all(not each.steps() or each.first_intact([step]) for each in checkpoints):
            return step
    return None
