"""Telling items apart: fingerprints, which decide what is drawn twice and which split may hold an item."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from archlang.tasks.kit.ragged import Ragged, Truths
from archlang.tasks.kit.random_stream import RandomStream

Fingerprints = npt.NDArray[np.uint64]

_LONGEST = 4096
_WEIGHTS = RandomStream("archlang fingerprints").words(_LONGEST)


def fingerprints(items: Ragged) -> Fingerprints:
    """64 bits for each sequence; two different sequences share them about once in 2^64 pairs.

    A weighted sum of the tokens, then the finalizer of splitmix64. Where two items do collide, one of them is
    rejected as if it had been drawn before, which harms nothing."""
    lengths = items.lengths
    places = np.arange(len(items.values)) - np.repeat(items.offsets[:-1], lengths)
    terms = (items.values.astype(np.uint64) + np.uint64(1)) * _WEIGHTS[places % _LONGEST]
    running = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(terms, dtype=np.uint64)])
    return _mix(running[items.offsets[1:]] - running[items.offsets[:-1]])


def table_fingerprints(rows: np.ndarray) -> Fingerprints:
    """The fingerprints of sequences of one length, equal to those of `Ragged.table(rows)`."""
    sums = np.zeros(len(rows), dtype=np.uint64)
    for place in range(rows.shape[1]):
        sums += (rows[:, place].astype(np.uint64) + np.uint64(1)) * _WEIGHTS[place % _LONGEST]
    return _mix(sums)


def combine(first: Fingerprints, second: Fingerprints) -> Fingerprints:
    """The fingerprints of pairs, in this order."""
    return _mix(first * _WEIGHTS[0] + second * _WEIGHTS[1])


def _mix(words: Fingerprints) -> Fingerprints:
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def in_share(prints: Fingerprints, low: float, high: float) -> Truths:
    """Which items belong to the share [low, high) of all items.

    Splits take the items of different shares. That makes them disjoint whatever their sizes and seeds are."""
    scale = 2.0**64
    above = np.ones(len(prints), dtype=np.bool_) if low <= 0 else prints >= np.uint64(int(low * scale))
    return above if high >= 1 else above & (prints < np.uint64(int(high * scale)))


class Seen:
    """The items that were drawn so far."""

    def __init__(self) -> None:
        self._sorted = np.zeros(0, dtype=np.uint64)

    def __len__(self) -> int:
        return len(self._sorted)

    def fresh(self, prints: Fingerprints) -> Truths:
        """Which of these were not drawn before, neither here nor earlier in the same batch; notes them as drawn."""
        new = np.zeros(len(prints), dtype=np.bool_)
        new[np.unique(prints, return_index=True)[1]] = True
        if len(self._sorted):
            places = np.minimum(np.searchsorted(self._sorted, prints), len(self._sorted) - 1)
            new &= self._sorted[places] != prints
        # A stable sort of two sorted runs is a merge.
        self._sorted = np.sort(np.concatenate([self._sorted, np.sort(prints[new])]), kind="stable")
        return new


class Patience:
    """Says when drawing is hopeless: a window of batches that brings less than 1/300 of what is wanted."""

    def __init__(self, wanted: int, window: int) -> None:
        self._least, self._window = max(wanted // 300, 1), window
        self._batches = self._brought = 0

    def is_over(self, brought: int) -> bool:
        """To be asked after each batch, with the number of items that it brought."""
        self._batches += 1
        self._brought += brought
        if self._batches < self._window:
            return False
        over = self._brought < self._least
        self._batches = self._brought = 0
        return over
