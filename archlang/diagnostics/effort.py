"""Limits the work of a check. Work is counted in steps, so a program reaches the limit at the same place each time."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


class TooMuchWork(Exception):
    """The innermost `limited` has no steps left."""


@dataclass
class Budget:
    """The limit of steps, and the steps spent so far."""

    steps: int
    spent: int = 0


_budget: ContextVar[Budget | None] = ContextVar("budget", default=None)


@contextmanager
def limited(steps: int) -> Iterator[Budget]:
    """Limits the steps of the code inside; they do not count in an outer `limited`."""
    budget = Budget(steps)
    token = _budget.set(budget)
    try:
        yield budget
    finally:
        _budget.reset(token)


def is_limited() -> bool:
    """Whether steps are counted: a program is checked, and nothing is built from its graphs."""
    return _budget.get() is not None


def spend(steps: int = 1) -> None:
    """Counts steps; a step is about the evaluation of a small expression. Outside of `limited`, does nothing.

    Raises:
        TooMuchWork: the limit is exceeded."""
    budget = _budget.get()
    if budget is not None:
        budget.spent += steps
        if budget.spent > budget.steps:
            raise TooMuchWork
