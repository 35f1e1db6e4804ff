"""What can be wrong with the statics of a task, worded for the person who wrote them."""

from __future__ import annotations

from collections.abc import Sequence

from archlang.diagnostics import ArchlangError
from archlang.types.statics import Interval


class TaskError(ArchlangError):
    """A task that cannot be generated as asked: `message` says what is wrong, `remedy` what to write instead."""

    def __init__(self, message: str, remedy: str) -> None:
        self.message = message
        self.remedy = remedy
        super().__init__(f"{message}: {remedy}")


class CacheWarning(UserWarning):
    """The cache of generated splits could not help; the split itself is right."""


def unknown_split(task: str, split: str, known: Sequence[str]) -> TaskError:
    return TaskError(f"{task} has no split `{split}`", f"its splits are {', '.join(known)}")


def unknown_choice(task: str, static: str, found: str, known: Sequence[str]) -> TaskError:
    return TaskError(f"{static} = {found} means nothing to {task}", f"write one of {', '.join(known)}")


def outside(task: str, static: str, found: int | float, low: int | float, high: int | float | None) -> TaskError:
    where = f"at least {low}" if high is None else f"between {low} and {high}"
    return TaskError(f"{static} = {found} is out of bounds for {task}", f"choose a number {where}")


def negative_seed(seed: int) -> TaskError:
    return TaskError(f"the seed is {seed}", "choose a seed of 0 or more")


def ranges_overlap(task: str, first: str, first_range: object, second: str, second_range: object) -> TaskError:
    return TaskError(
        f"{first} = {first_range} and {second} = {second_range} of {task} overlap, so they could hold the same items",
        "choose ranges that have no number in common",
    )


def range_out_of_bounds(task: str, static: str, found: Interval, low: int, high: int) -> TaskError:
    return TaskError(f"{static} = {found} is out of bounds for {task}", f"choose a range inside {low}..{high}")


def too_many_items(task: str, static: str, asked: int, available: int, widen: str) -> TaskError:
    return TaskError(
        f"{static} = {asked} asks {task} for more distinct items than the {available} that exist",
        f"ask for at most {available}, or {widen}",
    )


def too_few_for_singles(task: str, asked: int, needed: int) -> TaskError:
    return TaskError(
        f"train_size = {asked} leaves no room for the {needed} single applications that {task} always trains on",
        f"ask for at least {needed}, or start `train` at 2",
    )


def items_too_rare(task: str, static: str, asked: int, found: int, widen: str) -> TaskError:
    return TaskError(
        f"{static} = {asked} asks {task} for more than it can draw: only {found} came up before it gave up",
        f"ask for fewer, or {widen}",
    )


def odd_length(static: str, found: int) -> TaskError:
    return TaskError(
        f"{static} has the odd length {found}, and a flip-flop sequence is made of pairs", "choose an even length"
    )


def not_whole_percent(static: str, found: float) -> TaskError:
    return TaskError(
        f"{static} has {found}, and results are reported by whole per cent",
        "round it to two decimals",
    )


def empty_list(static: str) -> TaskError:
    return TaskError(f"{static} is empty", "name at least one value")


def repeated_value(static: str, found: object) -> TaskError:
    return TaskError(f"{static} names {found} twice", "name each value once")


def not_of_kind(static: str, found: object, kind: str) -> TaskError:
    return TaskError(f"{static} has {found}, which is no {kind}", f"write a {kind}")


def probabilities_too_large(task: str, statics: Sequence[str], found: float) -> TaskError:
    return TaskError(
        f"the probabilities {' and '.join(statics)} of {task} add up to {found}",
        "choose them so that less than 1 is used",
    )


def grows_for_ever(task: str, what: str, found: float) -> TaskError:
    return TaskError(
        f"{what} of {task} is {found}, so that most of what it draws would never end",
        "choose them so that it is 1 or less",
    )


def lists_differ(task: str, first: str, count: int, second: str, other: int) -> TaskError:
    return TaskError(
        f"{first} of {task} has {count} values, and {second} has {other}", "write as many in both: they go together"
    )


def vocabulary_too_small(task: str, static: str, asked: int, needed: int) -> TaskError:
    return TaskError(
        f"{static} = {asked} is too small for {task}, whose files hold {needed} different words",
        f"write {static} = {needed}, or more",
    )
