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
    """Sequences of different lengths, concatenated: sequence i is `values[offsets[i] : offsets[i + 1]]`.

    `values` is [P] for tokens and [P, k] for features or sets, where P is the sum of all lengths.

    >>> words = Ragged.of([[3, 1], [], [2]])
    >>> len(words), words[0], words.select([2, 0]).values
    (3, array([3, 1], dtype=uint8), array([2, 3, 1], dtype=uint8))
    """

    values: np.ndarray
    offsets: Integers

    @staticmethod
    def of(sequences: Iterable[Sequence[int | Sequence[float]]], dtype: npt.DTypeLike = np.uint8) -> Ragged:
        """Returns these sequences as a Ragged of this dtype."""
        sequences = list(sequences)
        values = [value for sequence in sequences for value in sequence]
        lengths = np.asarray([len(sequence) for sequence in sequences], dtype=np.int64)
        return Ragged(np.asarray(values, dtype=dtype), offsets_of(lengths))

    @staticmethod
    def of_rows(rows: Sequence[np.ndarray], dtype: npt.DTypeLike = np.uint8) -> Ragged:
        """Returns arrays [n] or [n, k] as sequences; of this dtype if there are none."""
        lengths = np.array([len(row) for row in rows], dtype=np.int64)
        return Ragged(np.concatenate(rows) if rows else np.zeros(0, dtype), offsets_of(lengths))

    @staticmethod
    def of_bytes(texts: Iterable[bytes]) -> Ragged:
        """Returns each text as the sequence of its bytes."""
        texts = list(texts)
        lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
        return Ragged(np.frombuffer(b"".join(texts), dtype=np.uint8), offsets_of(lengths))

    @staticmethod
    def table(rows: np.ndarray) -> Ragged:
        """Returns the rows of a matrix [N, length] as sequences."""
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

    def part(self, start: int, stop: int) -> Ragged:
        """Returns the sequences from `start` until before `stop`."""
        ends = self.offsets[start : stop + 1]
        return Ragged(self.values[ends[0] : ends[-1]], ends - ends[0])

    def select(self, indices: npt.ArrayLike) -> Ragged:
        """Returns the sequences at these indices, in this order, or those where a mask [N] is true."""
        chosen = np.asarray(indices)
        if chosen.dtype == np.bool_:
            chosen = np.flatnonzero(chosen)
        chosen = chosen.astype(np.int64)
        return self.slices(self.offsets[chosen], self.lengths[chosen])

    def slices(self, starts: Integers, lengths: Integers) -> Ragged:
        """Returns as sequences the values that begin at `starts` [N], of these lengths [N]."""
        offsets = offsets_of(lengths)
        # The index in `values` of each value of the result.
        places = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
        return Ragged(self.values[places], offsets)


def offsets_of(lengths: Integers) -> Integers:
    """Returns the offsets [N + 1] of concatenated sequences of these lengths [N]."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def enclose(sequences: Ragged, begin: int, end: int) -> Ragged:
    """Returns each sequence with `begin` before it and `end` after it; features get constant rows of these."""
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
    """Returns each sequence with `end` after it."""
    values = np.insert(sequences.values, sequences.offsets[1:], end, axis=0)
    return Ragged(values, sequences.offsets + np.arange(len(sequences.offsets)))


def shift(targets: Ragged, begin: int) -> Ragged:
    """Returns the decoder's inputs for these targets: `begin`, and all targets but the last. No sequence may be
    empty."""
    values = np.roll(targets.values, 1, axis=0)
    values[targets.offsets[:-1]] = begin
    return Ragged(values, targets.offsets)


def join(parts: Sequence[Ragged]) -> Ragged:
    """Returns the sequences of all parts, one part after another."""
    lengths = np.concatenate([part.lengths for part in parts]) if parts else np.zeros(0, dtype=np.int64)
    values = np.concatenate([part.values for part in parts]) if parts else np.zeros(0, dtype=np.uint8)
    return Ragged(values, offsets_of(lengths))
