"""The work that a check may take, counted in steps, so that the same program meets the limit at the same place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


class TooMuchWork(Exception):
    """The steps of the innermost `limited` are used up."""


@dataclass
class Budget:
    """Steps that may be spent, and those that are."""

    steps: int
    spent: int = 0


_budget: ContextVar[Budget | None] = ContextVar("budget", default=None)


@contextmanager
def limited(steps: int) -> Iterator[Budget]:
    """Lets the code inside spend so many steps; they are not taken from those of an outer `limited`."""
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
    """Counts steps, each of the size of a small expression. Outside of `limited` nothing is counted.

    Raises:
        TooMuchWork: more are spent than there are."""
    budget = _budget.get()
    if budget is not None:
        budget.spent += steps
        if budget.spent > budget.steps:
            raise TooMuchWork
