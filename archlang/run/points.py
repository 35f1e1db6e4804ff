"""One run among many: a point of a table, trained in its own folder by whichever process gets it."""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from archlang.diagnostics import ArchlangError
from archlang.graph.plan import Plan
from archlang.run.record import describe
from archlang.run.runner import train
from archlang.run.stop import Stop

_RESULTS = "results.json"


@dataclass(frozen=True)
class Point:
    """A run to be made. It goes to other processes and machines, and is all that they know of it."""

    name: str
    plan: Plan
    folder: Path
    device: str = "auto"
    precision: str = "32"
    deadline: float | None = None
    """when the run is to stop with a checkpoint, in seconds since 1970"""


@dataclass(frozen=True)
class Done:
    """How a point ended: with results, stopped before its end, or with what went wrong."""

    point: Point
    seconds: float
    stopped: bool = False
    error: str = ""
    said: tuple[str, ...] = ()
    """warnings"""


def folder_name(plan: Plan, precision: str) -> str:
    """A name for a run's folder: the same for the same run, another for every other."""
    whole = json.dumps(describe(plan, precision), sort_keys=True)
    word = re.sub(r"\W+", "-", plan.recipe)
    return f"{word}-seed{plan.seed}-{hashlib.sha256(whole.encode()).hexdigest()[:10]}"


def is_done(folder: Path) -> bool:
    """Whether the run of a folder has been measured."""
    return (folder / _RESULTS).is_file()


def results(folder: Path) -> dict[str, Any] | None:  # Any: JSON
    """What was measured of a run; None if it was not."""
    try:
        found: dict[str, Any] = json.loads((folder / _RESULTS).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found


def run_point(point: Point) -> Done:
    """Trains a point to its end or its deadline. Nothing that goes wrong leaves this function but what ends the
    process."""
    begun = time.perf_counter()
    if point.deadline is not None and time.time() >= point.deadline:
        return Done(point, 0.0, stopped=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            with _stopping_at(point.deadline) as stop:
                outcome = train(point.plan, point.folder, device=point.device, precision=point.precision, stop=stop)
            stopped, error = outcome.stopped, ""
        except ArchlangError as problem:
            stopped, error = False, str(getattr(problem, "message", problem))
        except Exception as problem:
            stopped, error = False, "".join(traceback.format_exception_only(problem)).strip()
    said = tuple(dict.fromkeys(str(one.message) for one in caught if issubclass(one.category, UserWarning)))
    return Done(point, time.perf_counter() - begun, stopped, error, said)


@contextmanager
def _stopping_at(deadline: float | None) -> Iterator[Stop]:
    """A stop that asks for itself when the time has come."""
    stop = Stop()
    if deadline is None:
        yield stop
        return
    timer = threading.Timer(max(deadline - time.time(), 0), lambda: setattr(stop, "asked", True))
    timer.daemon = True
    timer.start()
    try:
        yield stop
    finally:
        timer.cancel()
