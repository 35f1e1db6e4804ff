"""The statistics of a metric over seeds, and the verdict on a paper's claim."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import product

import numpy as np

from archlang.plan.plan import PublishedResult

_RESAMPLES = 10_000
_CONFIDENCE = 0.95
# The accuracy from which a seed has solved a task.
SOLVED = 0.99


@dataclass(frozen=True)
class SeedStatistics:
    """The finite values of one metric over seeds.

    Args:
        deviation: The sample standard deviation (n - 1); None for fewer than two seeds.
        interval: The 95 % bootstrap interval of the mean; None for fewer than two seeds."""

    values: tuple[float, ...]
    mean: float
    median: float
    deviation: float | None
    interval: tuple[float, float] | None

    @property
    def seeds(self) -> int:
        return len(self.values)

    def solved(self, threshold: float = SOLVED) -> int:
        """Returns how many seeds reached the threshold."""
        return sum(value >= threshold for value in self.values)

    def median_interval(self) -> tuple[float, float]:
        """Returns the 95 % bootstrap interval of the median.

        >>> SeedStatistics.of([0.1, 0.5, 0.9]).median_interval()
        (0.1, 0.9)"""
        return _bootstrap_interval(np.asarray(self.values), np.median)

    @staticmethod
    def of(values: Sequence[float]) -> SeedStatistics | None:
        """Returns the statistics of the finite values; None if there are none.

        >>> statistics = SeedStatistics.of([0.9, 1.0])
        >>> round(statistics.mean, 3), round(statistics.deviation, 3), statistics.median
        (0.95, 0.071, 0.95)
        >>> SeedStatistics.of([0.5]).interval is None
        True"""
        finite = np.asarray([value for value in values if math.isfinite(value)])
        if not len(finite):
            return None
        several = len(finite) > 1
        return SeedStatistics(
            tuple(finite.tolist()), float(finite.mean()), float(np.median(finite)),
            float(finite.std(ddof=1)) if several else None, _bootstrap_interval(finite) if several else None,
        )  # fmt: skip


def _bootstrap_interval(values: np.ndarray, statistic: Callable[..., np.ndarray] = np.mean) -> tuple[float, float]:
    random = np.random.default_rng(0)
    resampled = statistic(values[random.integers(len(values), size=(_RESAMPLES, len(values)))], axis=1)
    low, high = np.quantile(resampled, [(1 - _CONFIDENCE) / 2, (1 + _CONFIDENCE) / 2])
    return float(low), float(high)


def paired_test(left: Sequence[float], right: Sequence[float]) -> float:
    """Returns the two-sided p-value of the paired permutation test: how often random signs of the differences give a
    mean difference at least as large; all signs of up to 13 pairs, and samples for more.

    >>> paired_test([0.9, 0.8, 0.9, 1.0], [0.1, 0.2, 0.1, 0.3])
    0.125"""
    differences = np.asarray(left, dtype=np.float64) - np.asarray(right, dtype=np.float64)
    count = len(differences)
    if 2**count <= _RESAMPLES:
        signs = np.asarray(list(product((1.0, -1.0), repeat=count)))
    else:
        signs = np.random.default_rng(0).choice([1.0, -1.0], size=(_RESAMPLES, count))
    return float((np.abs(signs @ differences) >= abs(differences.sum()) - 1e-12).mean())


@dataclass(frozen=True)
class PowerLaw:
    """y = factor · x ^ exponent, fitted to logarithms by least squares. `interval` is the 95 % bootstrap interval of
    the exponent over seeds, None if a point has only one; `r2` the share of the variance of log y that it explains."""

    factor: float
    exponent: float
    interval: tuple[float, float] | None
    r2: float

    @staticmethod
    def of(sizes: Sequence[float], values: Sequence[Sequence[float]]) -> PowerLaw | None:
        """Fits the means of `values` at each size; None for fewer than three sizes, and where a number is not positive.

        >>> law = PowerLaw.of([1, 10, 100], [[2.0], [0.2], [0.02]])
        >>> round(law.factor, 3), round(law.exponent, 3), law.interval, round(law.r2, 3)
        (2.0, -1.0, None, 1.0)"""
        if len(set(sizes)) < 3 or min(min(sizes), *(min(row, default=0.0) for row in values)) <= 0:
            return None
        x, random = np.log(sizes), np.random.default_rng(0)
        rows = [np.asarray(row) for row in values]
        y = np.log([row.mean() for row in rows])
        exponent, factor = np.polyfit(x, y, 1)
        resampled = [row[random.integers(len(row), size=(_RESAMPLES, len(row)))].mean(axis=1) for row in rows]
        tails = (1 - _CONFIDENCE) / 2, (1 + _CONFIDENCE) / 2
        low, high = np.quantile(np.polyfit(x, np.log(resampled), 1)[0], tails)
        unexplained = ((y - exponent * x - factor) ** 2).sum() / (((y - y.mean()) ** 2).sum() or 1.0)
        interval = (float(low), float(high)) if all(len(row) > 1 for row in rows) else None
        return PowerLaw(float(np.exp(factor)), float(exponent), interval, float(1 - unexplained))


# Papers print results with this precision.
_ROUNDING = 0.005


class ClaimVerdict(Enum):
    """How a measured result relates to a claim."""

    REPRODUCED = "reproduced"
    BELOW = "below"
    ABOVE = "above"
    NOT_RUN = "not run"
    NO_GROUP = "no such group"

    @property
    def sign(self) -> str:
        return {"reproduced": "✓", "below": "↓", "above": "↑", "not run": "", "no such group": ""}[self.value]


def judge(claim: PublishedResult, statistics: SeedStatistics | None) -> ClaimVerdict:
    """Returns the verdict on a claim.

    A claim is reproduced if its distance to the mean is at most its deviation or rounding, or if it is in the 95 %
    interval of the mean. A claim about the median is compared with the median and its interval."""
    if statistics is None:
        return ClaimVerdict.NOT_RUN
    tolerance = max(claim.deviation or 0.0, _ROUNDING)
    measured = statistics.median if claim.median else statistics.mean
    interval = statistics.median_interval() if claim.median else statistics.interval
    low, high = interval or (measured, measured)
    if abs(measured - claim.value) <= tolerance + 1e-9 or low <= claim.value <= high:
        return ClaimVerdict.REPRODUCED
    return ClaimVerdict.BELOW if measured < claim.value else ClaimVerdict.ABOVE
