"""Engines that run points: processes of this machine, a Ray cluster, or SLURM jobs."""

import logging
import multiprocessing
import os
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sized
from concurrent.futures import FIRST_COMPLETED, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import torch
from pebble import ProcessExpired, ProcessPool

from archlang.errors.machine import first_line, needs_extra
from archlang.errors.names import listed
from archlang.train.runs import mistakes
from archlang.train.runs.points import JOBS, Point, PointResult, run_point
from archlang.train.stop import TIME_LIMIT, Stop, keeping_handlers

ENGINES = ("local", "ray", "slurm")


class Engine(Protocol):
    """Runs points, as many at a time as it has room for."""

    def run(self, points: Iterable[Point], stopping: Callable[[], bool]) -> Iterator[PointResult]:
        """Yields how each point ended, in the order in which they end.

        If the process of a point dies, the point ends with an error and the others continue. A point is taken from
        `points` only when there is room for it. Once `stopping()` is true, no further points begin, and running ones
        are asked to stop."""


def make_engine(
    name: str, workers: int | None = None, options: Mapping[str, str] | None = None, retries: int = 0
) -> Engine:
    """Returns the engine of a name.

    Args:
        workers: Points at a time; by default as many as the machine or the cluster has room for.
        options: An address of Ray, or parameters of SLURM.
        retries: How often a point that the machine has ended begins again, from its last checkpoint.

    Raises:
        RunError: There is no engine of that name, its package is not installed, or an option is unknown."""
    options = dict(options or {})
    if name == "local":
        if options:
            raise mistakes.engine_option(name, next(iter(options)))
        return LocalEngine(workers, retries)
    if name == "ray":
        return RayEngine(workers, options, retries)
    if name == "slurm":
        return SlurmEngine(workers, options, retries)
    raise mistakes.unknown_engine(name, listed(ENGINES))


_SECONDS_BETWEEN_CHECKS = 0.5
# Points at a time if their number is unknown, as in a search.
_DEFAULT_JOBS = 8


class _Engine(ABC):
    """What the engines have in common: they differ in how a point begins, and in how its end is known."""

    def __init__(self, workers: int | None, retries: int = 0) -> None:
        self._workers, self._retries, self._stop_asked = workers, retries, False

    def run(self, points: Iterable[Point], stopping: Callable[[], bool]) -> Iterator[PointResult]:
        waiting, tries = iter(points), Counter[Path]()
        running: dict[Any, Point] = {}  # Any: the jobs of pebble, Ray and submitit have no common type
        with self._working(len(points) if isinstance(points, Sized) else None) as limit:
            while True:
                if stopping() and not self._stop_asked:
                    self._stop_asked = True
                    if not self._stop(running):
                        return
                while not self._stop_asked and len(running) < limit and (point := next(waiting, None)) is not None:
                    running[self._begin(point)] = point
                if not running:
                    return
                for job in self._ended(running):
                    point = running.pop(job)
                    result = self._result(job, point)
                    tries[point.folder] += 1
                    is_of_machine = any(run.is_of_machine for run in result.per_run())
                    if is_of_machine and tries[point.folder] <= self._retries and not self._stop_asked:
                        running[self._begin(point)] = point
                    else:
                        yield result

    @abstractmethod
    def _working(self, points: int | None) -> AbstractContextManager[int]:
        """What runs the points, as many at a time as the context is. `points` is their number, if it is known."""

    @abstractmethod
    def _begin(self, point: Point) -> Any:
        """Returns the job that runs a point."""

    @abstractmethod
    def _ended(self, running: Collection[Any]) -> Collection[Any]:
        """Returns the jobs that have ended; waits a moment if none has."""

    @abstractmethod
    def _result(self, job: Any, point: Point) -> PointResult: ...

    @abstractmethod
    def _stop(self, running: Collection[Any]) -> bool:
        """Asks jobs to stop. Returns whether their ends are waited for."""


class LocalEngine(_Engine):
    """As many processes as there are GPUs, or else cores. Each process starts once and runs one point after another."""

    def __init__(self, workers: int | None = None, retries: int = 0) -> None:
        super().__init__(workers, retries)
        self._gpus = torch.cuda.device_count()
        self.workers = workers or self._gpus or _core_count()

    @contextmanager
    def _working(self, points: int | None) -> Iterator[int]:
        workers = self.workers if points is None else min(self.workers, points)
        if not workers:
            yield 0
            return
        # A user sets OMP_NUM_THREADS where other processes need the cores.
        threads = max(min(_core_count() // workers, torch.get_num_threads()), 1)
        # A forked process would inherit locks of threads that torch has started.
        context = multiprocessing.get_context("spawn")
        pool: Any = ProcessPool(workers, context=context, initializer=_prepare_worker, initargs=(threads, self._gpus))
        self._pool = pool
        try:
            yield workers  # a point per process: a scheduled point cannot be taken back
            pool.close()
        finally:
            pool.stop()
            pool.join()

    def _begin(self, point: Point) -> Any:
        return self._pool.schedule(_run_on_own_gpu, args=[point])

    def _ended(self, running: Collection[Any]) -> Collection[Any]:
        return wait(running, timeout=_SECONDS_BETWEEN_CHECKS, return_when=FIRST_COMPLETED).done

    def _result(self, job: Any, point: Point) -> PointResult:
        try:
            result: PointResult = job.result()
            return replace(result, point=point)
        except ProcessExpired as error:
            stopped = self._stop_asked and _is_of_stopping(error)
            return PointResult(point, 0.0, stopped, error="" if stopped else _explain_death(error), is_of_machine=True)

    def _stop(self, running: Collection[Any]) -> bool:
        for process in multiprocessing.active_children():
            if process.pid is not None:
                os.kill(process.pid, signal.SIGTERM)
        return True


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


class RayEngine(_Engine):
    """Each point is a task of Ray."""

    def __init__(self, workers: int | None, options: Mapping[str, str], retries: int = 0) -> None:
        """
        Args:
            options: `address` of a cluster whose machines share the folder of the table; without it Ray starts on this
                machine. `cpus` and `gpus` that a run needs.

        Raises:
            MachineError: Ray is not installed.
            RunError: an option is unknown or not a number."""
        super().__init__(workers, retries)
        with needs_extra("ray"):
            import ray
        self._ray: Any = ray  # Any: Ray is hardly typed
        unknown = options.keys() - {"address", "cpus", "gpus"}
        if unknown:
            raise mistakes.engine_option("ray", sorted(unknown)[0])
        self._address = options.get("address")
        try:
            self._cpus, self._gpus = float(options.get("cpus", "1")), float(options.get("gpus", "0"))
        except ValueError:
            raise mistakes.engine_option("ray", "cpus") from None

    @contextmanager
    def _working(self, points: int | None) -> Iterator[int]:
        ray = self._ray
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
        cores = dict(ray.cluster_resources()).get("CPU", 1)
        try:
            yield self._workers or max(int(cores / max(self._cpus, 1e-9)), 1)
        finally:
            if is_own:
                ray.shutdown()

    def _begin(self, point: Point) -> Any:
        task = self._ray.remote(num_cpus=self._cpus, num_gpus=self._gpus, max_retries=0)(_QueuedPoint.__call__)
        return task.remote(_QueuedPoint.of(point))

    def _ended(self, running: Collection[Any]) -> Collection[Any]:
        ended, _ = self._ray.wait(list(running), num_returns=1, timeout=_SECONDS_BETWEEN_CHECKS)
        return list(ended)

    def _result(self, job: Any, point: Point) -> PointResult:
        try:
            result: PointResult = self._ray.get(job)
            return result
        except self._ray.exceptions.RayError as error:
            return PointResult(point, 0.0, error=f"Ray lost it: {first_line(error)}", is_of_machine=True)

    def _stop(self, running: Collection[Any]) -> bool:
        for reference in running:
            self._ray.cancel(reference)
        return False


@dataclass(frozen=True)
class _QueuedPoint:
    """A point that a cluster runs later. Its time begins when it does."""

    point: Point
    seconds: float | None

    @staticmethod
    def of(point: Point) -> "_QueuedPoint":
        return _QueuedPoint(point, None if point.deadline is None else point.deadline - time.time())

    def __call__(self) -> PointResult:
        stop = Stop()
        deadline = None if self.seconds is None else time.time() + self.seconds
        result = run_point(replace(self.point, deadline=deadline), stop)
        if stop.number == TIME_LIMIT and callable(signal.getsignal(TIME_LIMIT)):
            os.kill(os.getpid(), TIME_LIMIT)  # now submitit, whose handler waited for the checkpoint
        return result

    def checkpoint(self) -> Any:
        """Returns what submitit runs when it has queued a job again."""
        import submitit

        return submitit.helpers.DelayedSubmission(self)


# A job that reaches its time limit resumes so often.
_MOST_TIME_LIMITS = 1_000


class SlurmEngine(_Engine):
    """Each point is a job. Logs are in the folder `JOBS` beside the run folders."""

    def __init__(self, workers: int | None, options: Mapping[str, str], retries: int = 0) -> None:
        """
        Args:
            options: submitit's: `slurm_partition=gpu`, `timeout_min=60`, `gpus_per_node=1`; `cluster=local` runs jobs
                without SLURM.

        Raises:
            MachineError: submitit is not installed."""
        super().__init__(workers, retries)
        with needs_extra("slurm"):
            import submitit  # noqa: F401
        self._options = dict(options)
        self._cluster = self._options.pop("cluster", "slurm")
        self._executor: Any = None  # Any: submitit's executors have no common type

    def _working(self, points: int | None) -> AbstractContextManager[int]:
        return nullcontext(self._workers or (_DEFAULT_JOBS if points is None else points))

    def _begin(self, point: Point) -> Any:
        self._executor = self._executor or self._make_executor(point.folder.parent / JOBS)
        return self._executor.submit(_QueuedPoint.of(point))

    def _ended(self, running: Collection[Any]) -> Collection[Any]:
        ended = [job for job in running if job.done()]
        if not ended:
            time.sleep(_SECONDS_BETWEEN_CHECKS)
        return ended

    def _result(self, job: Any, point: Point) -> PointResult:
        failure = job.exception()
        if failure is None:
            result: PointResult = job.result()
            return result
        last_line = str(failure).strip().rpartition("\n")[2]
        error = f"its job failed: {last_line}; see {Path(job.paths.stderr)}"
        return PointResult(point, 0.0, error=error, is_of_machine=True)

    def _stop(self, running: Collection[Any]) -> bool:
        for job in running:
            job.cancel()
        return False

    def _make_executor(self, logs: Path) -> Any:
        import submitit

        try:
            most = {f"{self._cluster}_max_num_timeout": _MOST_TIME_LIMITS}
            executor = submitit.AutoExecutor(logs, cluster=self._cluster, **most)
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
