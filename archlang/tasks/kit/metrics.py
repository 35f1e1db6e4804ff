"""The metrics of tasks, counted for each item.

A metric of a split is the sum of `hits` divided by the sum of `counts`. In a breakdown by groups, both sums run over
the items of a group."""

import math
from dataclasses import dataclass

import numpy as np

from archlang.graph.card import COSTS
from archlang.tasks.kit.split import Integers, Ragged, Reals, Split, TargetForm
from archlang.tasks.kit.task import Unit

MEANINGS = {
    "accuracy": "share of correct answers, counted in the task's unit (samples, positions or whole sequences)",
    "token_accuracy": "share of scored positions that are correct",
    "sequence_accuracy": "share of sequences that are correct at every scored position",
    "last_accuracy": "share of sequences that are correct at their last scored position",
    "exact_match": "share of answers that are correct as a whole",
    "oracle_match": "share of answers that are correct as a whole, decoded to the length of the target",
    "f1": "overlap of answers with targets: the harmonic mean of precision and recall, averaged over items",
    "perplexity": "exponential of the mean cross entropy of scored positions; lower is better",
    "bits_per_byte": "cross entropy of scored positions in bits, divided by the bytes of their text; lower is better",
    "squared_error": "mean squared error at scored positions; lower is better",
    "last_squared_error": "mean squared error at the last scored position of each sequence; lower is better",
}
WRITTEN_METRICS = ("exact_match", "oracle_match")
"""The metrics of answers that a model writes token by token; they are measured only at the end of a run."""

# Of a run as a whole.
_COSTS = frozenset({"seconds", "memory", *COSTS})
_SQUARED_ERRORS = frozenset({"squared_error", "last_squared_error"})
# Also no fractions: they are not shown in per cent.
LOWER_IS_BETTER = frozenset({"perplexity", "bits_per_byte", "loss"}) | _SQUARED_ERRORS | _COSTS


@dataclass(frozen=True, eq=False)
class Tally:
    """For each of N items, the number of correct answers [N] and the number of answers [N]; for a loss, its sum [N] and
    the number of losses [N], with `exponential` for the exponential of their mean."""

    hits: Integers | Reals
    counts: Integers
    exponential: bool = False

    @property
    def share(self) -> float:
        """The metric over all items; NaN if no answer counts."""
        return self.among(np.ones(len(self.counts), dtype=np.bool_))

    def among(self, chosen: np.ndarray) -> float:
        """Returns the metric over the items where `chosen` [N] is true; NaN if no answer of them counts."""
        count = int(self.counts[chosen].sum())
        if not count:
            return float("nan")
        mean = float(self.hits[chosen].sum() / count)
        return float(np.exp(mean)) if self.exponential else mean


def rank(metric: str, value: float) -> float:
    """Returns a number that is larger for better values of the metric, or of the loss."""
    return -value if metric in LOWER_IS_BETTER else value


def decimals(metric: str) -> int:
    """Returns how many decimals of a metric that is no fraction are shown."""
    if metric in _COSTS:
        return 1
    return 4 if metric in _SQUARED_ERRORS else 3 if metric == "bits_per_byte" else 2


def format_metric(metric: str, value: float | None) -> str:
    """Returns a share in per cent, another metric as a number, and nothing for None and NaN."""
    if value is None or math.isnan(value):
        return ""
    return f"{value:.{decimals(metric)}f}" if metric in LOWER_IS_BETTER else f"{value:.1%}"


def tally(metric: str, unit: Unit, split: Split, predictions: np.ndarray) -> Tally:
    """Counts a metric over predictions: classes [N], spans [N, 2], or a class, a set or a row of numbers for each value
    of `split.targets`.

    Perplexity and bits per byte are computed from losses, and a `JudgedTask` computes its own metrics; both are outside
    this function.

    Raises:
        ValueError: there is no such metric."""
    if metric not in MEANINGS:
        raise ValueError(f"unknown metric {metric!r}; expected one of {', '.join(MEANINGS)}")
    targets = split.targets
    if not isinstance(targets, Ragged):
        if split.form is TargetForm.SPANS:
            return _spans(metric, targets, predictions)
        hits = np.asarray(predictions == targets, dtype=np.int64)
        return Tally(hits, np.ones_like(hits))
    offsets = targets.offsets
    scored = np.ones(len(targets.values), dtype=np.bool_) if split.scored is None else split.scored.values
    if split.form is TargetForm.NUMBERS:
        return _squared_errors(metric, split, predictions, scored)
    equal = np.asarray(predictions == targets.values)
    # A position is correct only if its whole set is.
    correct = (equal.all(axis=1) if split.form is TargetForm.SETS else equal) & scored
    hits, counts = _sums(correct, offsets), _sums(scored, offsets)
    nonempty = np.asarray(counts > 0, dtype=np.int64)
    if metric == "last_accuracy":
        last = _last_positions(scored, offsets)
        return Tally(np.where(nonempty > 0, correct[last], False).astype(np.int64), nonempty)
    if metric in ("sequence_accuracy", "exact_match") or (metric == "accuracy" and unit is Unit.SEQUENCE):
        return Tally(np.where(hits == counts, nonempty, 0), nonempty)
    return Tally(hits, counts)


def _spans(metric: str, targets: Integers, predictions: np.ndarray) -> Tally:
    ones = np.ones(len(targets), dtype=np.int64)
    if metric != "f1":
        return Tally(np.asarray((predictions == targets).all(axis=1), dtype=np.int64), ones)
    first, last = np.maximum(predictions[:, 0], targets[:, 0]), np.minimum(predictions[:, 1], targets[:, 1])
    common = np.maximum(last - first + 1, 0)
    lengths = (predictions[:, 1] - predictions[:, 0] + 1) + (targets[:, 1] - targets[:, 0] + 1)
    return Tally(2.0 * common / lengths, ones)


def _squared_errors(metric: str, split: Split, predictions: np.ndarray, scored: np.ndarray) -> Tally:
    """Sums the squared error of each scored row, which is the mean over its numbers."""
    assert isinstance(split.targets, Ragged)
    offsets = split.targets.offsets
    errors = np.square(predictions.astype(np.float64) - split.targets.values).mean(axis=1)
    counts = _sums(scored, offsets)
    if metric == "last_squared_error":
        nonempty = np.asarray(counts > 0, dtype=np.int64)
        return Tally(np.where(nonempty > 0, errors[_last_positions(scored, offsets)], 0.0), nonempty)
    running = np.concatenate([np.zeros(1), np.cumsum(np.where(scored, errors, 0.0))])
    return Tally(running[offsets[1:]] - running[offsets[:-1]], counts)


def _sums(marks: np.ndarray, offsets: Integers) -> Integers:
    running = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(marks, dtype=np.int64)])
    return np.asarray(running[offsets[1:]] - running[offsets[:-1]], dtype=np.int64)


def _last_positions(scored: np.ndarray, offsets: Integers) -> Integers:
    """Returns the index of the last scored value of each sequence, or any index if it has none."""
    indices = np.where(scored, np.arange(len(scored)), 0)
    latest = np.maximum.accumulate(indices) if len(indices) else indices
    return np.asarray(latest[np.maximum(offsets[1:] - 1, 0)], dtype=np.int64)
