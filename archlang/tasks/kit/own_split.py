"""Checks what the class of a task of the user's own generates, before anything is computed with it."""

from collections.abc import Iterator

import numpy as np

from archlang.diagnostics.names import plural
from archlang.tasks.kit import mistakes
from archlang.tasks.kit.ragged import Ragged
from archlang.tasks.kit.split import Form, Split
from archlang.tasks.kit.task import Task, field_vocabulary

_LIBRARY = "archlang."


def checked(name: str, task: Task, split: str, generated: Split) -> Split:
    """Returns a split that the class of a task has generated.

    Raises:
        TaskError: a class of the user's own has generated something else."""
    if not type(task).__module__.startswith(_LIBRARY):
        for fault in _faults(task, generated):
            raise mistakes.wrong_split(name, f"{type(task).__name__}.generate", split, fault)
    return generated


def _faults(task: Task, split: object) -> Iterator[str]:
    """Yields what is wrong with a split, the first fault first."""
    if not isinstance(split, Split):
        yield f"it is a {type(split).__name__}, not a Split"
        return
    for field, values in split.inputs.items():
        if not isinstance(values, Ragged):
            yield f"the field `{field}` is a {type(values).__name__}, not a Ragged"
            return
        if values.values.dtype.kind in "iu" and values.values.size and not _is_within(values.values, task, field):
            low, high, words = int(values.values.min()), int(values.values.max()), len(field_vocabulary(task, field))
            yield f"the field `{field}` has tokens from {low} to {high}, and its vocabulary has {words}"
    lengths = {f"the field `{field}`": len(values) for field, values in split.inputs.items()}
    lengths |= {"`targets`": len(split.targets)}
    lengths |= {f"the group `{group}`": len(values) for group, values in split.groups.items()}
    first, count = next(iter(lengths.items()))
    for part, length in lengths.items():
        if length != count:
            yield f"{part} has {plural(length, 'item')}, and {first} has {count}"
    if split.form is not task.kind.form:
        yield f"its targets are {split.form.value}, and those of `{task.kind}` are {task.kind.form.value}"
    elif split.form in (Form.CLASSES, Form.POSITIONS):
        yield from _faults_of_classes(task, split)
    if task.breakdown and task.breakdown not in split.groups:
        yield f"it has no group `{task.breakdown}`, by which results are broken down"


def _faults_of_classes(task: Task, split: Split) -> Iterator[str]:
    targets = split.targets.values if isinstance(split.targets, Ragged) else split.targets
    classes = len(getattr(task, "class_names", ())) or None
    if targets.dtype.kind not in "iu":
        yield f"its targets are of {targets.dtype}, and classes are integers"
    elif targets.size and (int(targets.min()) < 0 or (classes is not None and int(targets.max()) >= classes)):
        known = f"{classes} class names" if classes is not None else "classes from 0"
        yield f"its targets are from {int(targets.min())} to {int(targets.max())}, and it has {known}"


def _is_within(tokens: np.ndarray, task: Task, field: str) -> bool:
    return int(tokens.min()) >= 0 and int(tokens.max()) < len(field_vocabulary(task, field))
