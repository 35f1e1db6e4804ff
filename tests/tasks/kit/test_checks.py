"""Checks of statics and split names."""

from dataclasses import dataclass

import pytest

from archlang.tasks.kit.checks import (
    check_bounds,
    check_choice,
    check_range,
    check_ranges,
    check_share,
    check_sizes,
    check_split,
)
from archlang.tasks.kit.mistakes import TaskError
from archlang.types.statics import Interval


@dataclass
class Statics:
    train_size: int = 0
    share: float = -1.0
    test_size: int = 0


def test_valid_statics_pass() -> None:
    check_split("t", "train", ("train", "test"))
    check_choice("t", "by", "words", {"words": 1})
    check_bounds("t", "size", 3, 3, 3)
    check_bounds("t", "size", 10**9, 0)
    check_sizes("t", Statics())
    check_share("t", "share", 0.5)
    check_ranges("t", {"train": Interval(1, 4), "test": Interval(5, 9)}, 1, 9)


def test_the_errors_name_the_allowed_values() -> None:
    with pytest.raises(TaskError, match="t has no split `valid`: its splits are train, test"):
        check_split("t", "valid", ("train", "test"))
    with pytest.raises(TaskError, match="by = lines is not a valid value for t: write one of words, characters"):
        check_choice("t", "by", "lines", ("words", "characters"))
    with pytest.raises(TaskError, match="test_size = -1 is out of bounds for t: choose a number of at least 0"):
        check_sizes("t", Statics(test_size=-1))


@pytest.mark.parametrize("value", [2, 6, float("nan")])
def test_numbers_outside_of_the_bounds_are_refused(value: float) -> None:
    with pytest.raises(TaskError, match="choose a number between 3 and 5"):
        check_bounds("t", "size", value, 3, 5)


@pytest.mark.parametrize("share", [0, 1, float("nan")])
def test_a_share_excludes_zero_and_one(share: float) -> None:
    with pytest.raises(TaskError, match="choose a number between 0 and 1"):
        check_share("t", "share", share)


@pytest.mark.parametrize("interval", [Interval(0, 4), Interval(4, 10), Interval(5, 4)])
def test_empty_ranges_and_ranges_outside_of_the_bounds_are_refused(interval: Interval) -> None:
    with pytest.raises(TaskError, match=r"choose a range inside 1\.\.9"):
        check_range("t", "train", interval, 1, 9)


def test_overlapping_ranges_are_refused() -> None:
    with pytest.raises(TaskError, match=r"valid = 3..5 and test = 5..9 of t overlap"):
        check_ranges("t", {"train": Interval(1, 2), "valid": Interval(3, 5), "test": Interval(5, 9)}, 1, 9)
