"""Work is counted only inside a limit."""

import pytest

from archlang.errors import Diagnostic
from archlang.errors.effort import Memo, TooMuchWork, limited, spend
from archlang.errors.source import on_command_line


def test_exceeding_the_limit_raises() -> None:
    with limited(3) as budget:
        spend(2)
        spend()
        assert budget.spent == 3
        with pytest.raises(TooMuchWork):
            spend()


def test_outside_of_a_limit_nothing_is_counted() -> None:
    spend(10**9)
    with limited(1):
        pass
    spend(10**9)


def test_an_inner_limit_does_not_count_in_the_outer_one() -> None:
    with limited(1) as outer:
        with limited(5):
            spend(5)
        assert outer.spent == 0
        spend()


def test_an_exception_ends_a_limit() -> None:
    with pytest.raises(TooMuchWork), limited(0):
        spend()
    spend()


def test_a_known_result_takes_no_steps() -> None:
    memo = Memo[str]()

    def compute() -> str:
        spend(3)
        return "result"

    with limited(5) as budget:
        assert memo.get("key", compute) == memo.get("key", compute) == "result"
        assert budget.spent == 3


def test_a_memo_keeps_the_results_that_were_asked_last() -> None:
    memo = Memo[int](most=2)
    assert [memo.get(key, lambda: 2) for key in (0, 1, 0, 2)] == [2, 2, 2, 2]
    assert [memo.get(key, lambda: 3) for key in (2, 0, 1)] == [2, 2, 3]


def mistaken() -> int:
    Diagnostic("E0201", "unknown", on_command_line("x"))
    return 1


def test_nothing_with_a_mistake_or_without_a_key_is_kept() -> None:
    for memo, outcomes in ((Memo[int](), [1, 2]), (Memo[int](keeps_all=True), [1, 1])):
        assert [memo.get("key", mistaken), memo.get("key", lambda: 2)] == outcomes
        assert [memo.get(None, lambda: 1), memo.get(None, lambda: 2)] == [1, 2]


def test_a_result_of_one_with_a_mistake_is_not_kept_either() -> None:
    inner, outer = Memo[int](keeps_all=True), Memo[int]()
    inner.get("key", mistaken)
    assert outer.get("key", lambda: inner.get("key", lambda: 2)) == 1
    assert outer.get("key", lambda: 3) == 3
