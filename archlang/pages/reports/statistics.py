"""What several seeds say together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

_RESAMPLES = 10_000
_WITHIN = 0.95
# So many pairs are compared exactly; of more, that many changes of sign are drawn.
_EXACT = 12
# A seed solved a task from this accuracy on.
SOLVED = 0.99


@dataclass(frozen=True)
class Summary:
    """Some seeds' values of one measure. `deviation` is the sample's (n - 1), and `interval` the 95 % bootstrap
    interval of the mean; both are None for fewer than two seeds."""

    values: tuple[float, ...]
    mean: float
    median: float
    deviation: float | None
    interval: tuple[float, float] | None

    @property
    def seeds(self) -> int:
        return len(self.values)

    def solved(self, threshold: float = SOLVED) -> int:
        """How many seeds reached it."""
        return sum(value >= threshold for value in self.values)

    @staticmethod
    def of(values: Sequence[float]) -> Summary | None:
        """None of no values.

        >>> summary = Summary.of([0.9, 1.0])
        >>> round(summary.mean, 3), round(summary.deviation, 3), summary.median
        (0.95, 0.071, 0.95)
        >>> Summary.of([0.5]).interval is None
        True"""
        known = np.asarray([value for value in values if math.isfinite(value)])
        if not len(known):
            return None
        if len(known) == 1:
            return Summary(tuple(known.tolist()), float(known[0]), float(known[0]), None, None)
        return Summary(
            tuple(known.tolist()), float(known.mean()), float(np.median(known)), float(known.std(ddof=1)),
            _bootstrap(known),
        )  # fmt: skip


def _bootstrap(values: np.ndarray) -> tuple[float, float]:
    """The percentile interval of the mean, the same every time."""
    random = np.random.default_rng(0)
    means = values[random.integers(len(values), size=(_RESAMPLES, len(values)))].mean(1)
    low, high = np.quantile(means, [(1 - _WITHIN) / 2, (1 + _WITHIN) / 2])
    return float(low), float(high)


def paired_test(left: Sequence[float], right: Sequence[float]) -> float:
    """The two-sided probability of a mean difference as large as that of these pairs if neither side were better: the
    differences' signs are changed in every way.

    >>> paired_test([0.9, 0.8, 0.9, 1.0], [0.1, 0.2, 0.1, 0.3])
    0.125"""
    differences = np.asarray(left, dtype=np.float64) - np.asarray(right, dtype=np.float64)
    count = len(differences)
    if count <= _EXACT:
        signs = np.asarray(list(product((1.0, -1.0), repeat=count)))
    else:
        signs = np.random.default_rng(0).choice([1.0, -1.0], size=(_RESAMPLES, count))
    found = np.abs(signs @ differences)
    return float((found >= abs(differences.sum()) - 1e-12).mean())
