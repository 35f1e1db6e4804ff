"""Limits the work of a check, and keeps what was computed. Work is counted in steps, so a program reaches the limit at
the same place each time."""

import sys
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

Result = TypeVar("Result")


class TooMuchWork(Exception):
    """The innermost `limited` has no steps left."""


@dataclass
class Budget:
    """The limit of steps, and the steps spent so far. `needs_costs` if the graphs are drawn, or their costs counted.
    `asked` are the known results that the result being computed has asked, with their memos."""

    steps: int
    needs_costs: bool = False
    spent: int = 0
    asked: set[object] | None = None


_budget: ContextVar[Budget | None] = ContextVar("budget", default=None)


def _current() -> Budget:
    budget = _budget.get()
    if budget is None:  # steps outside of `limited` count, too, because a memo may keep what takes them
        _budget.set(budget := Budget(sys.maxsize, needs_costs=True))
    return budget


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
    token = _budget.set(Budget(sys.maxsize, _current().needs_costs))
    try:
        yield
    finally:
        _budget.reset(token)


def is_check() -> bool:
    """Whether a program is only checked: steps are counted, and its graphs are discarded."""
    return not _current().needs_costs


@contextmanager
def with_costs(needed: bool) -> Iterator[None]:
    """Graphs that are made inside have their costs, if they are needed; steps count as outside."""
    budget = _current()
    before, budget.needs_costs = budget.needs_costs, budget.needs_costs or needed
    try:
        yield
    finally:
        budget.needs_costs = before


def spend(steps: int = 1) -> None:
    """Counts steps; a step is about the evaluation of a small expression. Outside of `limited`, nothing is limited.

    Raises:
        TooMuchWork: the limit is exceeded."""
    budget = _budget.get() or _current()
    budget.spent += steps
    if budget.spent > budget.steps:
        raise TooMuchWork


# Counts what no memo may keep. A count of all threads: of two at once, one keeps less than it might.
_unkept = 0


def keep_nothing() -> None:
    """Says that a result that is being computed depends on more than its key, as on the disk or on where a mistake is.
    Each new diagnostic says so."""
    global _unkept
    _unkept += 1


class Memo(Generic[Result]):
    """Results by their content as a key. A known result takes as many steps as when it was computed, once for each
    result that asks it, so the limits do not depend on what is known. The `most` results that were asked last are kept,
    except those that `keep_nothing` is about; with `keeps_all`, those too, if the memo lives no longer than the log of
    its mistakes."""

    def __init__(self, most: int = 10_000, *, keeps_all: bool = False) -> None:
        self._most, self._keeps_all = most, keeps_all
        self._results: dict[Hashable, tuple[Result, int, bool]] = {}

    def get(self, key: Hashable, compute: Callable[[], Result]) -> Result:
        """Returns the result of a key; computes an unknown one. A result of the key None is not kept."""
        budget = _current()
        mark, asked = (self, key), budget.asked
        entry = self._results.pop(key, None)
        if entry is not None:
            result, steps, is_content = entry
            if asked is not None and mark in asked:
                steps = 0
            # Beyond the limit, it is computed again, and meets the limit where it did.
            if budget.spent + steps <= budget.steps:
                self._results[key] = entry  # as the last one
                budget.spent += steps
                if asked is not None:
                    asked.add(mark)
                if not is_content:
                    keep_nothing()
                return result
        unkept, spent = _unkept, budget.spent
        budget.asked = set()
        try:
            result = compute()
        finally:
            budget.asked = asked
        is_content = unkept == _unkept
        if key is not None and (is_content or self._keeps_all):
            if asked is not None:
                asked.add(mark)
            self._results[key] = result, budget.spent - spent, is_content
            if len(self._results) > self._most:
                self._results.pop(next(iter(self._results)), None)
        return result

    def clear(self) -> None:
        self._results.clear()


_memo = Memo[object](most=50_000)


def memoized(key: Hashable, compute: Callable[[], Result]) -> Result:
    """Returns what `compute` returns, from the memo of this process if it was computed before. The key begins with the
    name of what is computed, and has all that it depends on; None is nothing that is kept."""
    return cast(Result, _memo.get(key, compute))


def forget() -> None:
    """Empties the memo of this process."""
    _memo.clear()
