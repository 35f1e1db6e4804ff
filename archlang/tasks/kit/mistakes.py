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


def vocabulary_not_published(task: str, found: int, published: int) -> TaskError:
    return TaskError(
        f"the files of {task} hold {found} different words, and those that were published hold {published}",
        "fetch the files again; other files of the same form can be read by the task `file`",
    )


# Published files


def damaged_line(dataset: str, member: str, number: int, text: str) -> TaskError:
    excerpt = text if len(text) <= 80 else f"{text[:77]}..."
    return TaskError(
        f"line {number} of {dataset}/{member} is malformed: {excerpt!r}",
        f"remove the file, and fetch it again with `archlang data get {dataset}`",
    )


def damaged_file(dataset: str, member: str, reason: object) -> TaskError:
    return TaskError(
        f"{member} of {dataset} is malformed ({reason})",
        f"remove the file, and fetch it again with `archlang data get {dataset}`",
    )


def uneven_files(dataset: str, first: str, first_count: int, second: str, second_count: int) -> TaskError:
    return TaskError(
        f"{first} of {dataset} has {first_count} lines and {second} has {second_count}; expected one line in {second} "
        f"for each line in {first}",
        f"remove both files, and fetch them again with `archlang data get {dataset}`",
    )


# Classes of a user's own


def foreign_task(task: str, python: str) -> TaskError:
    module = python.partition(":")[0]
    return TaskError(
        f"the task `{task}` is not one of archlang's: its class is `{python}`, and no Python of a program's own is run "
        "unasked",
        f"read {module}.py, and if you trust it, add `--plugin {module}.py`",
    )


def other_plugin(task: str, python: str, place: object) -> TaskError:
    module = python.partition(":")[0]
    return TaskError(f"the class of `{task}` is `{python}`, and not in {place}", f"name {module}.py after `--plugin`")


def no_plugin(place: object) -> TaskError:
    return TaskError(f"{place} is no Python file", "name the file after `--plugin` as it is seen from here")


def plugin_without_class(place: object, name: str) -> TaskError:
    return TaskError(f"{place} has no class `{name}`", "name it as the signature's `python` does")


def plugin_incomplete(place: object, name: str, missing: Sequence[str]) -> TaskError:
    return TaskError(
        f"the class `{name}` of {place} lacks {', '.join(missing)}",
        "see `archlang.tasks.kit.task.Task` for what a task has",
    )


def vocabulary_differs(task: str, written: int, found: int) -> TaskError:
    return TaskError(
        f"the signature of `{task}` gives vocab = {written}, and its class has {found} words",
        f"write `gives vocab = {found}`",
    )


def plugin_fails(place: object, reason: BaseException) -> TaskError:
    return TaskError(f"{place} does not work: {type(reason).__name__}: {reason}", "mend it, and try again")


# Files of a user's own


def no_path(task: str) -> TaskError:
    return TaskError(f"the path of `{task}` is missing", f'write `{task}[path = "words.tsv"]`')


def no_file(task: str, path: str) -> TaskError:
    return TaskError(
        f"{path} is missing, or is no plain file",
        f"put the file of `{task}` there; a path is seen from the folder of the program",
    )


def unreadable_file(path: str) -> TaskError:
    return TaskError(f"{path} cannot be read or unpacked", "see who owns it, and whether it is whole")


def not_text(path: str) -> TaskError:
    return TaskError(f"{path} is not text in UTF-8", "save it as UTF-8")


def unknown_form(path: str) -> TaskError:
    return TaskError(f"{path} is neither TSV nor JSONL", "let its name end in .tsv or .jsonl; .gz or .xz may follow")


def bad_line(path: str, number: int, reason: str) -> TaskError:
    return TaskError(f"line {number} of {path}: {reason}", "mend the line; `archlang tasks file` says what a file has")


def splits_twice(path: str) -> TaskError:
    return TaskError(
        f"{path} has a column `split`, and further files are named too",
        "take `valid` and `test` out of the recipe, or the column out of the file",
    )


def no_training_lines(path: str) -> TaskError:
    return TaskError(f"no line of {path} is for training", "write `train` in the column `split` of those that are")


def too_many_labels(task: str, asked: int, found: int) -> TaskError:
    return TaskError(
        f"labels = {asked} is too small for {task}, whose training split holds {found} different labels",
        f"write labels = {found}, or more",
    )
