"""A split of a task: the inputs and targets of its items, sequences of different lengths in two arrays."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import Any

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


def ranges(counts: Integers) -> Integers:
    """Returns 0, 1, … before each of the numbers `counts`, one range after another."""
    offsets = offsets_of(counts)
    return np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)


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


Part = Ragged | np.ndarray
Parts = Mapping[str, Part]


class TargetForm(Enum):
    """The form of the targets of a split."""

    CLASSES = "a class for each item: [N]"
    POSITIONS = "a class for each position of a field: Ragged, values [P]"
    SETS = "a set for each position of a field: Ragged, values [P, classes] of bool"
    SPANS = "the first and the last position of the answer in a field: [N, 2]"
    POINTERS = "a position of the field `points_at` for each position of a field: Ragged, values [P]"
    NUMBERS = "a row of real numbers for each position of a field: Ragged, values [P, k] of float32"


@dataclass(frozen=True, eq=False)
class Split:
    """The N items of a split.

    `inputs` holds the fields of a model: tokens, or real numbers for a field `seq[n, k]`. `targets` has one of the
    forms of `TargetForm`. `scored` marks the positions that count, or those where a span may begin and end; None marks
    all. `points_at` names the field whose positions are the targets, if they are. `groups` holds numbers [N] by
    which results are broken down. `notes` holds data for the task's `judge`, which no model sees. `frequencies` [N] of
    train say how often each item is drawn, in relation to the others; None draws each once in an epoch."""

    inputs: Mapping[str, Ragged]
    targets: Integers | Ragged
    scored: Ragged | None = None
    groups: Mapping[str, Integers] = field(default_factory=dict)
    notes: Mapping[str, Ragged] = field(default_factory=dict)
    points_at: str = ""
    frequencies: Reals | None = None

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def form(self) -> TargetForm:
        if self.points_at:
            return TargetForm.POINTERS
        if isinstance(self.targets, Ragged):
            if self.targets.values.ndim == 1:
                return TargetForm.POSITIONS
            return TargetForm.SETS if self.targets.values.dtype == np.bool_ else TargetForm.NUMBERS
        return TargetForm.CLASSES if self.targets.ndim == 1 else TargetForm.SPANS

    def parts(self) -> dict[str, Part]:
        """Returns the parts of the split by dotted names. `of_parts` is the inverse."""
        return {
            # The name alone says at which field the targets point.
            **({f"points_at.{self.points_at}": np.zeros(0, dtype=np.bool_)} if self.points_at else {}),
            **{f"inputs.{name}": ragged for name, ragged in self.inputs.items()},
            "targets": self.targets,
            **({} if self.scored is None else {"scored": self.scored}),
            **{f"groups.{name}": group for name, group in self.groups.items()},
            **{f"notes.{name}": ragged for name, ragged in self.notes.items()},
            **({} if self.frequencies is None else {"frequencies": self.frequencies}),
        }

    @staticmethod
    def of_parts(parts: Mapping[str, Any]) -> Split:  # Any: the type depends on the name
        def named(prefix: str) -> dict[str, Any]:
            return {name.removeprefix(prefix): part for name, part in parts.items() if name.startswith(prefix)}

        points_at = next(iter(named("points_at.")), "")
        scored = parts.get("scored")
        return Split(
            named("inputs."), parts["targets"], scored, named("groups."), named("notes."), points_at,
            parts.get("frequencies"),
        )  # fmt: skip

    def select(self, indices: npt.ArrayLike) -> Split:
        """Returns the items at these indices, in this order, or those where a mask [N] is true."""
        chosen = np.asarray(indices)
        chosen = chosen if chosen.dtype == np.bool_ else chosen.astype(np.int64)  # an empty list has no integers
        parts = {name: part for name, part in self.parts().items() if not name.startswith("points_at.")}
        selected = {
            name: part.select(chosen) if isinstance(part, Ragged) else part[chosen] for name, part in parts.items()
        }
        return replace(Split.of_parts(selected), points_at=self.points_at)

    @cached_property
    def sha256(self) -> str:
        """A digest of every array, equal on every machine."""
        sha256 = hashlib.sha256()
        for name, array in sorted(arrays_of(self.parts()).items()):
            sha256.update(f"{name} {array.dtype.name} {array.shape}\n".encode())
            little_endian = array.astype(array.dtype.newbyteorder("<"), copy=False)
            sha256.update(np.ascontiguousarray(little_endian).data)
        return sha256.hexdigest()


def arrays_of(parts: Parts) -> dict[str, np.ndarray]:
    """Returns every array of some parts by a dotted name."""
    arrays: dict[str, np.ndarray] = {}
    for name, part in parts.items():
        arrays |= (
            {f"{name}.values": part.values, f"{name}.offsets": part.offsets}
            if isinstance(part, Ragged)
            else {name: part}
        )
    return arrays


def join_parts(pieces: Iterable[Parts]) -> dict[str, Part]:
    """Returns each part of all pieces, one after another."""
    parts: dict[str, list[Any]] = {}  # Any: all parts of a name have one type
    for piece in pieces:
        for name, part in piece.items():
            parts.setdefault(name, []).append(part)
    return {name: join(same) if isinstance(same[0], Ragged) else np.concatenate(same) for name, same in parts.items()}


def join_splits(splits: Iterable[Split]) -> Split:
    """Returns the items of all splits, one after another. They have the same fields and groups."""
    return Split.of_parts(join_parts(split.parts() for split in splits))


def digest(split: Split) -> str:
    """Returns a sha256 of every array of a split, equal on every machine."""
    return split.sha256
