"""Limits the work of a check. Work is counted in steps, so a program reaches the limit at the same place each time."""

import sys
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Generic, TypeVar

Result = TypeVar("Result")


class TooMuchWork(Exception):
    """The innermost `limited` has no steps left."""


@dataclass
class Budget:
    """The limit of steps, and the steps spent so far. `needs_costs` if the graphs are drawn, or their costs counted."""

    steps: int
    needs_costs: bool = False
    spent: int = 0


_budget: ContextVar[Budget | None] = ContextVar("budget", default=None)


@contextmanager
def limited(steps: int, needs_costs: bool = False) -> Iterator[Budget]:
    """Limits the steps of the code inside; they do not count in an outer `limited`. `needs_costs` as of `Budget`."""
    budget = Budget(steps, needs_costs)
    token = _budget.set(budget)
    try:
        yield budget
    finally:
        _budget.reset(token)


@contextmanager
def unlimited() -> Iterator[None]:
    """Does not count the steps of the code inside, which were counted when it ran before."""
    budget = _budget.get()
    token = _budget.set(budget and Budget(sys.maxsize, budget.needs_costs))
    try:
        yield
    finally:
        _budget.reset(token)


def is_check() -> bool:
    """Whether a program is only checked: steps are counted, and nothing is made of its graphs."""
    budget = _budget.get()
    return budget is not None and not budget.needs_costs


def is_limited() -> bool:
    """Whether steps are counted."""
    return _budget.get() is not None


def spent() -> int:
    """Returns the steps spent in the innermost `limited`; 0 outside of any."""
    budget = _budget.get()
    return 0 if budget is None else budget.spent


def spend(steps: int = 1) -> None:
    """Counts steps; a step is about the evaluation of a small expression. Outside of `limited`, does nothing.

    Raises:
        TooMuchWork: the limit is exceeded."""
    budget = _budget.get()
    if budget is not None:
        budget.spent += steps
        if budget.spent > budget.steps:
            raise TooMuchWork


class Memo(Generic[Result]):
    """Results by key, each computed once. A known result counts the steps of its computation again, so that a limit is
    reached at the same place as without the memo."""

    def __init__(self) -> None:
        self._results: dict[Hashable, tuple[Result, int]] = {}

    def get(self, key: Hashable, compute: Callable[[], Result]) -> Result:
        """Returns the result of a key, and computes an unknown one.

        Raises:
            TooMuchWork: the limit is exceeded."""
        if key in self._results:
            result, steps = self._results[key]
            spend(steps)
            return result
        before = spent()
        result = compute()
        self._results[key] = result, spent() - before
        return result
