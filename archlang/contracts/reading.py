"""`reads`: checks which positions of an input a position of the result depends on."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from archlang.contracts import mistakes
from archlang.contracts.rounding import difference
from archlang.contracts.samples import Sample, random_value
from archlang.contracts.subject import Fields, Subject
from archlang.contracts.verdict import Broken, Skipped
from archlang.source import Span
from archlang.types import Type

# Whether position i of the result may change with position j of an input of n positions.
_ALLOWED: Mapping[str, Callable[[int, int, int], bool]] = {
    "length": lambda i, j, n: False,
    "first": lambda i, j, n: j == 0,
    "pointwise": lambda i, j, n: i == j,
    "causal": lambda i, j, n: j <= i,
    "mirrored": lambda i, j, n: j == n - 1 - i,
    "full": lambda i, j, n: True,
}
# The manners that restrict a result without positions; all others then mean `full`.
_WITHOUT_POSITIONS = ("length", "first")
_CHANGES = 2


def reads(subject: Subject) -> None:
    """Changes one position of one input at a time, and compares every position of the result.

    Raises:
        Broken: a position of the result changes although the manner of reading forbids it.
        Skipped: every input is read fully."""
    narrow = [index for index in range(len(subject.case.inputs)) if "full" not in _manners(subject, index)]
    if not narrow:
        raise Skipped("every input is read fully" if subject.case.inputs else "has no input")
    for sizes in subject.sizes():
        sample = subject.sample(sizes)
        before = subject.evaluate(sample)
        for index in narrow:
            _test_input(subject, sample, index, before)


def _manners(subject: Subject, index: int) -> list[str]:
    """Returns the manners in which the block reads the arguments that receive this input."""
    instance = subject.case.instance
    return [instance.reads[place] for place, source in enumerate(subject.case.arguments) if source == index]


def _test_input(subject: Subject, sample: Sample, index: int, before: Fields) -> None:
    kind, value = subject.case.inputs[index], sample.values[index]
    manners = _manners(subject, index)
    if not kind.lengths:
        if set(manners) == {"length"}:
            _compare(subject, sample, index, None, before, random_value(kind, value.shape, subject.generator(50)))
        return
    for position in range(len(value)):
        for change in range(_CHANGES):
            generator = subject.generator(50 + change)
            _compare(subject, sample, index, position, before, _replaced(kind, value, position, generator))


def _replaced(kind: Type, value: Tensor, position: int, generator: torch.Generator) -> Tensor:
    """Returns the value with another entry at one position."""
    replaced = value.clone()
    match kind.name:
        case "tokens":
            size = kind.feature.constant if kind.feature is not None else None
            step = torch.randint(1, max(2, size or 2), (1,), generator=generator)
            replaced[position] = (value[position] + step[0]) % (size or 1)
        case "address":
            replaced[position] = 1 - value[position]
        case _:
            replaced[position] = random_value(kind, value.shape, generator)[position]
    return replaced


def _compare(subject: Subject, sample: Sample, index: int, position: int | None, before: Fields, value: Tensor) -> None:
    """Compares the result for a changed input with `before`, at the rows that the manner forbids to change."""
    manners = _manners(subject, index)
    count = len(sample.values[index]) if position is not None else 0
    after = subject.evaluate(sample.with_value(index, value))
    for name, field in before.items():
        old, new = field.value, after[name].value
        rows: list[int | None] = list(range(len(old))) if field.by_position else [None]
        for row in rows:
            if _may_change(manners, row, position, count):
                continue
            gap = difference(old, new) if row is None else difference(old[row], new[row])
            if gap:
                argument = subject.case.arguments.index(index)
                input_name = subject.case.input_name(index)
                cause = f"`{input_name}`" if position is None else f"position {position} of `{input_name}`"
                change = f"{mistakes.changed(row, gap, name)} with {cause}"
                facts = subject.facts([sample], sample.sizes)
                manner = subject.case.instance.reads[argument]
                span = _clause(subject, input_name)
                raise Broken(mistakes.misread(subject.case, input_name, manner, span, change, facts))


def _may_change(manners: list[str], row: int | None, position: int | None, count: int) -> bool:
    if position is None:
        return False
    if row is None:
        return any(manner not in _WITHOUT_POSITIONS or _ALLOWED[manner](0, position, count) for manner in manners)
    return any(_ALLOWED[manner](row, position, count) for manner in manners)


def _clause(subject: Subject, name: str) -> Span:
    item = subject.case.item
    return next((clause.span for clause in item.reads if clause.input == name), item.name_span)
