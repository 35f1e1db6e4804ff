"""The errors of tasks: their statics, their files, and users' own classes."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from archlang.diagnostics import ErrorWithRemedy

_TABLE = Path(__file__).with_name("mistakes.tsv").read_text(encoding="utf-8").splitlines()[1:]
_ROWS = {name: (facts.split(), message, remedy) for name, facts, message, remedy in (row.split("\t") for row in _TABLE)}


class TaskError(ErrorWithRemedy):
    """A task that cannot be generated."""


class CacheWarning(UserWarning):
    """The cache of generated splits failed; the returned split is correct."""


def error(name: str, *facts: object) -> TaskError:
    """Returns the error of a row of `mistakes.tsv`, which names these facts. A list of texts is written with commas."""
    fields, message, remedy = _ROWS[name]
    texts = (", ".join(fact) if isinstance(fact, list | tuple) else fact for fact in facts)
    named = dict(zip(fields, texts, strict=True))
    return TaskError(message.format(**named), remedy.format(**named))


def outside(task: str, static: str, value: int | float, low: int | float, high: int | float | None) -> TaskError:
    bounds = f"of at least {low}" if high is None else f"between {low} and {high}"
    return TaskError(f"{static} = {value} is out of bounds for {task}", f"choose a number {bounds}")


def too_many_items(task: str, sizes: Mapping[str, tuple[int, int]], remedy: str) -> TaskError:
    """`sizes` are the statics that are too large, each with its value and the number of items that there are."""
    written = _joined([f"{static} = {size}" for static, (size, _) in sizes.items()])
    possible = _joined([f"{static} = {most}" for static, (_, most) in sizes.items()])
    (_, first), *others = sizes.values()
    message = f"{written} are more than the" if others else f"{written} is more than the {first}"
    return TaskError(f"{message} distinct items of {task}", f"write {possible} or less, or {remedy}")


def _joined(parts: Sequence[str]) -> str:
    return " and ".join(part for part in (", ".join(parts[:-1]), parts[-1]) if part)


def damaged_line(dataset: str, member: str, number: int, text: str) -> TaskError:
    excerpt = text if len(text) <= 80 else f"{text[:77]}..."
    message = f"line {number} of {dataset}/{member} is malformed: {excerpt!r}"
    return TaskError(message, f"remove the file, and fetch it again with `archlang data get {dataset}`")


def constructor_fails(task: str, python: str, error: BaseException) -> TaskError:
    message = f"the class `{python}` of the task `{task}` fails: {type(error).__name__}: {error}"
    return TaskError(message, "correct the class, or the statics of its signature")
