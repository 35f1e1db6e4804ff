"""Points: runs of a table or a search, each trained in its own folder by any process or machine."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import re
import signal
import socket
import threading
import time
import traceback
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import torch

from archlang.disk.folder import Folder
from archlang.errors import ArchlangError
from archlang.errors.machine import machine_error
from archlang.graph.text import print_graph
from archlang.plan.plan import Plan
from archlang.plugins import failure_of
from archlang.train.record import mistakes
from archlang.train.record.mistakes import disk_errors_as
from archlang.train.record.reading import has
from archlang.train.record.schemas import RESULTS, RunRecord, json_value
from archlang.train.runs.evaluation import Result
from archlang.train.runs.training import train, train_together
from archlang.train.stop import SIGNALS, Stop
from archlang.train.trainer import SAVED_EVERY, SILENT, Interval, Watcher

# The folder of the logs of SLURM jobs, beside the run folders.
JOBS = ".jobs"
# A file of a run folder: the run was pruned.
PRUNED = ".pruned"
RESUMES = "rerun the command to resume from its last checkpoint"
_SECONDS_BETWEEN_LOOKS = 1.0


@dataclass(frozen=True)
class Point:
    """A run to train. It is sent to other processes and machines, and holds everything that they need."""

    name: str
    plan: Plan
    folder: Path
    device: str = "auto"
    precision: str = "32"
    deadline: float | None = None
    """when the run stops with a checkpoint, in seconds since 1970"""
    save: Interval = SAVED_EVERY
    """the steps or the time between checkpoints"""
    other_seeds: tuple[Point, ...] = ()
    """runs that differ in their seeds alone, to be trained together with this one"""
    devices: int = 1
    """of one machine, each with a process"""
    nodes: int = 1
    """machines, on each of which a job of SLURM or a task of Ray runs the point"""
    meeting: Mapping[str, str] | None = None
    """where the processes of several nodes meet; SLURM knows it"""
    eager: bool = False
    """whether the operations of a step run one by one on a GPU, too"""
    is_prunable: bool = False
    """whether the run stops when its folder has the file `PRUNED`"""

    def is_finished(self) -> bool:
        return all(has(run.folder, RESULTS) for run in (self, *self.other_seeds))


@dataclass(frozen=True)
class PointResult:
    """How a point ended: finished, stopped before its last step, or failed."""

    point: Point
    seconds: float
    stopped: bool = False
    error: str = ""
    is_of_machine: bool = False
    """whether the machine has ended it: a point that begins again resumes from its last checkpoint"""
    is_elsewhere: bool = False
    """whether another process runs it"""
    warnings: tuple[str, ...] = ()
    other_seeds: tuple[PointResult, ...] = ()
    """how the runs ended that were trained together with this one"""

    def per_run(self) -> Iterator[PointResult]:
        """Yields how each run of the point ended. If the result of a run is unknown because the process died, it is
        that of the first run."""
        yield replace(self, other_seeds=())
        results = {result.point.folder: result for result in self.other_seeds}
        for point in self.point.other_seeds:
            yield results.get(point.folder) or replace(self, point=point, warnings=(), other_seeds=())


def folder_name(plan: Plan, precision: str) -> str:
    """Returns the name of a run's folder: equal for equal runs, different for different ones. What papers claim about a
    run does not change it, nor where the program and its files are, nor settings of the optimizer that are off: 0,
    false or empty. So a new one that is off renames no run."""
    off = {name for name, value in plan.train.statics.items() if not value and "." not in name}
    statics = {name: value for name, value in plan.train.statics.items() if name not in off}
    paths = {f"train.{name}" for name in off}
    settings = {path: value for path, value in plan.settings.items() if path not in paths}
    run = RunRecord.of(replace(plan, train=replace(plan.train, statics=statics), settings=settings), precision)
    start = os.path.realpath(os.path.dirname(plan.source.path))
    value = json_value(run.model_copy(update={"claims": ()}))
    description = json.dumps(_without_start(value, start), sort_keys=True)
    word = re.sub(r"\W+", "-", plan.recipe)
    return f"{word}-seed{plan.seed}-{hashlib.sha256(description.encode()).hexdigest()[:10]}"


def _without_start(value: Any, start: str) -> Any:  # Any: JSON
    """Returns JSON whose paths below a folder are relative to it."""
    if isinstance(value, dict):
        return {key: _without_start(item, start) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_start(item, start) for item in value]
    is_below = isinstance(value, str) and value.startswith(start + os.sep)
    return value[len(start) + 1 :].replace(os.sep, "/") if is_below else value


def require_no_file(folder: Path) -> None:
    """Raises a RunError if the folder of a table or a search is a file."""
    if folder.is_file():
        raise mistakes.not_a_folder(folder)


def make_folder(folder: Path, names: Iterable[str]) -> None:
    """Creates the folder of a table or a search, if it is missing. These names in it may be missing too."""
    require_no_file(folder)
    with disk_errors_as(mistakes.not_written, folder), Folder.create(folder) as opened:
        for name in names:
            opened.require_plain(name)


def group_seeds(points: Iterable[Point]) -> tuple[Point, ...]:
    """Returns the same runs, with those that differ in their seeds alone in one point."""
    groups: dict[str, list[Point]] = {}
    for point in points:
        run = RunRecord.of(point.plan, point.precision)
        settings = {name: value for name, value in run.settings.items() if name != "seed"}
        description = json_value(run.model_copy(update={"seed": 0, "settings": settings}))
        graphs = [print_graph(graph) for graph in (point.plan.graph, point.plan.at_test)]
        key = json.dumps([description, graphs, point.device, point.deadline], sort_keys=True)
        groups.setdefault(key, []).append(point)
    return tuple(replace(first, other_seeds=tuple(others)) for first, *others in groups.values())


def run_point(point: Point, stop: Stop | None = None) -> PointResult:
    """Trains a point to its last step or its deadline, or until it is asked to stop, together with its other seeds.
    Returns errors instead of raising them."""
    stop = stop or Stop()
    if point.deadline is not None and time.time() >= point.deadline:
        return PointResult(point, 0.0, stopped=True)
    return _run_here(point, stop) if point.devices * point.nodes == 1 else _run_on_devices(point, stop)


def _run_on_devices(point: Point, stop: Stop) -> PointResult:
    """Runs a point in a process for each of its devices on this machine."""
    context = multiprocessing.get_context("spawn")
    multiprocessing.current_process().daemon = False  # a worker of pebble is one, and would have no processes
    stopping, threads = context.Event(), max(torch.get_num_threads() // point.devices, 1)
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # its processes import torch first
    environment = point.meeting or _rendezvous(point.nodes)
    results: dict[int, PointResult] = {}
    processes = []
    receivers: dict[Any, int] = {}  # Any: the ends of pipes have another class on Windows
    try:
        with stop.listening():
            for rank in range(point.devices):
                receiver, sender = context.Pipe(duplex=False)
                arguments = (rank, point, environment, threads, stopping, sender)
                processes.append(context.Process(target=_run_rank, args=arguments, daemon=True))
                processes[-1].start()
                sender.close()  # Otherwise the pipe would not end with the process.
                receivers[receiver] = rank
            while receivers:
                if stop.requested:
                    stopping.set()
                ready: Any
                for ready in wait(list(receivers), timeout=_SECONDS_BETWEEN_LOOKS):
                    rank = receivers.pop(ready)
                    try:
                        results[rank] = ready.recv()
                    except (EOFError, OSError):
                        processes[rank].join()
                        number = int(environment["GROUP_RANK"]) * point.devices + rank
                        name = f"process {number} of {point.nodes * point.devices} on {socket.gethostname()}"
                        death = explain_death(name, processes[rank].exitcode)
                        return PointResult(point, 0.0, error=f"{death}; {RESUMES}", is_of_machine=True)
                    if results[rank].error:
                        return results[rank]
    finally:
        # After the death or the error of one process, the others would wait for it.
        for process in processes:
            process.kill()
            process.join()
    return results[0]


def _rendezvous(nodes: int) -> dict[str, str]:
    if nodes == 1:
        from lightning_fabric.plugins.environments.lightning import find_free_network_port

        return {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(find_free_network_port()), "GROUP_RANK": "0"}
    from submitit.helpers import TorchDistributedEnvironment

    job = TorchDistributedEnvironment()
    return {"MASTER_ADDR": job.master_addr, "MASTER_PORT": str(job.master_port), "GROUP_RANK": str(job.rank)}


def _run_rank(
    rank: int, point: Point, environment: Mapping[str, str], threads: int, stopping: Event, sender: Connection
) -> None:
    """Runs a point as one of its processes, as `torchrun` starts them; `rank` counts those of this machine. It stops
    when its parent says so or has ended."""
    for number in SIGNALS:  # of a cluster, which reach the parent, too
        signal.signal(number, signal.SIG_IGN)
    ranks = {
        "RANK": int(environment["GROUP_RANK"]) * point.devices + rank, "WORLD_SIZE": point.nodes * point.devices,
        "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": point.devices,
    }  # fmt: skip
    os.environ.update(environment, TORCHELASTIC_RUN_ID="archlang")
    os.environ.update({name: str(number) for name, number in ranks.items()})
    torch.set_num_threads(threads)
    stop, parent = Stop(), os.getppid()

    def follow() -> None:
        while os.getppid() == parent and not stopping.wait(_SECONDS_BETWEEN_LOOKS):
            pass
        stop.requested = True

    threading.Thread(target=follow, daemon=True).start()
    sender.send(_run_here(point, stop))


def explain_death(process: str, code: int | None) -> str:
    try:
        reason = f"killed by {signal.Signals(-(code or 0)).name}"
    except ValueError:
        reason = f"exit code {code}"
    return f"{process} died ({reason})"


def _run_here(point: Point, stop: Stop) -> PointResult:
    begun = time.perf_counter()
    ends: Sequence[Result | Exception]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            with stop.at(point.deadline):
                ends = _train(point, stop)
        except (Exception, SystemExit) as error:
            end = error if isinstance(error, ArchlangError) else failure_of(error) or error
            if isinstance(end, SystemExit):
                raise
            ends = [end] * (1 + len(point.other_seeds))
    messages = tuple(dict.fromkeys(str(item.message) for item in caught if issubclass(item.category, UserWarning)))
    seconds = time.perf_counter() - begun
    first, *others = (_result(run, seconds, end) for run, end in zip((point, *point.other_seeds), ends, strict=True))
    return replace(first, warnings=messages, other_seeds=tuple(others))


class _PruneWatcher(Watcher):
    """Looks between steps whether the run was pruned: a file reaches a run on any machine."""

    def __init__(self, folder: Path, stop: Stop) -> None:
        self._folder, self._stop, self._next = folder, stop, 0.0

    def due(self) -> bool:
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + _SECONDS_BETWEEN_LOOKS
            self._stop.requested |= has(self._folder, PRUNED)
        return False

    def step(self, step: int, total: int, loss: float, rate: float, tokens: float, depth: float | None) -> None:
        self.due()


def _train(point: Point, stop: Stop) -> Sequence[Result | Exception]:
    device, precision, save = point.device, point.precision, point.save
    if not point.other_seeds:
        watcher = _PruneWatcher(point.folder, stop) if point.is_prunable else SILENT
        return [
            train(
                point.plan, point.folder, device=device, precision=precision, devices=point.devices,
                nodes=point.nodes, eager=point.eager, save=save, watcher=watcher, stop=stop,
            )
        ]  # fmt: skip
    runs = (point, *point.other_seeds)
    plans, folders = [run.plan for run in runs], [run.folder for run in runs]
    return train_together(plans, folders, device=device, precision=precision, eager=point.eager, save=save, stop=stop)


def _result(point: Point, seconds: float, end: Result | Exception) -> PointResult:
    if not isinstance(end, Exception):
        return PointResult(point, seconds, end.stopped)
    is_elsewhere = isinstance(end, mistakes.FolderInUse)
    is_of_machine = not is_elsewhere and machine_error(end) is not None
    of_python = "".join(traceback.format_exception_only(end)).strip()
    error = str(end) if isinstance(end, ArchlangError) else of_python
    return PointResult(point, seconds, error=error, is_of_machine=is_of_machine, is_elsewhere=is_elsewhere)
