"""From plans that differ in their seeds alone to runs that are trained together, each in its own folder."""

import warnings
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from archlang.diagnostics import ArchlangError
from archlang.plan.plan import Plan
from archlang.record.run_folder import Record
from archlang.runs.evaluation import Outcome, conclude
from archlang.runs.inputs import InputFormat
from archlang.runs.preparation import build_test_module, load_workload, make_settings, make_setup
from archlang.runs.progress import NoProgress
from archlang.runs.splits import describe_data
from archlang.runs.training import train
from archlang.train.devices import explaining_out_of_memory, make_fabric
from archlang.train.loop import Loop
from archlang.train.optimizers import is_stackable, make_optimizer
from archlang.train.step.protocol import CannotStack
from archlang.train.step.stacked import WEIGHTS_APART, StackedStep, StackingWarning
from archlang.train.stop import Stop
from archlang.train.training_run import TrainingRun


def train_together(
    plans: Sequence[Plan],
    folders: Sequence[Path],
    *,
    device: str = "auto",
    precision: str = "32",
    stop: Stop | None = None,
) -> list[Outcome | ArchlangError]:
    """Trains points that differ in their seeds alone as one model, each into its own folder as `train` does. Returns
    how each of them ended, or its error.

    Runs resume from the last step at which all of them have a checkpoint. Runs that cannot be trained together are
    trained one after another, with a warning.

    Raises:
        RunError: none of the runs can begin or resume.
        TaskError: the task cannot be made."""
    stop = stop or Stop()
    ends = _train_stacked(plans, folders, device, precision, stop)
    for index, (plan, folder) in enumerate(zip(plans, folders, strict=True)):
        if index not in ends:
            try:
                ends[index] = train(plan, folder, device=device, precision=precision, stop=stop)
            except ArchlangError as error:
                ends[index] = error
    return [ends[index] for index in range(len(plans))]


def _train_stacked(
    plans: Sequence[Plan], folders: Sequence[Path], device: str, precision: str, stop: Stop
) -> dict[int, Outcome | ArchlangError]:
    """Returns, by index, how the runs ended that could be trained together, and the errors of those that cannot
    begin."""
    first = plans[0]
    settings, task, functions = make_settings(first)
    fabric = make_fabric(device, precision)
    workload = load_workload(first, settings, task, functions, fabric, None)
    data = describe_data(workload.splits)
    test_module = build_test_module(first)
    ends: dict[int, Outcome | ArchlangError] = {}
    runs: dict[int, TrainingRun] = {}
    with ExitStack() as records, explaining_out_of_memory(fabric.device, settings.batch), stop.listening():
        for index, (plan, folder) in enumerate(zip(plans, folders, strict=True)):
            record = Record(folder)
            records.callback(record.close)
            try:
                make_settings(plan)
                setup = make_setup(plan, fabric, test_module, precision)
                input_format = InputFormat.of(task, setup.test_module, workload.splits)
                record.begin(plan, precision, data, input_format, fabric.device)
                runs[index] = TrainingRun(setup, workload, record, plan.seed, NoProgress())
            except ArchlangError as error:
                ends[index] = error
        for step, indices in common_steps(runs):
            group = [runs[index] for index in indices]
            try:
                if not is_stackable(first.train):
                    raise CannotStack(f"the optimizer `{first.train.name}` needs the weights of each seed alone")
                stacked = StackedStep(group, partial(make_optimizer, first.train, precision=precision))
                stacked.resume(step)
                with warnings.catch_warnings():
                    warnings.filterwarnings("ignore", WEIGHTS_APART)
                    group_ends = Loop(group, stacked).run(stop)
            except CannotStack as error:
                message = f"`{first.model}` cannot train together: {error}; its seeds train one after another"
                warnings.warn(message, StackingWarning, stacklevel=3)
                continue
            for index, run, end in zip(indices, group, group_ends, strict=True):
                try:
                    ends[index] = conclude(plans[index], run, end, data, stop)
                except ArchlangError as error:
                    ends[index] = error
    return ends


def common_steps(runs: Mapping[int, TrainingRun]) -> list[tuple[int, list[int]]]:
    """Returns steps, and the indices of the runs that can resume there together.

    All runs resume from the last step at which each has an intact checkpoint. If there is none, those whose newest
    checkpoints are of the same step resume together. Runs without an intact checkpoint are left out."""
    checkpoints = {index: run.checkpoints for index, run in runs.items()}
    steps = {index: set(of_run.steps()) or {0} for index, of_run in checkpoints.items()}
    for step in sorted(set.intersection(*steps.values()) if steps else (), reverse=True):
        if all(not of_run.steps() or of_run.first_intact([step]) for of_run in checkpoints.values()):
            return [(step, list(runs))] if len(runs) > 1 else []
    by_newest: dict[int, list[int]] = {}
    for index, of_run in checkpoints.items():
        newest = of_run.latest()
        if newest or not of_run.steps():
            by_newest.setdefault(newest.step if newest else 0, []).append(index)
    return [(step, indices) for step, indices in by_newest.items() if len(indices) > 1]
