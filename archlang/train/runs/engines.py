"""Engines that run points: processes of this machine, a Ray cluster, or SLURM jobs."""

import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from concurrent.futures import FIRST_COMPLETED, wait
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import torch
from pebble import ProcessExpired, ProcessPool

from archlang.errors.machine import needs_extra
from archlang.errors.names import listed
from archlang.train.runs import mistakes
from archlang.train.runs.points import JOBS, Point, PointResult, run_point
from archlang.train.stop import keeping_handlers

ENGINES = ("local", "ray", "slurm")


class Engine(Protocol):
    """Runs points, as many at a time as it has room for."""

    def run(self, points: Iterable[Point], stopping: Callable[[], bool]) -> Iterator[PointResult]:
        """Yields how each point ended, in the order in which they end.

        If the process of a point dies, the point ends with an error and the others continue. A point is taken from
        `points` only when there is room for it. Once `stopping()` is true, no further points begin, and running ones
        are asked to stop."""


def make_engine(name: str, workers: int | None = None, options: Mapping[str, str] | None = None) -> Engine:
    """Returns the engine of a name.

    Args:
        workers: Points at a time; by default as many as the machine or the cluster has room for.
        options: An address of Ray, or parameters of SLURM.

    Raises:
        RunError: There is no engine of that name, its package is not installed, or an option is unknown."""
    options = dict(options or {})
    if name == "local":
        if options:
            raise mistakes.engine_option(name, next(iter(options)))
        return LocalEngine(workers)
    if name == "ray":
        return RayEngine(workers, options)
    if name == "slurm":
        return SlurmEngine(workers, options)
    raise mistakes.unknown_engine(name, listed(ENGINES))


_SECONDS_BETWEEN_CHECKS = 0.5


class LocalEngine:
    """As many processes as there are GPUs, or else cores. Each process starts once and runs one point after another."""

    def __init__(self, workers: int | None = None) -> None:
        self._gpus = torch.cuda.device_count()
        self.workers = workers or self._gpus or _core_count()

    def run(self, points: Iterable[Point], stopping: Callable[[], bool]) -> Iterator[PointResult]:
        workers = min(self.workers, len(points)) if isinstance(points, Sized) else self.workers
        if not workers:
            return
        # A user sets OMP_NUM_THREADS where other processes need the cores.
        threads = max(min(_core_count() // workers, torch.get_num_threads()), 1)
        # A forked process would inherit locks of threads that torch has started.
        context = multiprocessing.get_context("spawn")
        pool: Any = ProcessPool(workers, context=context, initializer=_prepare_worker, initargs=(threads, self._gpus))
        waiting = iter(points)
        running: dict[Any, Point] = {}  # Any: pebble's futures are hardly typed
        stop_asked = False
        try:
            while True:
                if stopping() and not stop_asked:
                    stop_asked = True
                    for process in multiprocessing.active_children():
                        if process.pid is not None:
                            os.kill(process.pid, signal.SIGTERM)
                # At most one point per process: a scheduled point cannot be taken back.
                while not stop_asked and len(running) < workers and (point := next(waiting, None)) is not None:
                    running[pool.schedule(_run_on_own_gpu, args=[point])] = point
                if not running:
                    break
                ended, _ = wait(running, timeout=_SECONDS_BETWEEN_CHECKS, return_when=FIRST_COMPLETED)
                for future in ended:
                    point = running.pop(future)
                    try:
                        yield replace(future.result(), point=point)
                    except ProcessExpired as error:
                        stopped = stop_asked and _is_of_stopping(error)
                        yield PointResult(point, 0.0, stopped, error="" if stopped else _explain_death(error))
            pool.close()
        finally:
            pool.stop()
            pool.join()


def _core_count() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS, Windows
        return os.cpu_count() or 1


def _prepare_worker(threads: int, gpus: int) -> None:
    """Gives a new process its share of the cores and a GPU, and ends it when its parent has ended."""
    if hasattr(os, "setpgrp"):
        os.setpgrp()  # Ctrl-C reaches only the parent, which then asks each process once.
    threading.Thread(target=_exit_with_parent, args=[os.getppid()], daemon=True).start()
    torch.set_num_threads(threads)
    if gpus:
        worker = multiprocessing.current_process()._identity[-1]  # counts from 1
        torch.cuda.set_device((worker - 1) % gpus)


def _exit_with_parent(parent: int) -> None:
    """Ends this process when its parent has ended: it would keep the run folder locked."""
    while os.getppid() == parent:
        time.sleep(_SECONDS_BETWEEN_CHECKS)
    os._exit(1)


def _run_on_own_gpu(point: Point) -> PointResult:
    if point.device == "auto" and torch.cuda.is_available():
        point = replace(point, device=f"cuda:{torch.cuda.current_device()}")
    return run_point(point)


def _is_of_stopping(error: ProcessExpired) -> bool:
    """Returns whether the signal that asks a run to stop has ended its process: before the first step, the signal
    itself or pebble's handler does."""
    return error.exitcode in (-signal.SIGTERM, int(signal.SIGTERM))


def _explain_death(error: ProcessExpired) -> str:
    number = -error.exitcode if error.exitcode and error.exitcode < 0 else 0
    try:
        reason = f"killed by {signal.Signals(number).name}" if number else f"exit code {error.exitcode}"
    except ValueError:
        reason = f"exit code {error.exitcode}"
    return f"its process died ({reason}); rerun the command to resume from its last checkpoint"


class RayEngine:
    """Each point is a task of Ray."""

    def __init__(self, workers: int | None, options: Mapping[str, str]) -> None:
        """
        Args:
            options: `address` of a cluster whose machines share the folder of the table; without it Ray starts on this
                machine. `cpus` and `gpus` that a run needs.

        Raises:
            MachineError: Ray is not installed.
            RunError: an option is unknown or not a number."""
        with needs_extra("ray"):
            import ray  # noqa: F401
        self._workers = workers
        unknown = options.keys() - {"address", "cpus", "gpus"}
        if unknown:
            raise mistakes.engine_option("ray", sorted(unknown)[0])
        self._address = options.get("address")
        try:
            self._cpus, self._gpus = float(options.get("cpus", "1")), float(options.get("gpus", "0"))
        except ValueError:
            raise mistakes.engine_option("ray", "cpus") from None

    def run(self, points: Iterable[Point], stopping: Callable[[], bool]) -> Iterator[PointResult]:
        import ray

        is_own = not ray.is_initialized()
        if is_own:
            with keeping_handlers():  # Ray's own would abort this process
                ray.init(
                    address=self._address,
                    num_cpus=None if self._address else self._workers,
                    include_dashboard=False,
                    logging_level=logging.ERROR,
                    log_to_driver=False,
                )
        cores = dict(ray.cluster_resources()).get("CPU", 1)  # type: ignore[no-untyped-call]
        task = ray.remote(num_cpus=self._cpus, num_gpus=self._gpus, max_retries=0)(run_point)
        limit = self._workers or max(int(cores / max(self._cpus, 1e-9)), 1)
        waiting = iter(points)
        running: dict[Any, Point] = {}  # Any: Ray's references are not typed
        try:
            while True:
                if stopping():
                    for reference in running:
                        ray.cancel(reference)
                    return
                while len(running) < limit and (point := next(waiting, None)) is not None:
                    running[task.remote(point)] = point
                if not running:
                    return
                ended, _ = ray.wait(list(running), num_returns=1, timeout=_SECONDS_BETWEEN_CHECKS)
                for reference in ended:
                    point = running.pop(reference)
                    try:
                        yield ray.get(reference)
                    except ray.exceptions.RayError as error:
                        first_line = str(error).strip().partition("\n")[0]
                        yield PointResult(point, 0.0, error=f"Ray lost it: {first_line}")
        finally:
            if is_own:
                ray.shutdown()


# Jobs at a time if the number of points is unknown, as in a search.
_DEFAULT_JOBS = 8


class SlurmEngine:
    """Each point is a job. Logs are in the folder `JOBS` beside the run folders."""

    def __init__(self, workers: int | None, options: Mapping[str, str]) -> None:
        """
        Args:
            options: submitit's: `slurm_partition=gpu`, `timeout_min=60`, `gpus_per_node=1`; `cluster=local` runs jobs
                without SLURM.

        Raises:
            MachineError: submitit is not installed."""
        with needs_extra("slurm"):
            import submitit  # noqa: F401
        self._workers = workers
        self._options = dict(options)
        self._cluster = self._options.pop("cluster", "slurm")

    def run(self, points: Iterable[Point], stopping: Callable[[], bool]) -> Iterator[PointResult]:
        executor: Any = None  # Any: submitit's executors have no common type
        limit = self._workers or (len(points) if isinstance(points, Sized) else _DEFAULT_JOBS)
        waiting = iter(points)
        running: list[tuple[Any, Point]] = []  # Any: submitit's jobs
        while True:
            if stopping():
                for job, _ in running:
                    job.cancel()
                return
            while len(running) < limit and (point := next(waiting, None)) is not None:
                executor = executor or self._executor(point.folder.parent / JOBS)
                running.append((executor.submit(run_point, point), point))
            if not running:
                return
            ended = [entry for entry in running if entry[0].done()]
            running = [entry for entry in running if entry not in ended]
            for job, point in ended:
                failure = job.exception()
                if failure is None:
                    yield job.result()
                else:
                    last_line = str(failure).strip().rpartition("\n")[2]
                    yield PointResult(point, 0.0, error=f"its job failed: {last_line}; see {Path(job.paths.stderr)}")
            if not ended:
                time.sleep(_SECONDS_BETWEEN_CHECKS)

    def _executor(self, logs: Path) -> Any:
        import submitit

        try:
            executor = submitit.AutoExecutor(logs, cluster=self._cluster)
        except RuntimeError as error:
            raise mistakes.no_cluster(str(error)) from error
        parameters = {name: _value(text) for name, text in self._options.items()}
        try:
            executor.update_parameters(**{"name": "archlang", **parameters})
        except (TypeError, NameError, NotImplementedError, ValueError):
            raise mistakes.engine_option("slurm", ", ".join(parameters)) from None
        return executor


def _value(text: str) -> int | str:
    return int(text) if text.isdecimal() else text
