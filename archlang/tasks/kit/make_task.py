"""The instance of a task from the Python class that its signature names.

A program can only cause the import of archlang's own classes, and of those in Python files that the user trusts."""

import importlib
from collections.abc import Iterator, Mapping
from inspect import getattr_static
from typing import Any

import numpy as np

from archlang.errors.machine import is_out_of_memory
from archlang.errors.names import plural
from archlang.plugins import NO_PLUGINS, Plugins, is_signal
from archlang.syntax.tree import PAGE
from archlang.tasks.kit import mistakes
from archlang.tasks.kit.pages import page_class
from archlang.tasks.kit.split import Ragged, Split, TargetForm
from archlang.tasks.kit.task import ShippedTask, Task, field_vocabulary, python_value
from archlang.types.statics import StaticValue

_OWN = "archlang.tasks."


def make_task(name: str, python: str, statics: Mapping[str, StaticValue], plugins: Plugins = NO_PLUGINS) -> Task:
    """Returns the task `name` with these statics. Its class `python` (`module:Class`) is one of archlang's, or is in a
    plugin.

    Raises:
        PluginError: the class is in a file that the user has not named, or the file cannot be imported.
        TaskError: there is no such class, or it rejects the statics."""
    if is_own(python):
        own: Task = _own_class(name, python)(**statics)
        return own
    plugin_class = plugins.load(python, f"the task `{name}`")
    if not isinstance(plugin_class, type):
        raise mistakes.no_class(name, python)
    try:
        task: Task = plugin_class(**{key: python_value(value) for key, value in statics.items()})
    except BaseException as error:  # whatever the class does
        if is_signal(error) or is_out_of_memory(error):
            raise
        raise mistakes.constructor_fails(python, name, error) from error
    missing = [part for part in _PARTS if getattr_static(task, part, _MISSING) is _MISSING]
    if missing:
        raise mistakes.incomplete(python, name, missing)
    _check_parts(name, python, task)
    return task


def unchecked_task(name: str, python: str, statics: Mapping[str, StaticValue]) -> Task:
    """Returns one of archlang's tasks with all of its statics, which are not checked. In a browser, where numpy is
    missing, some tasks cannot count their items; they know the names of their splits and metrics.

    Raises:
        TaskError: there is no such class."""
    task: Task = _own_class(name, python).unchecked(**statics)
    return task


def is_own(python: str) -> bool:
    """Returns whether a class is one of archlang's, as that of a page is."""
    return python.startswith((_OWN, PAGE))


def check_vocabulary(task: Task, name: str, gives: Mapping[str, int]) -> None:
    """Compares the vocabulary of a task with `vocab` of its signature.

    Raises:
        TaskError: the sizes differ."""
    if "vocab" in gives and gives["vocab"] != len(task.vocabulary):
        raise mistakes.vocabulary_differs(name, gives["vocab"], len(task.vocabulary))


def _own_class(name: str, python: str) -> Any:  # Any: a class that is both a `Task` and a `ShippedTask`
    """Returns one of archlang's classes, or that of a page. A program can name nothing else in its modules."""
    if (page := page_class(name, python)) is not None:
        return page
    module_name, _, attribute = python.partition(":")
    try:
        task_class = getattr(importlib.import_module(module_name), attribute, None)
    except ModuleNotFoundError:
        task_class = None
    if (
        not isinstance(task_class, type)
        or task_class.__module__ != module_name
        or not issubclass(task_class, ShippedTask)
    ):
        raise mistakes.no_class(name, python)
    return task_class


def _check_parts(name: str, python: str, task: Task) -> None:
    """Raises TaskError if a name of a split or of a group is no text, or `train` is missing."""
    names = task.split_names()
    faults = [
        (not _are_texts(names), "`split_names` returns no tuple of texts"),
        (_are_texts(names) and "train" not in names, "it has no split `train`"),
        (not isinstance(task.breakdown, str), "`breakdown` is no text"),
        (not _are_texts(task.metrics), "`metrics` is no tuple of texts"),
        (not _are_texts(task.in_distribution), "`in_distribution` is no tuple of texts"),
    ]
    if not any(is_wrong for is_wrong, _ in faults):
        unknown = sorted(set(task.in_distribution) - set(names))
        faults.append((bool(unknown), f"`in_distribution` names the split `{', '.join(unknown)}`, which it has not"))
    for is_wrong, fault in faults:
        if is_wrong:
            raise mistakes.wrong_part(python, name, fault)


def _are_texts(value: object) -> bool:
    return isinstance(value, tuple) and bool(value) and all(isinstance(each, str) for each in value)


_MISSING = object()
# The attributes of `Task`. An `isinstance` check of a runtime protocol would compute its properties, such as a
# vocabulary that is read from files.
_PARTS = (
    "kind", "vocabulary", "breakdown", "in_distribution", "unit", "metrics", "version", "split_names", "generate",
)  # fmt: skip


def is_shipped(task: Task) -> bool:
    """Returns whether the class of a task is one of archlang's."""
    return type(task).__module__.startswith("archlang.")


def checked(name: str, task: Task, split: str, generated: Split) -> Split:
    """Returns a split that the class of a task has generated.

    Raises:
        TaskError: a class of the user's own has generated something else."""
    if not is_shipped(task):
        for fault in _faults(task, generated):
            raise mistakes.wrong_split(f"{type(task).__name__}.generate", name, split, fault)
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
    elif split.form in (TargetForm.CLASSES, TargetForm.POSITIONS):
        yield from _faults_of_classes(task, split)
    if task.breakdown and task.breakdown not in split.groups:
        yield f"it has no group `{task.breakdown}`, by which results are broken down"
    if "bits_per_byte" in task.metrics and "bytes" not in split.notes:
        yield 'it has no `notes["bytes"]`, the number of bytes of each item, by which `bits_per_byte` divides'


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
