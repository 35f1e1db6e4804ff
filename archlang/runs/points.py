"""One run among many: a point of a table, trained in its own folder by whichever process gets it; and the seeds of a
point, which one process may train together."""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
import traceback
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from archlang.diagnostics import ArchlangError
from archlang.graph.text import print_graph
from archlang.plan.plan import Plan
from archlang.record.schemas import RESULTS, RunRecord, json_value
from archlang.runs.evaluation import Outcome
from archlang.runs.training import train
from archlang.runs.training_together import train_together
from archlang.train.stop import Stop


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
    others: tuple[Point, ...] = ()
    """runs that differ by their seeds alone, to be trained together with this one"""


@dataclass(frozen=True)
class Done:
    """How a point ended: with results, stopped before its end, or with what went wrong."""

    point: Point
    seconds: float
    stopped: bool = False
    error: str = ""
    said: tuple[str, ...] = ()
    """warnings"""
    others: tuple[Done, ...] = ()
    """how the runs ended that were trained together with this one"""

    def each(self) -> Iterator[Done]:
        """How each run of the point ended. Where nothing is known of the others, as when their process has died, it is
        as with this one."""
        yield replace(self, others=())
        for point in self.point.others:
            known = next((one for one in self.others if one.point.folder == point.folder), None)
            yield known or replace(self, point=point, said=(), others=())


def folder_name(plan: Plan, precision: str) -> str:
    """A name for a run's folder: the same for the same run, another for every other."""
    described = json.dumps(json_value(RunRecord.of(plan, precision)), sort_keys=True)
    word = re.sub(r"\W+", "-", plan.recipe)
    return f"{word}-seed{plan.seed}-{hashlib.sha256(described.encode()).hexdigest()[:10]}"


def is_done(folder: Path) -> bool:
    """Whether the run of a folder has been measured."""
    return (folder / RESULTS).is_file()


def grouped(points: Iterable[Point]) -> tuple[Point, ...]:
    """The same runs, with those in one point that differ by their seeds alone."""
    groups: dict[str, list[Point]] = {}
    for point in points:
        run = RunRecord.of(point.plan, point.precision)
        settings = {name: value for name, value in run.settings.items() if name != "seed"}
        described = json_value(run.model_copy(update={"seed": 0, "settings": settings}))
        graphs = [print_graph(graph) for graph in (point.plan.graph, point.plan.at_test)]
        key = json.dumps([described, graphs, point.plan.task.plugin, point.device, point.deadline], sort_keys=True)
        groups.setdefault(key, []).append(point)
    return tuple(replace(first, others=tuple(others)) for first, *others in groups.values())


def run_point(point: Point) -> Done:
    """Trains a point to its end or its deadline, and those that are to be trained together with it. Nothing that goes
    wrong leaves this function but what ends the process."""
    begun = time.perf_counter()
    if point.deadline is not None and time.time() >= point.deadline:
        return Done(point, 0.0, stopped=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            with _stopping_at(point.deadline) as stop:
                ended = _train(point, stop)
        except Exception as problem:
            ended = [problem] * (1 + len(point.others))
    said = tuple(dict.fromkeys(str(one.message) for one in caught if issubclass(one.category, UserWarning)))
    seconds = time.perf_counter() - begun
    first, *others = (
        Done(one, seconds, not isinstance(how, Exception) and how.stopped, _told(how))
        for one, how in zip((point, *point.others), ended, strict=True)
    )
    return replace(first, said=said, others=tuple(others))


def _train(point: Point, stop: Stop) -> Sequence[Outcome | Exception]:
    if not point.others:
        return [train(point.plan, point.folder, device=point.device, precision=point.precision, stop=stop)]
    every = (point, *point.others)
    plans, folders = [one.plan for one in every], [one.folder for one in every]
    return train_together(plans, folders, device=point.device, precision=point.precision, stop=stop)


def _told(how: Outcome | Exception) -> str:
    """What went wrong, for the user."""
    match how:
        case ArchlangError():
            return str(getattr(how, "message", how))
        case Exception():
            return "".join(traceback.format_exception_only(how)).strip()
    return ""


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
