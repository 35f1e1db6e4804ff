"""Draws distinct items until a split is full."""

from collections.abc import Callable
from functools import cache

import numpy as np
import numpy.typing as npt

from archlang.tasks.kit import mistakes
from archlang.tasks.kit.ragged import Integers, Ragged, Truths
from archlang.tasks.kit.random_stream import RandomStream
from archlang.tasks.kit.split import Split, join_splits

# The share of all items, by fingerprint, that a split may hold if `train` and `valid` have the same distribution and
# `test` another one.
SHARES = {"train": (0.0, 7 / 8), "valid": (7 / 8, 1.0), "test": (0.0, 1.0)}
# The same if `test` may have their distribution, too.
DISJOINT_SHARES = {"train": (0.0, 0.75), "valid": (0.75, 0.875), "test": (0.875, 1.0)}


Fingerprints = npt.NDArray[np.uint64]

_LONGEST = 4096
# The items whose fingerprints are computed at a time.
_ITEMS = 1 << 12


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


def shared_rows(split: Split, others: Split) -> int:
    """Returns how many items of a split are also items of another, as a model reads them."""
    known, prints = np.sort(_of_items(others)), _of_items(split)
    return int((np.searchsorted(known, prints, "right") > np.searchsorted(known, prints)).sum())


def _of_items(split: Split) -> Fingerprints:
    """Returns the fingerprints of the inputs of each item, from some items at a time."""
    prints = np.zeros(len(split), dtype=np.uint64)
    for start in range(0, len(split), _ITEMS):
        for field in split.inputs.values():
            part = field.part(start, start + _ITEMS)
            if part.values.ndim == 2:
                size = part.values.itemsize * part.values.shape[1]
                part = Ragged(np.ascontiguousarray(part.values).view(np.uint8).reshape(-1), part.offsets * size)
            prints[start : start + _ITEMS] = combine(prints[start : start + _ITEMS], fingerprints(part))
    return prints


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


class Search:
    """A search for distinct items of a share, of which batches are drawn until none is `missing`. It ends with an error
    when a window of batches brings less than 1/300 of the items.

    Args:
        static: The static that asks for `size` items, such as `train_size`.
        remedy: What allows more items, for the error.
        seen: The items that are drawn already."""

    def __init__(
        self,
        task: str,
        static: str,
        size: int,
        remedy: str,
        *,
        share: tuple[float, float] = (0.0, 1.0),
        window: int = 40,
        seen: Seen | None = None,
    ) -> None:
        self.missing = size
        self._static, self._remedy, self._task = static, remedy, task
        self._share, self._window = share, window
        self._seen = Seen() if seen is None else seen
        self._size, self._batches, self._found = size, 0, 0

    def fresh(self, prints: Fingerprints) -> Truths:
        """Marks the new items of a batch, whose fingerprints these are."""
        return in_share(prints, *self._share) & self._seen.fresh(prints)

    def take(self, count: int) -> None:
        """Notes that a batch brought this number of items.

        Raises:
            TaskError: there are too few distinct items."""
        self.missing -= count
        self._batches += 1
        self._found += count
        if self._batches < self._window:
            return
        if self._found < max(self._size // 300, 1) and self.missing:
            drawn = self._size - self.missing
            raise mistakes.items_too_rare(self._static, self._size, self._task, drawn, self._remedy)
        self._batches = self._found = 0

    def pick(self, prints: Fingerprints) -> Integers:
        """Returns the indices of the new items of a batch, as many as are missing, and takes them."""
        chosen = np.flatnonzero(self.fresh(prints))[: self.missing]
        self.take(len(chosen))
        return chosen


def draw_distinct(
    task: str, split: str, size: int, draw: Callable[[int], tuple[Split, Fingerprints]], batch: int, remedy: str
) -> Split:
    """Returns `size` distinct items of the share of a split.

    Args:
        draw: Returns a number of random items, with the fingerprint of each. It is called at least once.
        batch: How many items are drawn at most at a time.

    Raises:
        TaskError: there are too few distinct items."""
    search, parts = Search(task, f"{split}_size", size, remedy, share=SHARES[split]), list[Split]()
    while search.missing or not parts:
        items, prints = draw(min(batch, max(2 * search.missing, 16)))
        parts.append(items.select(search.pick(prints)))
    return join_splits(parts)
