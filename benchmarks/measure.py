"""Timing one thing beside another: turn by turn in one process, so that what else the machine does falls on both."""

from __future__ import annotations

import gc
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

import archlang


@dataclass(frozen=True)
class Case:
    """Something of archlang's, and what it is measured beside. Each is a call without arguments."""

    name: str
    ours: Callable[[], object]
    theirs: Callable[[], object]
    beside: str
    """what `theirs` is, in a few words"""
    unit: str = "step"


@dataclass(frozen=True)
class Result:
    """Seconds a call, by round."""

    case: Case
    ours: tuple[float, ...]
    theirs: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """The median over rounds of ours over theirs: below 1, ours is faster."""
        return statistics.median(one / other for one, other in zip(self.ours, self.theirs, strict=True))

    @property
    def spread(self) -> tuple[float, float]:
        """The middle half of the rounds' ratios."""
        ratios = sorted(one / other for one, other in zip(self.ours, self.theirs, strict=True))
        return ratios[len(ratios) // 4], ratios[(3 * len(ratios)) // 4]

    def described(self) -> dict[str, object]:
        return {
            "case": self.case.name, "beside": self.case.beside, "unit": self.case.unit, "rounds": len(self.ours),
            "ours": statistics.median(self.ours), "theirs": statistics.median(self.theirs), "ratio": self.ratio,
            "spread": list(self.spread),
        }  # fmt: skip


def measure(case: Case, seconds: float, least: int = 5) -> Result:
    """Calls both in turn, A B B A, until the time is spent, and at least so many rounds."""
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(2):
        case.ours()
        case.theirs()
    gc.collect()
    gc.disable()
    try:
        begun = time.perf_counter()
        while len(ours) < least or time.perf_counter() - begun < seconds:
            turns = [(case.ours, ours), (case.theirs, theirs)]
            for call, times in turns if len(ours) % 2 == 0 else reversed(turns):
                start = time.perf_counter()
                call()
                times.append(time.perf_counter() - start)
    finally:
        gc.enable()
    return Result(case, tuple(ours), tuple(theirs))


def machine() -> str:
    """What was measured on, without its name."""
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
    return (
        f"archlang {archlang.__version__}, torch {torch.__version__}, Python {platform.python_version()}, "
        f"{torch.get_num_threads()} threads, {platform.machine()}, {gpu}"
    )


def markdown(results: Sequence[Result]) -> str:
    """A table: medians in milliseconds, and the ratio with the middle half of the rounds."""
    lines = ["| case | beside | archlang, ms | beside, ms | ratio | middle half | rounds |", "|" + " --- |" * 7]
    for result in results:
        low, high = result.spread
        lines.append(
            f"| {result.case.name} | {result.case.beside} | {1000 * statistics.median(result.ours):.2f} "
            f"| {1000 * statistics.median(result.theirs):.2f} | {result.ratio:.3f} | {low:.3f} to {high:.3f} "
            f"| {len(result.ours)} |"
        )
    return "\n".join(lines) + "\n"
