"""Fingerprints of items, which find repeated items and assign items to splits."""

from functools import cache

import numpy as np
import numpy.typing as npt

from archlang.tasks.kit.ragged import Ragged, Truths
from archlang.tasks.kit.random_stream import RandomStream

Fingerprints = npt.NDArray[np.uint64]

_LONGEST = 4096


def fingerprints(items: Ragged) -> Fingerprints:
    """Returns 64 bits for each sequence: a weighted sum of its tokens, mixed by the finalizer of splitmix64.

    Two different sequences collide with probability 2^-64. A collision rejects a sequence as a repeated one, which is
    harmless."""
    lengths = items.lengths
    positions = np.arange(len(items.values)) - np.repeat(items.offsets[:-1], lengths)
    terms = (items.values.astype(np.uint64) + np.uint64(1)) * _weights()[positions % _LONGEST]
    running = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(terms, dtype=np.uint64)])
    return _mix(running[items.offsets[1:]] - running[items.offsets[:-1]])


def table_fingerprints(rows: np.ndarray) -> Fingerprints:
    """Returns the fingerprints of the rows of a matrix [N, length], equal to those of `Ragged.table(rows)`."""
    sums, weights = np.zeros(len(rows), dtype=np.uint64), _weights()
    for position in range(rows.shape[1]):
        sums += (rows[:, position].astype(np.uint64) + np.uint64(1)) * weights[position % _LONGEST]
    return _mix(sums)


def combine(first: Fingerprints, second: Fingerprints) -> Fingerprints:
    """Returns the fingerprints of ordered pairs."""
    weights = _weights()
    return _mix(first * weights[0] + second * weights[1])


@cache
def _weights() -> Fingerprints:
    return RandomStream("archlang fingerprints").words(_LONGEST)


def _mix(words: Fingerprints) -> Fingerprints:
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def in_share(prints: Fingerprints, low: float, high: float) -> Truths:
    """Marks the items in the share [low, high) of all items.

    Splits with different shares are disjoint for all sizes and seeds."""
    scale = 2.0**64
    at_least_low = np.ones(len(prints), dtype=np.bool_) if low <= 0 else prints >= np.uint64(int(low * scale))
    return at_least_low if high >= 1 else at_least_low & (prints < np.uint64(int(high * scale)))


class Seen:
    """The fingerprints of the items drawn so far."""

    def __init__(self) -> None:
        self._sorted = np.zeros(0, dtype=np.uint64)

    def __len__(self) -> int:
        return len(self._sorted)

    def fresh(self, prints: Fingerprints) -> Truths:
        """Marks the first occurrence of each item that was not drawn before, and adds these items."""
        new = np.zeros(len(prints), dtype=np.bool_)
        new[np.unique(prints, return_index=True)[1]] = True
        if len(self._sorted):
            nearest = np.minimum(np.searchsorted(self._sorted, prints), len(self._sorted) - 1)
            new &= self._sorted[nearest] != prints
        # A stable sort of two sorted runs is a merge.
        self._sorted = np.sort(np.concatenate([self._sorted, np.sort(prints[new])]), kind="stable")
        return new


class Patience:
    """Ends a search for distinct items: a window of batches that brings less than 1/300 of the wanted items is over."""

    def __init__(self, wanted: int, window: int) -> None:
        self._least, self._window = max(wanted // 300, 1), window
        self._batches = self._found = 0

    def is_over(self, count: int) -> bool:
        """Returns whether to give up. Call it after each batch with the number of new items in the batch."""
        self._batches += 1
        self._found += count
        if self._batches < self._window:
            return False
        over = self._found < self._least
        self._batches = self._found = 0
        return over
