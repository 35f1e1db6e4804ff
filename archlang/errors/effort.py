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
    """Does not count the steps of the code inside."""
    budget = _budget.get()
    token = _budget.set(budget and Budget(sys.maxsize, budget.needs_costs))
    try:
        yield
    finally:
        _budget.reset(token)


def is_check() -> bool:
    """Whether a program is only checked: steps are counted, and its graphs are discarded."""
    budget = _budget.get()
    return budget is not None and not budget.needs_costs


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
    """Results by their content as a key, each computed once. A known result takes no steps. Beyond `most` results, all
    are forgotten."""

    def __init__(self, most: int = 10_000) -> None:
        self._most = most
        self._results: dict[Hashable, Result] = {}

    def get(
        self, key: Hashable, compute: Callable[[], Result], keeps: Callable[[Result], bool] = lambda result: True
    ) -> Result:
        """Returns the result of a key; computes an unknown one, and keeps it if `keeps` says so."""
        if key in self._results:
            return self._results[key]
        result = compute()
        if keeps(result):
            if len(self._results) >= self._most:
                self._results.clear()
            self._results[key] = result
        return result
