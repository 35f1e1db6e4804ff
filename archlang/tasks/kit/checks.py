"""Checks of statics and split names that many tasks share."""

from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass
from itertools import combinations

from archlang.tasks.kit import mistakes
from archlang.types.statics import Interval


def check_split(task: str, split: str, possible: Collection[str]) -> None:
    """Raises TaskError if the task has no split of this name."""
    if split not in possible:
        raise mistakes.unknown_split(task, split, tuple(possible))


def check_choice(task: str, static: str, value: str, possible: Collection[str]) -> None:
    """Raises TaskError if the static is none of the possible words."""
    if value not in possible:
        raise mistakes.unknown_choice(task, static, value, tuple(possible))


def check_bounds(task: str, static: str, value: float, low: float, high: float | None = None) -> None:
    """Raises TaskError if the number is below `low` or above `high`."""
    # Written so that NaN is out of bounds too.
    if not (low <= value and (high is None or value <= high)):
        raise mistakes.outside(task, static, value, low, high)


def check_sizes(task: str, statics: object) -> None:
    """Raises TaskError if a static of this task, a dataclass, has a name that ends in `_size` and is negative."""
    assert is_dataclass(statics)
    for static in fields(statics):
        if static.name.endswith("_size"):
            check_bounds(task, static.name, getattr(statics, static.name), 0)


def check_available(task: str, statics: object, available: Mapping[str, int], remedy: str) -> None:
    """Raises TaskError, which names all of them, if statics of this task are above the numbers of items that there are;
    `remedy` says what makes more."""
    sizes = {static: (size, most) for static, most in available.items() if (size := getattr(statics, static)) > most}
    if sizes:
        raise mistakes.too_many_items(task, sizes, remedy)


def check_share(task: str, static: str, value: float) -> None:
    """Raises TaskError if the number is not between 0 and 1, both excluded."""
    if not 0 < value < 1:
        raise mistakes.outside(task, static, value, 0, 1)


def check_range(task: str, static: str, interval: Interval, low: int, high: int) -> None:
    """Raises TaskError if the range is empty or leaves `low`..`high`."""
    if not low <= interval.low <= interval.high <= high:
        raise mistakes.range_out_of_bounds(task, static, interval, low, high)


def check_ranges(task: str, ranges: Mapping[str, Interval], low: int, high: int) -> None:
    """Raises TaskError if a range is empty, leaves `low`..`high`, or has a number in common with another one."""
    for static, interval in ranges.items():
        check_range(task, static, interval, low, high)
    for (first, first_range), (second, second_range) in combinations(ranges.items(), 2):
        if first_range.low <= second_range.high and second_range.low <= first_range.high:
            raise mistakes.ranges_overlap(task, first, first_range, second, second_range)


def check_lengths(task: str, ranges: Mapping[str, Interval], test: tuple[int, ...], low: int, high: int) -> None:
    """Raises TaskError if `test` is empty, or one of its lengths is not in `low`..`high`, is in one of the ranges, or
    is listed twice."""
    if not test:
        raise mistakes.empty_list("test")
    for index, length in enumerate(test):
        if not isinstance(length, int) or isinstance(length, bool):
            raise mistakes.not_of_kind("test", length, "whole number")
        check_bounds(task, "test", length, low, high)
        if length in test[:index]:
            raise mistakes.repeated_value("test", length)
        for static, lengths in ranges.items():
            if lengths.low <= length <= lengths.high:
                raise mistakes.ranges_overlap(task, static, lengths, "test", length)
