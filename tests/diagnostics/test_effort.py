"""Work is counted only inside a limit."""

import pytest

from archlang.diagnostics.effort import TooMuchWork, limited, spend


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
