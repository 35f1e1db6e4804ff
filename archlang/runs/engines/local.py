"""An engine of processes on this machine, each running one point at a time."""

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sized
from concurrent.futures import FIRST_COMPLETED, wait
from dataclasses import replace
from typing import Any

import torch
from pebble import ProcessExpired, ProcessPool

from archlang.runs.points import Point, PointResult, run_point

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
                    _ask_workers_to_stop()
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
    """Returns the number of cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS, Windows
        return os.cpu_count() or 1


def _ask_workers_to_stop() -> None:
    """Asks each run to write a checkpoint and stop."""
    for process in multiprocessing.active_children():
        if process.pid is not None:
            os.kill(process.pid, signal.SIGTERM)


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
