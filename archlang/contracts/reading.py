"""`reads`: checks which positions of an input a position of the result depends on."""

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product

import torch
from torch import Tensor

from archlang.contracts import mistakes
from archlang.contracts.mistakes import Skipped
from archlang.contracts.results import difference
from archlang.contracts.samples import Sample, random_value
from archlang.contracts.subject import Fields, Subject
from archlang.types import Type
from archlang.types.causality import Manner, manner_of

# A position of a sequence, or an entry of a map: its row and its column.
_Place = tuple[int, ...]


def _is_causal(result: _Place, input_: _Place) -> bool:
    return all(read <= own for own, read in zip(result, input_, strict=False))


# Whether a place of the result may change with a place of an input of n positions, in groups of k.
_ALLOWED: Mapping[Manner, Callable[[_Place, _Place, int, int], bool]] = {
    Manner.LENGTH: lambda i, j, n, k: False,
    Manner.FIRST: lambda i, j, n, k: j[0] == 0,
    Manner.POINTWISE: lambda i, j, n, k: all(map(operator.eq, i, j)),
    Manner.CAUSAL: lambda i, j, n, k: _is_causal(i, j),
    Manner.TRANSPOSED: lambda i, j, n, k: len(i) == 1 or i[: -len(j) - 1 : -1] == j,
    Manner.ROW: lambda i, j, n, k: i[0] == j[0],
    Manner.PREFIX: lambda i, j, n, k: j[0] <= i[0] if len(j) == 1 else j[0] == i[0] and _is_causal(i[1:], j[1:]),
    Manner.TRIANGULAR: lambda i, j, n, k: max(j) <= i[0],
    Manner.MIRRORED: lambda i, j, n, k: j[0] == n - 1 - i[0],
    Manner.GROUPED: lambda i, j, n, k: j[0] < k * (i[0] + 1),
    Manner.SPLIT: lambda i, j, n, k: j[0] == i[0] // k,
    Manner.HELD: lambda i, j, n, k: j[0] < (i[0] + 1) // k,
    Manner.FULL: lambda i, j, n, k: True,
}


def _is_allowed(written: str, result: _Place, read: _Place, count: int) -> bool:
    manner, size = manner_of(written)
    return _ALLOWED[manner](result, read, count, size)


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
    instance = subject.case.instance
    return [instance.reads[place] for place, source in enumerate(subject.case.arguments) if source == index]


def _test_input(subject: Subject, sample: Sample, index: int, before: Fields) -> None:
    kind, value = subject.case.inputs[index], sample.values[index]
    manners = _manners(subject, index)
    if not kind.lengths:
        if set(manners) == {"length"}:
            _compare(subject, sample, index, None, before, random_value(kind, value.shape, subject.generator(50)))
        return
    for place in _places(kind, value):
        for change in range(_CHANGES):
            generator = subject.generator(50 + change)
            _compare(subject, sample, index, place, before, _replaced(kind, value, place, generator))


def _places(kind: Type, value: Tensor) -> Iterator[_Place]:
    yield from product(*(range(size) for size in value.shape[: 2 if kind.name == "map" else 1]))


def _replaced(kind: Type, value: Tensor, position: _Place, generator: torch.Generator) -> Tensor:
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


def _compare(
    subject: Subject, sample: Sample, index: int, position: _Place | None, before: Fields, value: Tensor
) -> None:
    """Compares the result for a changed input with `before`, at the places that the manner forbids to change."""
    manners = _manners(subject, index)
    count = len(sample.values[index]) if position is not None else 0
    after = subject.evaluate(sample.with_value(index, value))
    for name, field in before.items():
        old, new = field.value, after[name].value
        kind = subject.case.result
        places: list[_Place | None] = list(_places(kind, old)) if field.by_position else [None]
        for place in places:
            if _may_change(manners, place, position, count):
                continue
            gap = difference(old, new) if place is None else difference(old[place], new[place])
            if gap:
                argument = subject.case.arguments.index(index)
                input_name = subject.case.input_name(index)
                cause = f"`{input_name}`" if position is None else f"{_shown(position)} of `{input_name}`"
                change = f"{mistakes.changed(None if place is None else place[0], gap, name)} with {cause}"
                facts = subject.facts([sample], sample.sizes)
                manner = subject.case.instance.reads[argument]
                item = subject.case.item
                clause = next((read.span for read in item.reads if read.input == input_name), item.name_span)
                values = {"name": input_name, "manner": manner, "clause": clause, "change": change}
                raise mistakes.broken("misread", subject.case, facts, **values)


def _may_change(manners: Sequence[str], place: _Place | None, position: _Place | None, count: int) -> bool:
    if position is None:
        return False
    if place is None:
        return any(manner not in _WITHOUT_POSITIONS or _is_allowed(manner, (0,), position, count) for manner in manners)
    return any(_is_allowed(manner, place, position, count) for manner in manners)


def _shown(place: _Place) -> str:
    return f"position {place[0]}" if len(place) == 1 else f"entry ({place[0]}, {place[1]})"
