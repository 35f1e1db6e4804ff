"""The errors of tasks: their statics, their files, and users' own classes."""

from collections.abc import Mapping, Sequence

from archlang.diagnostics import ErrorWithRemedy
from archlang.types.statics import Interval


class TaskError(ErrorWithRemedy):
    """A task that cannot be generated."""


class CacheWarning(UserWarning):
    """The cache of generated splits failed; the returned split is correct."""


def unknown_split(task: str, split: str, possible: Sequence[str]) -> TaskError:
    return TaskError(f"{task} has no split `{split}`", f"its splits are {', '.join(possible)}")


def outside(task: str, static: str, value: int | float, low: int | float, high: int | float | None) -> TaskError:
    bounds = f"of at least {low}" if high is None else f"between {low} and {high}"
    return TaskError(f"{static} = {value} is out of bounds for {task}", f"choose a number {bounds}")


def negative_seed(seed: int) -> TaskError:
    return TaskError(f"the seed is {seed}", "choose a seed of 0 or more")


def ranges_overlap(task: str, first: str, first_range: object, second: str, second_range: object) -> TaskError:
    message = f"{first} = {first_range} and {second} = {second_range} of {task} overlap, so splits could share items"
    return TaskError(message, "choose disjoint ranges")


def range_out_of_bounds(task: str, static: str, interval: Interval, low: int, high: int) -> TaskError:
    return TaskError(f"{static} = {interval} is out of bounds for {task}", f"choose a range inside {low}..{high}")


def no_even_number(static: str, interval: Interval) -> TaskError:
    return TaskError(f"{static} = {interval} has no even number", "choose a range with an even number")


def too_many_items(task: str, sizes: Mapping[str, tuple[int, int]], remedy: str) -> TaskError:
    """`sizes` are the statics that are too large, each with its value and the number of items that there are."""
    written = _joined([f"{static} = {size}" for static, (size, _) in sizes.items()])
    possible = _joined([f"{static} = {most}" for static, (_, most) in sizes.items()])
    (_, first), *others = sizes.values()
    message = f"{written} are more than the" if others else f"{written} is more than the {first}"
    return TaskError(f"{message} distinct items of {task}", f"write {possible} or less, or {remedy}")


def _joined(parts: Sequence[str]) -> str:
    return " and ".join(part for part in (", ".join(parts[:-1]), parts[-1]) if part)


def too_few_for_singles(task: str, size: int, required: int) -> TaskError:
    message = f"train_size = {size} is less than the {required} single applications that {task} always trains on"
    return TaskError(message, f"write train_size = {required} or more, or begin `train` at 2")


def items_too_rare(task: str, static: str, size: int, drawn: int, remedy: str) -> TaskError:
    message = f"{static} = {size} is more than {task} can draw: it stopped at {drawn} distinct items"
    return TaskError(message, f"choose a smaller {static}, or {remedy}")


def odd_length(static: str, length: int) -> TaskError:
    message = f"{static} has the odd length {length}, and a flip-flop sequence consists of pairs"
    return TaskError(message, "choose an even length")


def not_whole_percent(static: str, value: float) -> TaskError:
    return TaskError(f"{static} has {value}, and results are reported by whole per cent", "round it to two decimals")


def repeated_value(static: str, value: object) -> TaskError:
    return TaskError(f"{static} names {value} twice", "name each value once")


def not_of_kind(static: str, value: object, kind: str) -> TaskError:
    return TaskError(f"{static} has {value}, which is not a {kind}", f"write a {kind}")


def lists_differ(task: str, first: str, first_count: int, second: str, second_count: int) -> TaskError:
    message = f"{first} of {task} has {first_count} values, and {second} has {second_count}"
    return TaskError(message, "write the same number of values in both")


def vocabulary_too_small(task: str, static: str, size: int, required: int) -> TaskError:
    message = f"{static} = {size} is too small for {task}, whose files have {required} different words"
    return TaskError(message, f"write {static} = {required} or more")


def vocabulary_not_published(task: str, size: int, published: int) -> TaskError:
    message = f"the files of {task} have {size} different words, and the published files have {published}"
    return TaskError(message, "fetch the files again; the task `file` reads other files of the same format")


# Published files


def damaged_line(dataset: str, member: str, number: int, text: str) -> TaskError:
    excerpt = text if len(text) <= 80 else f"{text[:77]}..."
    message = f"line {number} of {dataset}/{member} is malformed: {excerpt!r}"
    return TaskError(message, f"remove the file, and fetch it again with `archlang data get {dataset}`")


def damaged_file(dataset: str, member: str, reason: object) -> TaskError:
    message = f"{member} of {dataset} is malformed ({reason})"
    return TaskError(message, f"remove the file, and fetch it again with `archlang data get {dataset}`")


def uneven_files(dataset: str, first: str, first_count: int, second: str, second_count: int) -> TaskError:
    return TaskError(
        f"{first} of {dataset} has {first_count} lines and {second} has {second_count}; expected one line in {second} "
        f"for each line in {first}",
        f"remove both files, and fetch them again with `archlang data get {dataset}`",
    )


# A user's own classes


def no_class(task: str, python: str) -> TaskError:
    message = f"the task `{task}` names `{python}`, which is not the class of a task"
    return TaskError(message, "correct `python` of its signature")


def incomplete(task: str, python: str, missing: Sequence[str]) -> TaskError:
    message = f"the class `{python}` of the task `{task}` lacks {', '.join(missing)}"
    return TaskError(message, "see `archlang.tasks.kit.task.Task` for the attributes of a task")


def wrong_part(task: str, python: str, fault: str) -> TaskError:
    message = f"the class `{python}` of the task `{task}` cannot be used: {fault}"
    return TaskError(message, "see `archlang.tasks.kit.task.Task` for the attributes of a task")


def wrong_split(task: str, generator: str, split: str, fault: str) -> TaskError:
    message = f"`{generator}` of the task `{task}` returns no {split} split: {fault}"
    return TaskError(message, "correct the class; `archlang.tasks.kit.split.Split` says what a split holds")


def constructor_fails(task: str, python: str, error: BaseException) -> TaskError:
    message = f"the class `{python}` of the task `{task}` fails: {type(error).__name__}: {error}"
    return TaskError(message, "correct the class, or the statics of its signature")


def vocabulary_differs(task: str, stated: int, size: int) -> TaskError:
    message = f"the signature of `{task}` gives vocab = {stated}, and its class has {size} tokens"
    return TaskError(message, f"write `gives vocab = {size}`")


# A user's own files


def no_file(task: str, path: str) -> TaskError:
    message = f"{path} is missing, or is not a regular file"
    return TaskError(message, f"put the file of `{task}` there; a path is relative to the folder of the program")


def no_tokenizer(path: str, reason: str) -> TaskError:
    message = f"{path} is no tokenizer of BERT: {reason}"
    return TaskError(message, "name the `tokenizer.json` of a BERT, such as that of google-bert/bert-base-uncased")


def unreadable_file(path: str) -> TaskError:
    return TaskError(f"{path} cannot be read or decompressed", "check its permissions, and whether it is complete")


def unknown_form(task: str, path: str) -> TaskError:
    message = f"{path} is neither CSV, TSV nor JSONL, from which `{task}` reads its columns"
    return TaskError(message, "save it as .csv, .tsv or .jsonl, optionally followed by .gz or .xz")


def no_column(task: str, path: str, number: int, column: str) -> TaskError:
    message = f"line {number} of {path}: the header has no column `{column}`"
    return TaskError(message, f"name the columns of the file in the recipe, as `archlang tasks {task}` describes")


def no_rows(path: str, split: str) -> TaskError:
    return TaskError(
        f"{path} has no row for the split `{split}`", f"choose a smaller train_size, or 0 for {split}_size"
    )


def bad_line(path: str, number: int, reason: str) -> TaskError:
    message = f"line {number} of {path}: {reason}"
    return TaskError(message, "correct the line; `archlang tasks file` describes the format")


def splits_twice(path: str) -> TaskError:
    message = f"{path} has a column `split`, and the recipe names further files or shares"
    return TaskError(message, "remove them from the recipe, or the column from the file")


def no_training_lines(path: str) -> TaskError:
    message = f"no line of {path} is in the split `train`"
    return TaskError(message, "write `train` in the column `split` of the training lines")


def too_many_labels(task: str, size: int, required: int) -> TaskError:
    message = f"labels = {size} is too small for {task}, whose training split has {required} different labels"
    return TaskError(message, f"write labels = {required} or more")
