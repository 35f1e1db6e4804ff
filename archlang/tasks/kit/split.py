"""A split of a task: the inputs and targets of its items."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
import numpy.typing as npt

from archlang.tasks.kit.ragged import Integers, Ragged, join


class Form(Enum):
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
    forms of `Form`. `scored` marks the positions that count, or the positions where a span may begin and end; None
    marks all. `points_at` names the field whose positions are the targets, if they are. `groups` holds numbers [N] by
    which results are broken down. `notes` holds data for the task's `judge`, which no model sees."""

    inputs: Mapping[str, Ragged]
    targets: Integers | Ragged
    scored: Ragged | None = None
    groups: Mapping[str, Integers] = field(default_factory=dict)
    notes: Mapping[str, Ragged] = field(default_factory=dict)
    points_at: str = ""

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def form(self) -> Form:
        if self.points_at:
            return Form.POINTERS
        if isinstance(self.targets, Ragged):
            if self.targets.values.ndim == 1:
                return Form.POSITIONS
            return Form.SETS if self.targets.values.dtype == np.bool_ else Form.NUMBERS
        return Form.CLASSES if self.targets.ndim == 1 else Form.SPANS

    def select(self, indices: npt.ArrayLike) -> Split:
        """Returns the items at these indices, in this order, or those where a mask [N] is true."""
        chosen = np.asarray(indices)
        chosen = chosen if chosen.dtype == np.bool_ else chosen.astype(np.int64)  # an empty list has no integers
        targets = self.targets.select(chosen) if isinstance(self.targets, Ragged) else self.targets[chosen]
        return Split(
            {name: ragged.select(chosen) for name, ragged in self.inputs.items()},
            targets,
            None if self.scored is None else self.scored.select(chosen),
            {name: group[chosen] for name, group in self.groups.items()},
            {name: ragged.select(chosen) for name, ragged in self.notes.items()},
            self.points_at,
        )

    def arrays(self) -> dict[str, np.ndarray]:
        """Returns every array of the split by a dotted name. `from_arrays` is the inverse."""
        arrays: dict[str, np.ndarray] = {}
        for name, ragged in self.inputs.items():
            arrays[f"inputs.{name}.values"], arrays[f"inputs.{name}.offsets"] = ragged.values, ragged.offsets
        if isinstance(self.targets, Ragged):
            arrays["targets.values"], arrays["targets.offsets"] = self.targets.values, self.targets.offsets
        else:
            arrays["targets"] = self.targets
        if self.scored is not None:
            arrays["scored.values"], arrays["scored.offsets"] = self.scored.values, self.scored.offsets
        if self.points_at:
            arrays[f"points_at.{self.points_at}"] = np.zeros(0, dtype=np.bool_)  # the name alone
        for name, group in self.groups.items():
            arrays[f"groups.{name}"] = group
        for name, ragged in self.notes.items():
            arrays[f"notes.{name}.values"], arrays[f"notes.{name}.offsets"] = ragged.values, ragged.offsets
        return arrays

    @staticmethod
    def from_arrays(arrays: Mapping[str, np.ndarray]) -> Split:
        """Returns the split with these arrays, which `arrays` returned."""

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
            next((name.removeprefix("points_at.") for name in arrays if name.startswith("points_at.")), ""),
        )


def join_splits(parts: Sequence[Split]) -> Split:
    """Returns the items of all parts, one part after another. The parts have the same fields and groups."""
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
        first.points_at,
    )


def digest(split: Split) -> str:
    """Returns a sha256 of every array of a split, equal on every machine."""
    sha256 = hashlib.sha256()
    for name, array in sorted(split.arrays().items()):
        sha256.update(f"{name} {array.dtype.name} {array.shape}\n".encode())
        little_endian = array.astype(array.dtype.newbyteorder("<"), copy=False)
        sha256.update(np.ascontiguousarray(little_endian).data)
    return sha256.hexdigest()
