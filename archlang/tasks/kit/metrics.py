"""What the metrics of tasks count, as numbers for each item.

A metric of a split is the sum of `hits` over the sum of `counts`; broken down by a group, both sums run over the items
of that group."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from archlang.tasks.kit.ragged import Integers, Ragged, Reals
from archlang.tasks.kit.split import Form, Split
from archlang.tasks.kit.task import Unit

MEANINGS = {
    "accuracy": "share of right answers, counted as the task counts (samples, positions or whole sequences)",
    "token_accuracy": "share of scored positions that are right",
    "sequence_accuracy": "share of sequences that are right at every scored position",
    "last_accuracy": "share of sequences that are right at their last scored position",
    "exact_match": "share of answers that are right as a whole",
    "oracle_match": "share of answers that are right as a whole when their length is known",
    "f1": "overlap of answers with what was asked for: harmonic mean of precision and recall, of each item alone",
    "perplexity": "e to the mean cross entropy of scored positions; the lower, the better",
}
LOWER_IS_BETTER = frozenset({"perplexity"})


@dataclass(frozen=True, eq=False)
class Tally:
    """For each item, how many answers were right and how many were asked for; or, where `exponential`, the sum of its
    losses and how many there were."""

    hits: Integers | Reals
    counts: Integers
    exponential: bool = False

    @property
    def share(self) -> float:
        """The metric over all items."""
        return self.among(np.ones(len(self.counts), dtype=np.bool_))

    def among(self, chosen: np.ndarray) -> float:
        """The metric over the items that are true in `chosen`; not a number where nothing was asked."""
        asked = int(self.counts[chosen].sum())
        if not asked:
            return float("nan")
        mean = float(self.hits[chosen].sum() / asked)
        return float(np.exp(mean)) if self.exponential else mean


def rank(metric: str, value: float) -> float:
    """A number that is the larger, the better the value of the metric, or of the loss, is."""
    return -value if metric in LOWER_IS_BETTER or metric == "loss" else value


def tally(metric: str, unit: Unit, split: Split, predictions: np.ndarray) -> Tally:
    """Counts `metric` over predictions: classes [N], spans [N, 2], or one for each place of `split.targets.values`.

    Perplexity is not counted but measured, from losses; and what a task judges itself it counts itself."""
    if metric not in MEANINGS:
        raise ValueError(f"{metric!r} is none of {', '.join(MEANINGS)}")
    targets = split.targets
    if not isinstance(targets, Ragged):
        if split.form is Form.SPANS:
            return _spans(metric, targets, predictions)
        hits = np.asarray(predictions == targets, dtype=np.int64)
        return Tally(hits, np.ones_like(hits))
    offsets = targets.offsets
    scored = np.ones(len(targets.values), dtype=np.bool_) if split.scored is None else split.scored.values
    equal = np.asarray(predictions == targets.values)
    # A step is right only if the whole set is.
    right = (equal.all(axis=1) if split.form is Form.SETS else equal) & scored
    hits, counts = _sums(right, offsets), _sums(scored, offsets)
    asked = np.asarray(counts > 0, dtype=np.int64)
    if metric == "last_accuracy":
        last = _last_places(scored, offsets)
        return Tally(np.where(asked > 0, right[last], False).astype(np.int64), asked)
    if metric in ("sequence_accuracy", "exact_match") or (metric == "accuracy" and unit is Unit.SEQUENCE):
        return Tally(np.where(hits == counts, asked, 0), asked)
    return Tally(hits, counts)


def _spans(metric: str, targets: Integers, predictions: np.ndarray) -> Tally:
    ones = np.ones(len(targets), dtype=np.int64)
    if metric != "f1":
        return Tally(np.asarray((predictions == targets).all(axis=1), dtype=np.int64), ones)
    first, last = np.maximum(predictions[:, 0], targets[:, 0]), np.minimum(predictions[:, 1], targets[:, 1])
    common = np.maximum(last - first + 1, 0)
    lengths = (predictions[:, 1] - predictions[:, 0] + 1) + (targets[:, 1] - targets[:, 0] + 1)
    return Tally(2.0 * common / lengths, ones)


def _sums(truths: np.ndarray, offsets: Integers) -> Integers:
    running = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(truths, dtype=np.int64)])
    return np.asarray(running[offsets[1:]] - running[offsets[:-1]], dtype=np.int64)


def _last_places(scored: np.ndarray, offsets: Integers) -> Integers:
    """The last scored place of each sequence; any place where there is none."""
    places = np.where(scored, np.arange(len(scored)), 0)
    latest = np.maximum.accumulate(places) if len(places) else places
    return np.asarray(latest[np.maximum(offsets[1:] - 1, 0)], dtype=np.int64)
