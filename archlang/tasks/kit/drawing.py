"""Random numbers that are equal on every machine and with every version of numpy, and distinct items, drawn until a
split is full.

numpy guarantees the stream of a bit generator, but not the distributions of `Generator` (NEP 19). This file derives the
few distributions that tasks need from raw words."""

import json
from collections.abc import Callable
from functools import cache

import numpy as np
import numpy.typing as npt

from archlang.tasks.kit import mistakes
from archlang.tasks.kit.split import Integers, Ragged, Split, Truths, join_splits, ranges

Shape = int | tuple[int, ...]


class RandomStream:
    """A stream of random numbers, seeded by all parts of `key`: `RandomStream("ctl", "train", 3)`."""

    def __init__(self, *key: str | int) -> None:
        for part in key:
            if isinstance(part, int) and part < 0:
                raise mistakes.negative_seed(part)
        # As text: SeedSequence gives a list of numbers and the same list with a zero appended the same state.
        self._bits = np.random.PCG64(np.random.SeedSequence(int.from_bytes(json.dumps(key).encode(), "little")))

    def words(self, shape: Shape) -> npt.NDArray[np.uint64]:
        """Returns uniform words of 64 bits, of this shape."""
        size = int(np.prod(shape, dtype=np.int64))
        return np.asarray(self._bits.random_raw(size), dtype=np.uint64).reshape(shape)

    def below(self, bound: int | npt.NDArray[np.int64], shape: Shape) -> npt.NDArray[np.int64]:
        """Returns uniform integers in [0, bound). Bounds are far below 2^32, so the bias is not measurable."""
        high = self.words(shape) >> np.uint64(32)
        return np.asarray((high * np.asarray(bound, dtype=np.uint64)) >> np.uint64(32), dtype=np.int64)

    def real(self, shape: Shape) -> npt.NDArray[np.float64]:
        """Returns uniform numbers in [0, 1)."""
        return np.asarray((self.words(shape) >> np.uint64(11)) * 2.0**-53, dtype=np.float64)

    def order(self, count: int) -> npt.NDArray[np.int64]:
        """Returns a random permutation of 0 … count - 1."""
        return np.argsort(self.words(count), kind="stable")

    def normal(self, count: int) -> npt.NDArray[np.float64]:
        """Returns numbers from the standard normal distribution, by Marsaglia's polar method.

        It uses only operations that round equally on every machine, so no logarithm of a library."""
        parts: list[npt.NDArray[np.float64]] = []
        missing = count
        while missing > 0:
            pairs = 2.0 * self.real((missing // 2 + 32, 2)) - 1.0
            squares = pairs[:, 0] * pairs[:, 0] + pairs[:, 1] * pairs[:, 1]
            inside = (squares > 0) & (squares < 1)
            pairs, squares = pairs[inside], squares[inside]
            numbers = (pairs * np.sqrt(-2.0 * _logarithm(squares) / squares)[:, None]).reshape(-1)[:missing]
            parts.append(numbers)
            missing -= len(numbers)
        return np.concatenate([np.zeros(0), *parts])

    def exponential(self, shape: Shape) -> npt.NDArray[np.float64]:
        """Returns numbers from the exponential distribution with mean 1."""
        return -_logarithm(1.0 - self.real(shape))


class ScalarStream:
    """Random numbers one at a time, for tasks that draw an item step by step."""

    def __init__(self, rng: RandomStream) -> None:
        self._rng = rng
        self._words: list[int] = []

    def word(self) -> int:
        """Returns a uniform word of 64 bits."""
        return (self._words or self._refill()).pop()

    def real(self) -> float:
        """Returns a uniform number in [0, 1)."""
        return (self.word() >> 11) * 2.0**-53

    def below(self, bound: int) -> int:
        """Returns a uniform integer in [0, bound). The bound may be as large as 10^20."""
        if bound >> 32:
            return (self.word() << 64 | self.word()) * bound >> 128
        return ((self._words or self._refill()).pop() >> 32) * bound >> 32

    def _refill(self) -> list[int]:
        self._words = self._rng.words(1 << 16).tolist()
        return self._words


def _logarithm(numbers: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """ln x = e ln 2 + 2 (t + t^3/3 + t^5/5 + …) for x = m 2^e and t = (m - 1) / (m + 1), with m near 1."""
    mantissas, exponents = np.frexp(numbers)
    low = mantissas < np.sqrt(0.5)
    mantissas, exponents = np.where(low, 2.0 * mantissas, mantissas), np.where(low, exponents - 1, exponents)
    t = (mantissas - 1.0) / (mantissas + 1.0)
    square, series = t * t, np.zeros_like(t)
    for odd in range(23, 0, -2):
        series = series * square + 1.0 / odd
    return np.asarray(exponents * 0.6931471805599453 + 2.0 * t * series)


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


def words_of_positions(key: tuple[Integers, int, int], lengths: Integers) -> Fingerprints:
    """Returns 64 random bits for each position of sequences of these lengths [N]. They depend on the number of the
    sequence [N] and the two other numbers of the key alone."""
    numbers, *others = key
    columns = [np.repeat(numbers, lengths), ranges(lengths), *(np.full(lengths.sum(), other) for other in others)]
    return table_fingerprints(np.column_stack(columns))


def random_positions(words: Fingerprints, lengths: Integers, counts: Integers) -> Truths:
    """Marks so many positions `counts` [N] of each of the sequences of these lengths [N], by the words of all
    positions."""
    marks = np.zeros(len(words), dtype=np.bool_)
    order = np.lexsort((words, np.repeat(np.arange(len(lengths)), lengths)))
    marks[order] = ranges(lengths) < np.repeat(counts, lengths)
    return marks


@cache
def _weights() -> Fingerprints:
    return RandomStream("archlang fingerprints").words(_LONGEST)


def _mix(words: Fingerprints) -> Fingerprints:
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def shared_rows(split: Split, others: Split) -> int:
    """Returns how many items of a split are also items of another, as a model reads them; where a part of the positions
    counts, by their answers too, because different texts with hidden tokens may read the same."""
    known, prints = np.sort(_fingerprints_of_items(others)), _fingerprints_of_items(split)
    return int((np.searchsorted(known, prints, "right") > np.searchsorted(known, prints)).sum())


def _fingerprints_of_items(split: Split) -> Fingerprints:
    prints = np.zeros(len(split), dtype=np.uint64)
    for start in range(0, len(split), _ITEMS):
        fields = [*split.inputs.values()]
        if split.scored is not None and isinstance(split.targets, Ragged):
            fields.append(split.targets)
        for field in fields:
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


class Drawing:
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
    search, parts = Drawing(task, f"{split}_size", size, remedy, share=SHARES[split]), list[Split]()
    while search.missing or not parts:
        items, prints = draw(min(batch, max(2 * search.missing, 16)))
        parts.append(items.select(search.pick(prints)))
    return join_splits(parts)
