"""Measuring one thing beside another: turn by turn in one process, so that what else the machine does falls on both."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

# A case that needs more of either is left out, and said to be.
LONGEST = 30.0  # seconds a call
LARGEST = 8.0  # GiB

Call = Callable[[], Any]  # Any: what a call gives is for its unit to read


@dataclass(frozen=True)
class Unit:
    """What is read of a call. `warm` calls go before those that count; of some things a few rounds say enough."""

    name: str
    read: Callable[[Call], float]
    warm: int = 2
    most: int | None = None


def _seconds(call: Call) -> tuple[float, Any]:  # Any: as above
    _wait()
    begun = time.perf_counter()
    given = call()
    _wait()
    return time.perf_counter() - begun, given


def _wait() -> None:
    """A GPU may still be at work when a call is over."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def _milliseconds(call: Call) -> float:
    return 1000 * _seconds(call)[0]


def _rate(call: Call) -> float:
    seconds, count = _seconds(call)
    return float(count) / seconds


def _told(call: Call) -> float:
    return float(call())


MS = Unit("ms", _milliseconds)
BATCHES = Unit("batches/s, more is better", _rate)  # a call says how many it made
PROCESS = Unit("ms, whole process", _milliseconds, warm=1)
PHASE = Unit("ms", _told, warm=1)
MIB = Unit("MiB", _told, warm=0, most=2)
MATRICES = Unit("score matrices", _told, warm=0, most=1)


class Sides(NamedTuple):
    """Something of archlang's, and what it is measured beside."""

    ours: Call
    theirs: Call


@dataclass(frozen=True)
class Case:
    """What can be measured. Nothing is made before `build` is called."""

    name: str
    beside: str
    """what `theirs` is, in a few words"""
    build: Callable[[], Sides]
    unit: Unit = MS
    memory: float = 0.0
    """GiB that it takes, where that may be much"""


@dataclass(frozen=True)
class Setting:
    """Where cases run. `tiny` ones say nothing about speed: tests run them."""

    device: torch.device
    tiny: bool = False


@dataclass(frozen=True)
class Group:
    """Cases that belong together. `says` has their sizes."""

    name: str
    says: str
    cases: Callable[[Setting], Iterator[Case]]
    devices: tuple[str, ...] = ("cpu", "cuda")


@dataclass(frozen=True)
class Result:
    """What was read, by round; nothing, and why, where a case was left out."""

    case: Case
    ours: tuple[float, ...] = ()
    theirs: tuple[float, ...] = ()
    left_out: str = ""

    @property
    def ratios(self) -> list[float]:
        """Ours over theirs, sorted: where less is better and it is below 1, ours is better."""
        return sorted(one / other for one, other in zip(self.ours, self.theirs, strict=True))

    @property
    def ratio(self) -> float:
        return statistics.median(self.ratios)

    @property
    def spread(self) -> tuple[float, float]:
        """The middle half of the rounds' ratios."""
        ratios = self.ratios
        return ratios[len(ratios) // 4], ratios[(3 * len(ratios)) // 4]


def measure(case: Case, seconds: float, least: int = 5) -> Result:
    """Calls both in turn, A B B A, until the time is spent, and at least so many rounds. What was built for it is free
    again afterwards."""
    if case.memory > LARGEST:
        return Result(case, left_out=f"would need about {case.memory:.0f} GiB")
    try:
        return _measured(case, case.build(), seconds, least)
    finally:
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def _measured(case: Case, sides: Sides, seconds: float, least: int) -> Result:
    read, most = case.unit.read, case.unit.most
    for _ in range(case.unit.warm):
        for call in sides:
            taken, _given = _seconds(call)
            if taken > LONGEST:
                return Result(case, left_out=f"a call takes {taken:.0f} s")
    ours: list[float] = []
    theirs: list[float] = []
    gc.collect()
    gc.disable()
    try:
        begun = time.perf_counter()
        while len(ours) < least or time.perf_counter() - begun < seconds:
            turns = [(sides.ours, ours), (sides.theirs, theirs)]
            for call, values in turns if len(ours) % 2 == 0 else reversed(turns):
                values.append(read(call))
            if len(ours) == most:
                break
    finally:
        gc.enable()
    return Result(case, tuple(ours), tuple(theirs))
