"""From a plan to a trained and evaluated run in its folder."""

import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path

import torch

from archlang.backend.runtime.compiled_bodies import compile_bodies
from archlang.diagnostics.terminal import Terminal
from archlang.plan.plan import Plan
from archlang.record.run_folder import Record
from archlang.record.trackers import open_trackers
from archlang.record.versions import recorded_threads
from archlang.runs.evaluation import Outcome, conclude
from archlang.runs.inputs import InputFormat
from archlang.runs.preparation import build_test_module, load_workload, make_settings, make_setup
from archlang.runs.progress import NoProgress, ProgressDisplay
from archlang.runs.splits import describe_data
from archlang.train.devices import (
    explaining_compiler_errors,
    explaining_out_of_memory,
    leaving_process_group,
    make_fabric,
)
from archlang.train.loop import Loop
from archlang.train.mistakes import no_graphs
from archlang.train.step.cuda_graph import CudaGraphStep, ignoring_eager_steps, make_capture
from archlang.train.step.eager import EagerStep
from archlang.train.step_log import Watcher
from archlang.train.stop import Stop
from archlang.train.training_run import TrainingRun


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
    compiled: bool = False,
    graphs: bool = False,
    console: Terminal | None = None,
    watcher: Watcher | None = None,
    stop: Stop | None = None,
    splits: Sequence[str] = (),
) -> Outcome:
    """Trains one point of a recipe into a run folder, or resumes the run that the folder holds.

    With several `devices` or `nodes` the program is started once for each, and the first process writes. `track` names
    services that receive the curves. Progress is shown on `console`, or else by `watcher`. With `compiled`, torch
    compiles the bodies of loops; with `graphs`, steps are CUDA graphs. A run that is stopped before its end needs some
    of the `splits` of its task only.

    Raises:
        RunError: the run cannot begin or continue; files that were written before are intact.
        TaskError: the task cannot be made."""
    settings, task, functions = make_settings(plan)
    fabric = make_fabric(device, precision, devices, nodes)
    record = Record(folder)
    resumes = record.check(plan, precision)
    if devices * nodes > 1:
        fabric.launch()
        # The name may hold the time at which each process was started.
        record = Record(Path(fabric.broadcast(str(folder))))
    with closing(record), _threads_of(record.folder) if resumes else nullcontext():
        workload = load_workload(plan, settings, task, functions, fabric, console, splits)
        test_module = build_test_module(plan)
        setup = make_setup(plan, fabric, test_module, precision)
        if compiled:
            compile_bodies(setup.module)
        capture = None
        if graphs and settings.supervise == "carried":
            raise no_graphs("the host chooses the examples of carried steps")
        if graphs:
            capture = make_capture(setup.module, plan.train, fabric.device, precision, fabric.world_size)
        data = describe_data(workload.splits)
        display = ProgressDisplay(console, plan.recipe) if console is not None else None
        stop = stop or Stop()
        if fabric.is_global_zero:
            input_format = InputFormat.of(task, setup.test_module, workload.splits)
            record.begin(plan, precision, data, input_format, fabric.device, track)
        fabric.barrier()
        record.trackers = open_trackers(track if fabric.is_global_zero else (), plan, record.folder)
        with (
            explaining_out_of_memory(fabric.device, settings.batch),
            explaining_compiler_errors(),
            ignoring_eager_steps(),
            stop.listening(),
        ):
            run = TrainingRun(setup, workload, record, plan.seed, display or watcher or NoProgress())
            step = EagerStep(run) if capture is None else CudaGraphStep(run, capture)
            if run.resume() and console is not None:
                console.print(f"resuming at step {run.progress.step}")
            with display.showing(run.total, run.progress.step) if display else nullcontext():
                (end,) = Loop([run], step).run(stop)
            outcome = conclude(plan, run, end, data, stop, console)
        fabric.barrier()
        return outcome


@contextmanager
def _threads_of(folder: Path) -> Iterator[None]:
    """Computes with as many threads as the run of a folder had, if there are as many cores: more threads add in another
    order. A table gives its workers fewer threads than a single run."""
    before, recorded = torch.get_num_threads(), recorded_threads(folder)
    if recorded is not None and 1 <= recorded <= (os.cpu_count() or 1):
        torch.set_num_threads(recorded)
    try:
        yield
    finally:
        torch.set_num_threads(before)
