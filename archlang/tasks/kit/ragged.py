"""Sequences of different lengths in two arrays, and the operations that tasks need on them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]
Reals = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Ragged:
    """Sequences of different lengths: all `values` after one another, and where each sequence begins and ends.

    Tokens are numbers, `values` [places]; what else stands at a place (features, sets) is a row, `values` [places, k].

    >>> words = Ragged.of([[3, 1], [], [2]])
    >>> len(words), words[0], words.select([2, 0]).values
    (3, array([3, 1], dtype=uint8), array([2, 3, 1], dtype=uint8))
    """

    values: np.ndarray
    offsets: Integers

    @staticmethod
    def of(rows: Iterable[Sequence[int | Sequence[float]]], dtype: npt.DTypeLike = np.uint8) -> Ragged:
        rows = list(rows)
        flat = [value for row in rows for value in row]
        return Ragged(np.asarray(flat, dtype=dtype), offsets_of(np.asarray([len(row) for row in rows], dtype=np.int64)))

    @staticmethod
    def of_bytes(texts: Iterable[bytes]) -> Ragged:
        """Returns each text as the sequence of its bytes."""
        texts = list(texts)
        lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
        return Ragged(np.frombuffer(b"".join(texts), dtype=np.uint8), offsets_of(lengths))

    @staticmethod
    def table(rows: np.ndarray) -> Ragged:
        """The rows of a matrix: sequences of one length."""
        count, length = rows.shape
        return Ragged(rows.reshape(-1), np.arange(count + 1, dtype=np.int64) * length)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> np.ndarray:
        if not -len(self) <= index < len(self):
            raise IndexError(f"sequence {index} of {len(self)}")
        index %= len(self)
        return np.asarray(self.values[self.offsets[index] : self.offsets[index + 1]])

    @property
    def lengths(self) -> Integers:
        return np.diff(self.offsets)

    def select(self, indices: npt.ArrayLike) -> Ragged:
        """The sequences at these indices (or where this mask is true), in this order."""
        chosen = np.asarray(indices)
        if chosen.dtype == np.bool_:
            chosen = np.flatnonzero(chosen)
        chosen = chosen.astype(np.int64)
        lengths = self.lengths[chosen]
        offsets = offsets_of(lengths)
        # The place in `values` that each place of the result comes from.
        places = np.arange(offsets[-1]) + np.repeat(self.offsets[chosen] - offsets[:-1], lengths)
        return Ragged(self.values[places], offsets)


def offsets_of(lengths: Integers) -> Integers:
    """Where sequences of these lengths begin and end when they stand after one another."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def enclose(sequences: Ragged, begin: int, end: int) -> Ragged:
    """`begin` before and `end` after each sequence; of rows, rows that are all `begin` and all `end`."""
    lengths = sequences.lengths + 2
    offsets = offsets_of(lengths)
    values = np.empty((offsets[-1], *sequences.values.shape[1:]), dtype=sequences.values.dtype)
    inner = np.ones(offsets[-1], dtype=np.bool_)
    inner[offsets[:-1]] = inner[offsets[1:] - 1] = False
    values[inner] = sequences.values
    values[offsets[:-1]] = begin
    values[offsets[1:] - 1] = end
    return Ragged(values, offsets)


def append(sequences: Ragged, end: int) -> Ragged:
    """`end` after each sequence."""
    values = np.insert(sequences.values, sequences.offsets[1:], end, axis=0)
    return Ragged(values, sequences.offsets + np.arange(len(sequences.offsets)))


def shift(targets: Ragged, begin: int) -> Ragged:
    """What a decoder has seen when it is asked for each target: `begin`, and the targets before it. None is empty."""
    values = np.roll(targets.values, 1, axis=0)
    values[targets.offsets[:-1]] = begin
    return Ragged(values, targets.offsets)


def join(parts: Sequence[Ragged]) -> Ragged:
    """The sequences of all parts after one another."""
    lengths = np.concatenate([part.lengths for part in parts]) if parts else np.zeros(0, dtype=np.int64)
    values = np.concatenate([part.values for part in parts]) if parts else np.zeros(0, dtype=np.uint8)
    return Ragged(values, offsets_of(lengths))
