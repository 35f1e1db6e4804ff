"""Work is counted only inside a limit."""

import pytest

from archlang.errors.effort import Memo, TooMuchWork, limited, spend, unlimited


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


def test_a_known_result_takes_no_steps() -> None:
    memo = Memo[str]()

    def first() -> str:
        spend(3)
        return "first"

    with limited(3) as budget:
        assert memo.get("key", first) == memo.get("key", first) == "first"
        assert budget.spent == 3


def test_a_memo_keeps_what_it_is_told_to_and_a_limited_number() -> None:
    memo = Memo[int](most=2)
    assert memo.get(0, lambda: 1, keeps=lambda _: False) == 1
    assert [memo.get(key, lambda: 2) for key in range(3)] == [2, 2, 2]
    assert [memo.get(key, lambda: 3) for key in (2, 0)] == [2, 3]  # the third has made the others forgotten
