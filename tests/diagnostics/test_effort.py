"""Work is counted only inside a limit."""

import pytest

from archlang.diagnostics.effort import Memo, TooMuchWork, limited, spend, unlimited


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


def test_steps_that_were_counted_before_are_not_counted_again() -> None:
    with limited(1) as budget:
        with unlimited():
            spend(5)
        assert budget.spent == 0
        spend()
    with unlimited():
        spend()


def _first() -> str:
    spend(3)
    return "first"


def test_a_known_result_counts_its_steps_again() -> None:
    memo = Memo[str]()
    with limited(10) as budget:
        assert memo.get("key", _first) == "first"
        assert memo.get("key", lambda: "second") == "first"
        assert budget.spent == 6


def test_a_known_result_can_exceed_the_limit() -> None:
    memo = Memo[None]()
    with limited(5):
        memo.get("key", lambda: spend(3))
        with pytest.raises(TooMuchWork):
            memo.get("key", lambda: spend(3))
