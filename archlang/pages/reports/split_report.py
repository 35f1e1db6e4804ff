"""What a task's splits hold: how many items, how long, of which groups, and the first of them as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from archlang.diagnostics.excerpt import visible
from archlang.tasks.kit.ragged import Integers, Ragged
from archlang.tasks.kit.split import Form, Split
from archlang.tasks.kit.task import Kind, Task

_BARS = 12
_BAR_WIDTH = 40
_BLOCK = "█"
# Of more values than these, groups are told by how many there are.
_MOST_GROUPS = 16
# An item is shown up to so many signs.
_LONGEST = 600


@dataclass(frozen=True)
class Lengths:
    """How long the sequences of a field are."""

    shortest: int
    median: float
    mean: float
    longest: int

    @staticmethod
    def of(lengths: Integers) -> Lengths:
        if not len(lengths):
            return Lengths(0, 0.0, 0.0, 0)
        return Lengths(int(lengths.min()), float(np.median(lengths)), float(lengths.mean()), int(lengths.max()))


@dataclass(frozen=True)
class Bar:
    """How many sequences have from `low` to `high` tokens."""

    low: int
    high: int
    count: int


@dataclass(frozen=True)
class Example:
    """An item as text: each field, what is asked for, and its groups."""

    fields: Mapping[str, str]
    target: str
    groups: Mapping[str, int]


@dataclass(frozen=True)
class Part:
    """A split, described. `measured` is the field whose lengths `bars` count: the longest."""

    name: str
    items: int
    like_train: bool
    lengths: Mapping[str, Lengths]
    groups: Mapping[str, Mapping[int, int]]
    measured: str
    bars: tuple[Bar, ...]
    examples: tuple[Example, ...]

    def described(self) -> dict[str, Any]:  # Any: JSON
        return {
            "items": self.items,
            "in_distribution": self.like_train,
            "lengths": {name: vars(lengths) for name, lengths in self.lengths.items()},
            "groups": {name: {str(value): count for value, count in counts.items()} for name, counts in
                       self.groups.items()},
            "histogram": {"field": self.measured, "bars": [[bar.low, bar.high, bar.count] for bar in self.bars]},
            "examples": [
                {"fields": dict(one.fields), "target": one.target, "groups": dict(one.groups)} for one in self.examples
            ],
        }  # fmt: skip


def describe(task: Task, name: str, split: Split, examples: int) -> Part:
    """A split with its first `examples` items as text."""
    lengths = {field: Lengths.of(ragged.lengths) for field, ragged in split.inputs.items()}
    measured = max(lengths, key=lambda field: lengths[field].mean)
    return Part(
        name,
        len(split),
        name in task.in_distribution,
        lengths,
        {group: _counts(values) for group, values in split.groups.items()},
        measured,
        histogram(split.inputs[measured].lengths),
        tuple(_examples(task, split, examples)),
    )


def histogram(lengths: Integers, most: int = _BARS) -> tuple[Bar, ...]:
    """Lengths in at most so many bars of the same width.

    >>> [(bar.low, bar.high, bar.count) for bar in histogram(np.array([3, 3, 4, 9]), most=4)]
    [(3, 4, 3), (5, 6, 0), (7, 8, 0), (9, 10, 1)]
    """
    if not len(lengths):
        return ()
    low, high = int(lengths.min()), int(lengths.max())
    width = -(-(high - low + 1) // most)
    counts = np.bincount((lengths - low) // width)
    return tuple(
        Bar(low + width * number, low + width * (number + 1) - 1, int(count)) for number, count in enumerate(counts)
    )


def _counts(values: Integers) -> dict[int, int]:
    found, counts = np.unique(values, return_counts=True)
    return {int(value): int(count) for value, count in zip(found, counts, strict=True)}


# Items as text


def _examples(task: Task, split: Split, count: int) -> Iterator[Example]:
    texts = task.vocabulary
    # A source with a vocabulary of its own.
    words: Sequence[str] = getattr(task, "words", texts)
    for index in range(min(count, len(split))):
        fields = {
            name: _text(ragged, index, words if name == "source" else texts) for name, ragged in split.inputs.items()
        }
        groups = {name: int(values[index]) for name, values in split.groups.items()}
        yield Example(fields, _target(task, split, index), groups)


def _text(ragged: Ragged, index: int, texts: Sequence[str]) -> str:
    row = ragged[index]
    if row.ndim == 2:
        return f"{len(row)} rows of {row.shape[1]} numbers"
    return _short(" ".join(texts[token] if token < len(texts) else str(token) for token in row[:_LONGEST].tolist()))


def _target(task: Task, split: Split, index: int) -> str:
    targets, texts = split.targets, task.vocabulary
    if not isinstance(targets, Ragged):
        if split.form is Form.SPANS:
            first, last = map(int, targets[index])
            return f"{first} to {last}"
        return f"class {int(targets[index])}"
    row = targets[index]
    if split.form is Form.SETS:
        return _short(" ".join("{" + ",".join(texts[k] for k in np.flatnonzero(one)) + "}" for one in row[:_LONGEST]))
    scored = np.ones(len(row), dtype=np.bool_) if split.scored is None else split.scored[index]
    shown = row[:_LONGEST].tolist()
    # What tags stand for is known to the task alone.
    tagging = task.kind is Kind.TAGGING
    told = (str(one) if tagging or one >= len(texts) else texts[one] for one in shown)
    return _short(" ".join(one if counts else "·" for one, counts in zip(told, scored, strict=False)))


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"


# On a terminal


def shown(title: str, parts: Sequence[Part]) -> RenderableType:
    """Everything about the splits: a table of their sizes, and of each its lengths, groups and examples."""
    table = Table(title=Text(title), title_justify="left", header_style="bold")
    for name, justify in (("split", "left"), ("items", "right"), ("", "left")):
        table.add_column(name, justify=justify)  # type: ignore[arg-type] # both are literals
    fields = list(parts[0].lengths) if parts else []
    for field in fields:
        table.add_column(f"{field}: shortest, median, longest", justify="right")
    for part in parts:
        told = [f"{one.shortest:,}  {one.median:,.0f}  {one.longest:,}" for one in map(part.lengths.get, fields) if one]
        table.add_row(part.name, f"{part.items:,}", "as trained on" if part.like_train else "beyond", *told)
    return Group(table, *(line for part in parts for line in _part(part)))


def _part(part: Part) -> Iterator[Text]:
    yield Text()
    yield Text.assemble((part.name, "bold"), f": tokens of {part.measured}")
    most = max((bar.count for bar in part.bars), default=1)
    names = [str(bar.low) if bar.low == bar.high else f"{bar.low}..{bar.high}" for bar in part.bars]
    width = max(map(len, names), default=0)
    for name, bar in zip(names, part.bars, strict=True):
        filled = _BLOCK * max(round(_BAR_WIDTH * bar.count / most), bar.count > 0)
        yield Text.assemble(f"  {name:>{width}} ", (f"{filled:<{_BAR_WIDTH}}", "cyan"), f" {bar.count:,}")
    for group, counts in part.groups.items():
        if len(counts) > _MOST_GROUPS:
            yield Text(f"  {group}: {len(counts)} values from {min(counts)} to {max(counts)}")
        elif len(counts) > 1:
            told = ", ".join(f"{value}: {count:,}" for value, count in counts.items())
            yield Text(f"  {group}: {told}")
    for number, one in enumerate(part.examples, 1):
        yield Text(f"  example {number}", "bold")
        for name, text in (*one.fields.items(), ("answer", one.target)):
            yield Text.assemble(("    " + name, "dim"), f"  {visible(text)}")
