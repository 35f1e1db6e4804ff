"""Limits the work of a check, and keeps what was computed. Each item of a program has a limit of its size, but many
together, and calls within calls, have none; so a check counts steps, which end it at the same place on any machine."""

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
    """The limit of steps, and the steps spent so far. `needs_costs` if the graphs are drawn, or their costs counted."""

    steps: int
    needs_costs: bool
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


def is_check() -> bool:
    """Whether a program is only checked: steps are counted, and its graphs are discarded."""
    budget = _budget.get()
    return budget is not None and not budget.needs_costs


@contextmanager
def with_costs(needed: bool) -> Iterator[None]:
    """Graphs that are made inside have their costs, if they are needed; steps count as outside."""
    budget = _budget.get() or Budget(0, needs_costs=True)
    before, budget.needs_costs = budget.needs_costs, budget.needs_costs or needed
    try:
        yield
    finally:
        budget.needs_costs = before


def spend(steps: int = 1) -> None:
    """Counts steps; a step is about the evaluation of a small expression. Outside of `limited`, nothing is counted.

    Raises:
        TooMuchWork: the limit is exceeded."""
    budget = _budget.get()
    if budget is not None:
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
    """Results by their content as a key. A known result takes no steps. The `most` results that were used last are
    kept, except those that `keep_nothing` is about; with `keeps_all`, those too, if the memo lives no longer than the
    log of its mistakes."""

    def __init__(self, most: int = 10_000, *, keeps_all: bool = False) -> None:
        self._most, self._keeps_all = most, keeps_all
        self._results: dict[Hashable, tuple[Result, bool]] = {}

    def get(self, key: Hashable, compute: Callable[[], Result]) -> Result:
        """Returns the result of a key; computes an unknown one. A result of the key None is not kept."""
        entry = self._results.pop(key, None)
        if entry is None:
            unkept = _unkept
            entry = compute(), unkept == _unkept
        elif not entry[1]:
            keep_nothing()
        result, is_content = entry
        if key is not None and (is_content or self._keeps_all):
            self._results[key] = entry  # as the last one
            if len(self._results) > self._most:
                self._results.pop(next(iter(self._results)), None)
        return result

    def clear(self) -> None:
        self._results.clear()


_memo = Memo[object](most=50_000)
# A graph has at most 20,000 values, so these take about as much memory as the texts of an editor.
_graphs = Memo[object](most=500)


def memoized(key: Hashable, compute: Callable[[], Result], *, is_graph: bool = False) -> Result:
    """Returns what `compute` returns, from the memo of this process if it was computed before. The key begins with the
    name of what is computed, and has all that it depends on; None is nothing that is kept."""
    return cast(Result, (_graphs if is_graph else _memo).get(key, compute))


def forget() -> None:
    """Empties the memo of this process."""
    _memo.clear()
    _graphs.clear()
