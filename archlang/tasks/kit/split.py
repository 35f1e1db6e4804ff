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
    """What the targets of a split look like."""

    CLASSES = "a class for each item: [N]"
    POSITIONS = "a class for each position of a field: Ragged of numbers"
    SETS = "a set for each position of a field: Ragged of rows of truths"
    SPANS = "where the answer begins and ends in a field, both inside: [N, 2]"


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
