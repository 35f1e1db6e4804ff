"""Processes of this machine, one run at a time in each."""

from __future__ import annotations

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

from archlang.runs.points import Done, Point, run_point

# So often, in seconds, it is looked whether all is to stop.
_LOOKS = 0.5


class Local:
    """As many processes as there are cores, or GPUs; each is started once and makes one run after another."""

    def __init__(self, workers: int | None = None) -> None:
        self._cards = torch.cuda.device_count()
        self.workers = workers or self._cards or _cores()

    def run(self, points: Iterable[Point], stopping: Callable[[], bool]) -> Iterator[Done]:
        workers = min(self.workers, len(points)) if isinstance(points, Sized) else self.workers
        if not workers:
            return
        threads = max(_cores() // workers, 1)
        # Forked processes would inherit threads that torch has started.
        context = multiprocessing.get_context("spawn")
        pool: Any = ProcessPool(workers, context=context, initializer=_prepare, initargs=(threads, self._cards))
        waiting = iter(points)
        running: dict[Any, Point] = {}  # Any: pebble's futures have few types
        asked = False
        try:
            while True:
                if stopping() and not asked:
                    asked = True
                    _ask_to_stop()
                # Not one more than there are processes: what a process has been handed cannot be taken back.
                while not asked and len(running) < workers and (point := next(waiting, None)) is not None:
                    running[pool.schedule(_run, args=[point])] = point
                if not running:
                    break
                ended, _ = wait(running, timeout=_LOOKS, return_when=FIRST_COMPLETED)
                for future in ended:
                    point = running.pop(future)
                    try:
                        yield replace(future.result(), point=point)
                    except ProcessExpired as error:
                        yield Done(point, 0.0, error=_died(error))
            pool.close()
        finally:
            pool.stop()
            pool.join()


def _cores() -> int:
    """The cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS, Windows
        return os.cpu_count() or 1


def _ask_to_stop() -> None:
    """Each run writes a checkpoint and ends."""
    for process in multiprocessing.active_children():
        if process.pid is not None:
            os.kill(process.pid, signal.SIGTERM)


def _prepare(threads: int, cards: int) -> None:
    """Once in each process: its share of the cores, a GPU of its own, and an end if nobody waits for it any more."""
    if hasattr(os, "setpgrp"):
        os.setpgrp()  # Ctrl-C reaches the process that waits, which then asks each of these once
    threading.Thread(target=_end_with, args=[os.getppid()], daemon=True).start()
    torch.set_num_threads(threads)
    if cards:
        worker = multiprocessing.current_process()._identity[-1]  # the number of a worker
        torch.cuda.set_device((worker - 1) % cards)


def _end_with(parent: int) -> None:
    """Ends this process when the one that started it is gone: what it was doing would keep its folder from others."""
    while os.getppid() == parent:
        time.sleep(_LOOKS)
    os._exit(1)


def _run(point: Point) -> Done:
    if point.device == "auto" and torch.cuda.is_available():
        point = replace(point, device=f"cuda:{torch.cuda.current_device()}")
    return run_point(point)


def _died(error: ProcessExpired) -> str:
    number = -error.exitcode if error.exitcode and error.exitcode < 0 else 0
    try:
        why = f"killed by {signal.Signals(number).name}" if number else f"exit code {error.exitcode}"
    except ValueError:
        why = f"exit code {error.exitcode}"
    return f"its process died ({why}); what it had written is kept, and the same command goes on from there"
