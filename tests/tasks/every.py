"""Helpers for tests over all tasks of the folder, in small sizes."""

import importlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from operator import add, eq, lt, mul, sub
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pytest

import archlang.tasks
from archlang.errors import ArchlangError
from archlang.plan.from_file import bind_task
from archlang.resolve import library
from archlang.syntax import tree
from archlang.tasks.kit.drawing import RandomStream
from archlang.tasks.kit.make_task import make_task
from archlang.tasks.kit.pages import PageTask, page_class
from archlang.tasks.kit.split import Integers, Ragged, Split
from archlang.tasks.kit.task import ShippedTask, Task
from archlang.types.statics import Interval

Shipped = TypeVar("Shipped", bound=ShippedTask)
FOLDER = Path(archlang.tasks.__file__).parent
NAMES = sorted(path.stem for path in FOLDER.glob("*.arch"))
# Statics that make a task small; those that are not here are small already, or read files.
SMALL: dict[str, dict[str, object]] = {
    "argsort": {"train_size": 50, "valid_size": 5, "test_size": 5},
    "in_context_regression": {"train_size": 50, "valid_size": 5, "test_size": 5},
    "sudoku": {
        "side": 4, "train": Interval(3, 6), "test": Interval(7, 9), "puzzles": 20, "train_size": 50, "valid_size": 5,
        "test_size": 5,
    },
    "maze": {"train_size": 50, "valid_size": 5, "test_size": 5},
    "graph_distance": {"train_size": 50, "valid_size": 5, "test_size": 5},
    "listops": {"train_size": 50, "test_size": 2, "valid_size": 10},
    "flipflop": {"train_size": 5, "iid_size": 5, "valid_size": 5, "test_size": 5},
    "logical_inference": {"draws": 500},
    "copy": {"train_size": 5},
    "reverse": {"train_size": 5},
    "mix": {"train_size": 5},
    "dynamic_recall": {"train_size": 5},
    "priority_sort": {"train_size": 5},
    "id_sort": {"train_size": 5},
    "dyck": {"train_size": 50, "valid_size": 5},
    "arithmetic": {"train_size": 220, "iid_size": 5},
    "mqar": {"train_size": 5, "valid_size": 5, "test_size": 5},
    "mqar_variants": {"train_size": 5, "more_size": 5, "valid_size": 5, "test_size": 5},
    "parity": {"train_size": 50},
    **{
        name: {"train_size": 50, "valid_size": 30, "test_size": 30}
        for name in (
            "even_pairs", "cycle_navigation", "reverse_string", "duplicate_string", "odds_first",
            "missing_duplicate_string", "binary_addition", "binary_multiplication", "compute_sqrt",
            "modular_arithmetic_brackets", "addition", "set_complement", "phone_book", "n_gram_lookup",
            "multiplication", "lego", "in_context_recall", "fuzzy_in_context_recall", "compression", "memorization",
            "mano", "depo", "brevo", "regbench", "shortest_paths", "coupled_addition", "countdown",
        )
    },
    "selective_copying": {"train_size": 50, "valid_size": 5, "test_size": 5},
    "automaton": {"train_size": 50, "valid_size": 5, "test_size": 5},
    "word_problem": {"train_size": 50, "valid_size": 5, "test_size": 5},
    "modular_arithmetic": {"train_size": 50},
    "bucket_sort": {"train_size": 50},
    "stack_manipulation": {"train_size": 50},
    "mathematics": {"draws": 200, "test_size": 20},
    # All twenty have repeated questions: the stories of task 4 are short.
    "babi": {"tasks": Interval(1, 2)},
    "pcfg": {"train_size": 50, "iid_size": 20, "test_size": 20},
    "shapes": {"train_size": 50, "valid_size": 5, "test_size": 5},
    "lra_pathfinder": {"train_size": 6, "valid_size": 3, "test_size": 3},
}  # fmt: skip


class Drawn(RandomStream):
    """A stream of the given numbers: one list for each draw."""

    def __init__(self, *numbers: list[int]) -> None:
        super().__init__("given")
        self._numbers = list(numbers)

    def below(self, bound: object, shape: object) -> Integers:
        return np.array(self._numbers.pop(0), dtype=np.int64)


# Any: numbers and texts
OPERATORS: Mapping[str, Callable[[Any, Any], object]] = {
    "+": add,
    "-": sub,
    "*": mul,
    "==": eq,
    "<": lt,
}  # Any: numbers, texts


def signature(name: str) -> tree.Extern:
    item = library.task(name)
    assert item is not None
    return item


def page(name: str) -> type[PageTask]:
    """Returns the class of a shipped task that is a page."""
    task_class = page_class(name)
    assert task_class is not None
    return task_class


def value(expression: tree.Expression | None, statics: Mapping[str, object]) -> object:
    match expression:
        case tree.Unary(operator="-", operand=tree.Number(value=number)):
            return -number
        case tree.Number(value=known) | tree.Boolean(value=known):
            return known
        case tree.String(value=text):
            return text
        case tree.Name():
            return statics.get(expression.text, expression.text)
        case tree.ListOf(items=items):
            return tuple(value(item, statics) for item in items)
        case tree.Range(low=low, high=high):
            ends = value(low, statics), value(high, statics)
            return Interval(*ends)  # type: ignore[arg-type] # both are numbers
        case tree.Conditional(then=then, test=test, otherwise=otherwise):
            return value(then if value(test, statics) else otherwise, statics)
        case tree.Binary(operator=operator, left=left, right=right):
            return OPERATORS[operator](value(left, statics), value(right, statics))
    raise AssertionError(expression)


def gives(name: str, statics: Mapping[str, object]) -> dict[str, int]:
    """The sizes that a signature gives; the page of a task lists words."""

    def size(given: object) -> int:
        if isinstance(given, tuple):
            return sum(len(part.values()) if isinstance(part, Interval) else 1 for part in given)
        assert isinstance(given, int)
        return given

    return {str(clause.name): size(value(clause.value, statics)) for clause in signature(name).gives}


def build(name: str, **statics: object) -> Task:
    module, _, attribute = signature(name).python.partition(":")
    task_class: Any = page_class(name) or getattr(importlib.import_module(module), attribute)
    # Without a path, which `where` requires, a task over files of the user's own knows its default splits.
    is_without_file = name.startswith(("file", "text")) and "path" not in statics
    task: Task = task_class.unchecked(**statics) if is_without_file else task_class(**statics)
    return task


def task_of(text: str) -> Task:
    """Returns the task that a recipe writes as this text."""
    bound = bind_task(text)
    return make_task(bound.name, bound.python, bound.statics)


def vars_of(task: Task | ShippedTask) -> dict[str, object]:
    assert isinstance(task, ShippedTask)
    if isinstance(task, PageTask):
        return dict(task.statics)
    return {static.name: getattr(task, static.name) for static in signature(task.name).signature.statics}


def replace(task: Shipped, **statics: object) -> Shipped:
    """Returns the task with other statics."""
    return type(task)(**{**vars_of(task), **statics})


@cache
def _generated(task: Any, split: str, seed: int) -> Split:  # Any: a shipped task, which alone can be hashed
    items: Split = task.generate(split, seed)
    return items


def generated(task: Any, split: str, seed: int = 0) -> Split:  # Any: as above
    return _generated(task, split, seed)


@cache
def words_of(task: Any, split: str, seed: int = 0, field: str = "x") -> list[tuple[str, ...]]:  # Any: as above
    """Returns the words of each item of a generated split."""
    x = generated(task, split, seed).inputs[field]
    words = [task.vocabulary[token] for token in x.values.tolist()]
    return [tuple(words[start:stop]) for start, stop in pairwise(x.offsets.tolist())]


def rows_of(ragged: Ragged) -> list[list[int]]:
    return [ragged[index].tolist() for index in range(len(ragged))]


def answers_of(split: Split) -> Ragged:
    """Returns the answers at the positions of each item."""
    assert isinstance(split.targets, Ragged)
    return split.targets


def marks_of(split: Split) -> Ragged:
    """Returns which positions of each item are scored."""
    assert split.scored is not None
    return split.scored


@contextmanager
def skipping() -> Iterator[None]:
    """Skips the test if files are missing; raises every other error."""
    try:
        yield
    except ArchlangError as error:
        if "is missing" not in str(error):
            raise
        pytest.skip(str(error))


def items_of(task: Task, split: str) -> Split:
    """Returns a split; skips the test if the task reads missing files."""
    with skipping():
        return _with_file(task).generate(split, 0)


def vocabulary_of(task: Task) -> tuple[str, ...]:
    """Returns the vocabulary; skips the test if the task reads missing files."""
    with skipping():
        return _with_file(task).vocabulary


def _with_file(task: Task) -> Task:
    return task if getattr(task, "path", None) != "" else pytest.skip("it reads a file of the user's own")
