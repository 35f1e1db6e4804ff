"""Describes the splits of a task: sizes, lengths, groups and the first items as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from archlang.errors.visible import visible
from archlang.reports.run_results import bar_line
from archlang.tasks.kit.split import Integers, Ragged, Split, TargetForm
from archlang.tasks.kit.streams import StreamPart
from archlang.tasks.kit.task import (
    Kind,
    Task,
    class_names,
    class_text,
    field_vocabulary,
    group_names,
    group_text,
    row_text,
)

_MOST_BARS = 12
# A group with more values is described by their number and range.
_MOST_GROUP_VALUES = 16
_LONGEST_ITEM = 600  # characters, in a terminal


class LengthStatistics(NamedTuple):
    """The lengths of a field's sequences, in tokens or rows of numbers."""

    shortest: int
    median: float
    mean: float
    longest: int

    @staticmethod
    def of(lengths: Integers) -> LengthStatistics:
        if not len(lengths):
            return LengthStatistics(0, 0.0, 0.0, 0)
        low, high = int(lengths.min()), int(lengths.max())
        return LengthStatistics(low, float(np.median(lengths)), float(lengths.mean()), high)


@dataclass(frozen=True)
class HistogramBar:
    """The number of sequences whose length is from `low` to `high`."""

    low: int
    high: int
    count: int


@dataclass(frozen=True)
class Example:
    """An item as text: its fields, its target, and its groups."""

    fields: Mapping[str, str]
    target: str
    groups: Mapping[str, int]


@dataclass(frozen=True)
class SplitReport:
    """The description of a split.

    Args:
        in_distribution: Whether the items are drawn like those of `train`.
        lengths: By field.
        groups: By group, how many items have each value.
        group_names: By group, the texts of its values, if they are names.
        measured_field: The field with the longest sequences, whose lengths `bars` count.
        measured_unit: What these lengths count: `tokens`, or `rows` of numbers.
        stream: What the split is read from while a model trains, if it is not stored; the items are its first ones."""

    name: str
    items: int
    in_distribution: bool
    lengths: Mapping[str, LengthStatistics]
    groups: Mapping[str, Mapping[int, int]]
    measured_field: str
    measured_unit: str
    bars: tuple[HistogramBar, ...]
    examples: tuple[Example, ...]
    group_names: Mapping[str, Sequence[str]]
    stream: str = ""

    @staticmethod
    def of(task: Task, name: str, split: Split, examples: int) -> SplitReport:
        """Describes a split with its first `examples` items."""
        lengths = {field: LengthStatistics.of(ragged.lengths) for field, ragged in split.inputs.items()}
        measured_field = max(lengths, key=lambda field: lengths[field].mean)
        return SplitReport(
            name,
            len(split),
            name in task.in_distribution,
            lengths,
            {group: _counts(values) for group, values in split.groups.items()},
            measured_field,
            "rows" if split.inputs[measured_field].values.ndim == 2 else "tokens",
            histogram(split.inputs[measured_field].lengths),
            tuple(_example(task, split, index) for index in range(min(examples, len(split)))),
            group_names(task),
            split.stream.source if isinstance(split, StreamPart) else "",
        )

    def to_json(self) -> dict[str, Any]:  # Any: JSON
        return {
            "items": self.items,
            **({"stream": self.stream} if self.stream else {}),
            "in_distribution": self.in_distribution,
            "lengths": {name: lengths._asdict() for name, lengths in self.lengths.items()},
            "groups": {name: {group_text(self.group_names, name, value): count for value, count in counts.items()}
                       for name, counts in self.groups.items()},
            "histogram": {"field": self.measured_field, "bars": [[bar.low, bar.high, bar.count] for bar in self.bars]},
            "examples": list(map(asdict, self.examples)),
        }  # fmt: skip


def histogram(lengths: Integers, most_bars: int = _MOST_BARS) -> tuple[HistogramBar, ...]:
    """Counts lengths in at most `most_bars` bars of equal width.

    >>> [(bar.low, bar.high, bar.count) for bar in histogram(np.array([3, 3, 4, 9]), most_bars=4)]
    [(3, 4, 3), (5, 6, 0), (7, 8, 0), (9, 10, 1)]
    """
    if not len(lengths):
        return ()
    low, high = int(lengths.min()), int(lengths.max())
    width = -(-(high - low + 1) // most_bars)
    counts = np.bincount((lengths - low) // width)
    return tuple(
        HistogramBar(low + width * number, low + width * (number + 1) - 1, int(count))
        for number, count in enumerate(counts)
    )


def _counts(values: Integers) -> dict[int, int]:
    distinct, counts = np.unique(values, return_counts=True)
    return {int(value): int(count) for value, count in zip(distinct, counts, strict=True)}


# Items as text


def _example(task: Task, split: Split, index: int) -> Example:
    fields = {name: _text(ragged[index], field_vocabulary(task, name)) for name, ragged in split.inputs.items()}
    groups = {name: int(values[index]) for name, values in split.groups.items()}
    return Example(fields, _target(task, split, index), groups)


def _text(row: np.ndarray, words: Sequence[str]) -> str:
    if row.ndim == 2:
        return f"{len(row)} rows of {row.shape[1]} numbers"
    return " ".join(_word(token, words) for token in row.tolist())


def _target(task: Task, split: Split, index: int) -> str:
    targets, words = split.targets, task.vocabulary
    if not isinstance(targets, Ragged):
        if split.form is TargetForm.SPANS:
            first, last = map(int, targets[index])
            return f"{first} to {last}"
        return class_text(class_names(task), int(targets[index]))
    row = targets[index]
    if split.form is TargetForm.SETS:
        return " ".join("{" + ",".join(words[k] for k in np.flatnonzero(members)) + "}" for members in row)
    if split.form is TargetForm.POINTERS:
        return " ".join(map(str, row.tolist()))
    scored = np.ones(len(row), dtype=np.bool_) if split.scored is None else split.scored[index]
    # Only a tagging task knows the meaning of its tags.
    target_words = class_names(task) if task.kind is Kind.TAGGING else words
    if split.form is TargetForm.NUMBERS:
        texts = [row_text(numbers) for numbers in row.tolist()]
    else:
        texts = [_word(token, target_words) for token in row.tolist()]
    return " ".join(text if counts else "·" for text, counts in zip(texts, scored, strict=True))


def _word(token: int, words: Sequence[str]) -> str:
    return words[token] if token < len(words) else str(token)


# For a terminal


def terminal_report(title: str, splits: Sequence[SplitReport]) -> RenderableType:
    """Returns a table of the splits, and the histogram, groups and examples of each."""
    table = Table("split", title=Text(title), title_justify="left", header_style="bold")
    table.add_column("items", justify="right")
    table.add_column("")
    fields = list(splits[0].lengths) if splits else []
    for field in fields:
        table.add_column(f"{field}: shortest, median, longest", justify="right")
    for split in splits:
        lengths = [
            f"{statistics.shortest:,}  {statistics.median:,.0f}  {statistics.longest:,}"
            for statistics in map(split.lengths.get, fields)
            if statistics
        ]
        items = f"the first {split.items:,} of a stream" if split.stream else f"{split.items:,}"
        table.add_row(split.name, items, "as trained on" if split.in_distribution else "beyond", *lengths)
    return Group(table, *(line for split in splits for line in _split_lines(split)))


def _split_lines(split: SplitReport) -> Iterator[Text]:
    yield Text()
    yield Text.assemble((split.name, "bold"), f": {split.measured_unit} of {split.measured_field}")
    highest = max((bar.count for bar in split.bars), default=1)
    ranges = [str(bar.low) if bar.low == bar.high else f"{bar.low}..{bar.high}" for bar in split.bars]
    width = max(map(len, ranges), default=0)
    for range_text, bar in zip(ranges, split.bars, strict=True):
        yield bar_line(f"{range_text:>{width}}", bar.count / highest, f"{bar.count:,}")
    for group, counts in split.groups.items():
        if len(counts) > _MOST_GROUP_VALUES:
            yield Text(f"  {group}: {len(counts)} values from {min(counts)} to {max(counts)}")
        elif len(counts) > 1:
            texts = (
                f"{visible(group_text(split.group_names, group, value))}: {count:,}" for value, count in counts.items()
            )
            yield Text(f"  {group}: {', '.join(texts)}")
    for number, example in enumerate(split.examples, 1):
        yield Text(f"  example {number}", "bold")
        for name, text in (*example.fields.items(), ("answer", example.target)):
            yield Text.assemble(
                ("    " + name, "dim"), f"  {visible(text[:_LONGEST_ITEM])}{' …' * (len(text) > _LONGEST_ITEM)}"
            )
