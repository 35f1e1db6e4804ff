"""What a task is: named splits of ragged sequences with their targets."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol, runtime_checkable

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


@dataclass(frozen=True, eq=False)
class Split:
    """Items of a task.

    `inputs` are tokens, or rows of real numbers for a field `seq[n, k]`. `targets` have one of the forms of `Form`;
    `scored` marks the positions that count (all, if None; of spans those where one may begin and end); `groups` are [N]
    numbers by which results are broken down; `notes` are what the task's own `judge` needs and no model sees."""

    inputs: Mapping[str, Ragged]
    targets: Integers | Ragged
    scored: Ragged | None = None
    groups: Mapping[str, Integers] = field(default_factory=dict)
    notes: Mapping[str, Ragged] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def form(self) -> Form:
        if isinstance(self.targets, Ragged):
            return Form.POSITIONS if self.targets.values.ndim == 1 else Form.SETS
        return Form.CLASSES if self.targets.ndim == 1 else Form.SPANS

    def select(self, indices: npt.ArrayLike) -> Split:
        chosen = np.asarray(indices)
        targets = self.targets.select(chosen) if isinstance(self.targets, Ragged) else self.targets[chosen]
        return Split(
            {name: ragged.select(chosen) for name, ragged in self.inputs.items()},
            targets,
            None if self.scored is None else self.scored.select(chosen),
            {name: group[chosen] for name, group in self.groups.items()},
            {name: ragged.select(chosen) for name, ragged in self.notes.items()},
        )

    def arrays(self) -> dict[str, np.ndarray]:
        """Every array of the split by a name that says where it belongs; `from_arrays` is the way back."""
        found: dict[str, np.ndarray] = {}
        for name, ragged in self.inputs.items():
            found[f"inputs.{name}.values"], found[f"inputs.{name}.offsets"] = ragged.values, ragged.offsets
        if isinstance(self.targets, Ragged):
            found["targets.values"], found["targets.offsets"] = self.targets.values, self.targets.offsets
        else:
            found["targets"] = self.targets
        if self.scored is not None:
            found["scored.values"], found["scored.offsets"] = self.scored.values, self.scored.offsets
        for name, group in self.groups.items():
            found[f"groups.{name}"] = group
        for name, ragged in self.notes.items():
            found[f"notes.{name}.values"], found[f"notes.{name}.offsets"] = ragged.values, ragged.offsets
        return found

    @staticmethod
    def from_arrays(arrays: Mapping[str, np.ndarray]) -> Split:
        def ragged(name: str) -> Ragged:
            return Ragged(arrays[f"{name}.values"], arrays[f"{name}.offsets"])

        def named(part: str) -> dict[str, Ragged]:
            names = [name.split(".")[1] for name in arrays if name.startswith(part) and name.endswith(".values")]
            return {name: ragged(f"{part}{name}") for name in names}

        return Split(
            named("inputs."),
            arrays["targets"] if "targets" in arrays else ragged("targets"),
            ragged("scored") if "scored.values" in arrays else None,
            {name.removeprefix("groups."): group for name, group in arrays.items() if name.startswith("groups.")},
            named("notes."),
        )


class Form(Enum):
    """What the targets of a split look like."""

    CLASSES = "a class for each item: [N]"
    POSITIONS = "a class for each position of a field: Ragged of numbers"
    SETS = "a set for each position of a field: Ragged of rows of truths"
    SPANS = "where the answer begins and ends in a field, both inside: [N, 2]"


class Kind(Enum):
    """What a task asks of a model. The signature beside the task says the same by its fields and its result."""

    CLASSIFICATION = "classification"
    PAIRS = "classification of pairs"
    TAGGING = "tagging"
    LANGUAGE_MODEL = "language model"
    SEQ2SEQ = "sequence to sequence"
    SETS = "prediction of sets"
    SPANS = "spans"

    @property
    def form(self) -> Form:
        match self:
            case Kind.CLASSIFICATION | Kind.PAIRS:
                return Form.CLASSES
            case Kind.SETS:
                return Form.SETS
            case Kind.SPANS:
                return Form.SPANS
        return Form.POSITIONS


class Rule(Enum):
    """How far logits are from targets: cross entropy, of each member of a set alone where sets are asked for; or the
    squared error of the sigmoids."""

    ENTROPY = "entropy"
    SQUARES = "squares"


class Unit(Enum):
    """What `accuracy` counts: right samples, right scored positions, or sequences right at every scored position."""

    SAMPLE = "sample"
    POSITION = "position"
    SEQUENCE = "sequence"


class Task(Protocol):
    """A task with its statics settled. Splits are disjoint, and a split depends on the statics and the seed alone,
    never on the size of another split. What only some tasks have is in `Written`, `Judging` and `rule_of`."""

    @property
    def kind(self) -> Kind:
        """What is asked of a model."""

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """The text of every token, by id. No id is padding: sequences are ragged."""

    @property
    def breakdown(self) -> str:
        """The group that reports use first: what the task generalizes by."""

    @property
    def in_distribution(self) -> tuple[str, ...]:
        """The splits whose items are drawn as those of `train` are. All others ask for generalization."""

    @property
    def unit(self) -> Unit:
        """What `accuracy` counts."""

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of `archlang.tasks.kit.metrics`, the most important first."""

    @property
    def version(self) -> int:
        """Rises when the same statics and seed begin to give other items, so that caches notice."""

    def split_names(self) -> tuple[str, ...]: ...

    def generate(self, split: str, seed: int) -> Split: ...


@runtime_checkable
class Written(Protocol):
    """A task whose answers are sequences that a model may write by itself, token after token: it is given `begin`
    first, and stops after `end`; where that is None, it is told how long its answer is."""

    @property
    def begin(self) -> int: ...
    @property
    def end(self) -> int | None: ...


@runtime_checkable
class Judging(Protocol):
    """A task that measures some of its metrics itself, where they are more than a comparison of tokens."""

    def judge(self, split: Split, predictions: np.ndarray) -> Mapping[str, Reals]:
        """For metrics of the task, the merit of each item between 0 and 1. `predictions` are classes [N], spans
        [N, 2], or one for each place of `split.targets.values`."""


def rule_of(task: Task) -> Rule:
    """How a task's loss is measured: its `rule`, or else cross entropy."""
    rule: Rule = getattr(task, "rule", Rule.ENTROPY)
    return rule


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


def join_splits(parts: Sequence[Split]) -> Split:
    """The items of all parts after one another; the parts have the same fields and groups."""
    first = parts[0]
    targets: Integers | Ragged
    if isinstance(first.targets, Ragged):
        targets = join([part.targets for part in parts if isinstance(part.targets, Ragged)])
    else:
        targets = np.concatenate([part.targets for part in parts if not isinstance(part.targets, Ragged)])
    return Split(
        {name: join([part.inputs[name] for part in parts]) for name in first.inputs},
        targets,
        None if first.scored is None else join([part.scored for part in parts if part.scored is not None]),
        {name: np.concatenate([part.groups[name] for part in parts]) for name in first.groups},
        {name: join([part.notes[name] for part in parts]) for name in first.notes},
    )


def digest(split: Split) -> str:
    """A sha256 of everything in a split, the same on every machine."""
    whole = hashlib.sha256()
    for name, array in sorted(split.arrays().items()):
        whole.update(f"{name} {array.dtype.name} {array.shape}\n".encode())
        little = array.astype(array.dtype.newbyteorder("<"), copy=False)
        whole.update(np.ascontiguousarray(little).data)
    return whole.hexdigest()


def spell(task: Task, tokens: Iterable[int]) -> str:
    """Tokens as text."""
    return " ".join(task.vocabulary[token] for token in tokens)
