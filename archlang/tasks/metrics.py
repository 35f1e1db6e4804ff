"""What the metrics of tasks count, as numbers of right answers for each item.

A metric of a split is the sum of `hits` over the sum of `counts`; broken down by a group, both sums run over the items
of that group."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from archlang.tasks.base import Integers, Ragged, Split, Unit

MEANINGS = {
    "accuracy": "share of right answers, counted as the task counts (samples, positions or whole sequences)",
    "token_accuracy": "share of scored positions that are right",
    "sequence_accuracy": "share of sequences that are right at every scored position",
    "last_accuracy": "share of sequences that are right at their last scored position",
}


@dataclass(frozen=True, eq=False)
class Tally:
    """For each item, how many answers were right and how many were asked for."""

    hits: Integers
    counts: Integers

    @property
    def share(self) -> float:
        asked = int(self.counts.sum())
        return float(self.hits.sum() / asked) if asked else float("nan")


def tally(metric: str, unit: Unit, split: Split, predictions: np.ndarray) -> Tally:
    """Counts `metric` over predictions: classes [N], or one for each place of `split.targets.values`."""
    if metric not in MEANINGS:
        raise ValueError(f"{metric!r} is none of {', '.join(MEANINGS)}")
    if not isinstance(split.targets, Ragged):
        right = np.asarray(predictions == split.targets, dtype=np.int64)
        return Tally(right, np.ones_like(right))
    offsets = split.targets.offsets
    scored = np.ones(len(split.targets.values), dtype=np.bool_) if split.scored is None else split.scored.values
    right = np.asarray((predictions == split.targets.values) & scored)
    hits, counts = _sums(right, offsets), _sums(scored, offsets)
    asked = np.asarray(counts > 0, dtype=np.int64)
    if metric == "last_accuracy":
        last = _last_places(scored, offsets)
        return Tally(np.where(asked > 0, right[last], False).astype(np.int64), asked)
    if metric == "sequence_accuracy" or (metric == "accuracy" and unit is Unit.SEQUENCE):
        return Tally(np.where(hits == counts, asked, 0), asked)
    return Tally(hits, counts)


def _sums(truths: np.ndarray, offsets: Integers) -> Integers:
    running = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(truths, dtype=np.int64)])
    return np.asarray(running[offsets[1:]] - running[offsets[:-1]], dtype=np.int64)


def _last_places(scored: np.ndarray, offsets: Integers) -> Integers:
    """The last scored place of each sequence; any place where there is none."""
    places = np.where(scored, np.arange(len(scored)), 0)
    latest = np.maximum.accumulate(places) if len(places) else places
    return np.asarray(latest[np.maximum(offsets[1:] - 1, 0)], dtype=np.int64)
