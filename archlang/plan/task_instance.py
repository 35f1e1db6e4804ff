"""The task of a recipe as an instance of its class, which knows its splits and metrics."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from archlang.elaborate.binding import Binding
from archlang.plan import mistakes
from archlang.plan.measures import Measures
from archlang.plan.plan import BoundExtern
from archlang.source import Span
from archlang.types.statics import StaticValue, Symbol

if TYPE_CHECKING:
    from archlang.tasks.kit.task import Task


def task_measures(binding: Binding, task: BoundExtern, train: BoundExtern, span: Span) -> Measures | None:
    """The measures of a recipe. None if the class of its task is outside of archlang; None, and a report, if the class
    refuses the statics of the task."""
    # Imported for files with recipes only: tasks import numpy.
    from archlang.tasks.kit.make_task import is_own
    from archlang.tasks.kit.metrics import WRITTEN_METRICS
    from archlang.tasks.kit.mistakes import TaskError
    from archlang.tasks.kit.task import DecodableTask, empty_splits, group_values, groups

    if not is_own(task.python) or not _is_sound(binding, task):
        return None
    try:
        instance = _instance(task.name, task.python, tuple(task.statics.items()))
    except TaskError as error:
        binding.report(mistakes.refused_by_task(span, error.message, error.remedy))
        return None
    own_metrics = _own_metrics(train.statics.get("metrics", ()))
    metrics = ("loss", *instance.metrics, *own_metrics)
    written = WRITTEN_METRICS if isinstance(instance, DecodableTask) else ()
    return Measures(
        task.name, _split_names(instance), (*metrics, *written), metrics, groups(instance), instance.breakdown,
        {split: group_values(instance, split) for split in _split_names(instance)}, instance.kind.form.name,
        empty_splits(instance) if _split_names(instance) else (),
        _taken(own_metrics, ("loss", *instance.metrics, *WRITTEN_METRICS)),
    )  # fmt: skip


@lru_cache(maxsize=64)  # the points of a table share their tasks, and some classes count their items
def _instance(name: str, python: str, statics: tuple[tuple[str, StaticValue], ...]) -> Task:
    from archlang.tasks.kit.make_task import make_task, unchecked_task

    try:
        return make_task(name, python, dict(statics))
    except ModuleNotFoundError as error:
        if error.name != "numpy":
            raise
        return unchecked_task(name, python, dict(statics))


def _is_sound(binding: Binding, task: BoundExtern) -> bool:
    """Whether every static has a value and every condition of the signature holds; the others were reported."""
    conditions = binding.declaration.item.signature.where
    return len(task.statics) == len(binding.parameters) and all(map(binding.evaluator.truth, conditions))


def _split_names(instance: Task) -> tuple[str, ...]:
    reads_files = any(getattr(instance, "files", tuple)())
    return () if reads_files else instance.split_names()


def _taken(own: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """The names that one of `others` has, or a second one of `own`, each once."""
    return tuple(name for name in dict.fromkeys(own) if name in others or own.count(name) > 1)


def _own_metrics(names: StaticValue) -> tuple[str, ...]:
    """The names of the functions that `train.metrics` lists, each after its file."""
    listed = names if isinstance(names, tuple) else ()
    return tuple(name.text.rpartition(".")[2] for name in listed if isinstance(name, Symbol) and "." in name.text)
