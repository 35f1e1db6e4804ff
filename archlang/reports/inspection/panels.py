"""Turns what was recorded of one sample into panels: gates, halting, pointers, attention, memories and changes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
import torch
from torch import Tensor

from archlang.backend.runtime.recording import Moment, Turn
from archlang.reports.inspection.heatmap import Heatmap, HeatmapFrame
from archlang.types import Dim


@dataclass(frozen=True)
class InspectedField:
    """A field of the input: its length in the program, and the text of each position."""

    name: str
    length: Dim
    texts: tuple[str, ...]


# The units of the turns of a scan.
_PARTS = ("chunk", "position")
# All moments of one kind at one path in one nest of loops.
_SeriesKey = tuple[str, str, tuple[str, ...]]
_Series = Mapping[_SeriesKey, list[Moment]]


def panels(
    moments: Sequence[Moment], fields: Sequence[InspectedField], source_lines: Mapping[str, str] | None = None
) -> tuple[Heatmap, ...]:
    """Returns the panels of the first sample, ordered by kind and then by the time of their first moment.

    Args:
        source_lines: The line of the program of each instance, by its path."""
    series: dict[_SeriesKey, list[Moment]] = {}
    for moment in moments:
        key = moment.kind, moment.path, tuple(turn.loop for turn in moment.turns)
        series.setdefault(key, []).append(moment)
    drawer = _PanelDrawer(fields)
    lines = source_lines or {}
    return tuple(
        replace(panel, source=lines.get(path, ""))
        for kind, draw in _KINDS.items()
        for (series_kind, path, _), of_series in series.items()
        if series_kind == kind
        for panel in draw(drawer, path, of_series, series)
    )


@dataclass(frozen=True)
class _PanelDrawer:
    """Draws each kind of panel. All drawing methods take the path of a block, its moments, and all series."""

    fields: Sequence[InspectedField]

    # Axes

    def axis(self, length: Dim | None, count: int, turns: Sequence[Turn]) -> tuple[str, tuple[str, ...]]:
        """Returns what the positions of an axis are, and the label of each."""
        for field in self.fields:
            if field.length == length and len(field.texts) == count:
                return f"position of {field.name}", tuple(f"{i} {text}" for i, text in enumerate(field.texts))
        if length is not None and length.constant is not None:
            return "slot", tuple(str(i) for i in range(count))
        if length is None or not any(turn.unit in _PARTS for turn in turns):
            return "position", tuple(str(i) for i in range(count))
        first = sum(turn.first for turn in turns)
        return "position", tuple(self._position_label(first + i, turns) for i in range(count))

    def _position_label(self, position: int, turns: Sequence[Turn]) -> str:
        split = [turn.length for turn in turns if turn.unit in _PARTS]
        fields = [field for field in self.fields if len(self.fields) == 1 or field.length in split]
        texts = fields[0].texts if fields else ()
        return f"{position} {texts[position]}" if position < len(texts) else str(position)

    def _row_label(self, moment: Moment, is_time: bool) -> str:
        if not is_time:
            return _turn_label(moment.turns)
        turns = _turn_label(_without_parts(moment.turns))
        return ", ".join(filter(None, (turns, self._position_label(_part(moment).first, moment.turns))))

    # Panels

    def attention(self, path: str, moments: list[Moment], _: _Series) -> Iterator[Heatmap]:
        caption = "The weight of each key (column) for each query (row)."
        weights = [_array(moment.values[0]) for moment in moments]
        yield self._weights(f"Attention: {path}", caption, ("query", "key"), "head", moments, weights)

    def pointer(self, path: str, moments: list[Moment], _: _Series) -> Iterator[Heatmap]:
        caption = "The trajectory of each pointer: its weight for each address at each step."
        weights = [_array(moment.values[0]).transpose(1, 0, 2) for moment in moments]
        yield self._weights(f"Pointers: {path}", caption, ("step", "address"), "pointer", moments, weights)

    def _weights(
        self,
        title: str,
        caption: str,
        axes: tuple[str, str],
        part: str,
        moments: Sequence[Moment],
        weights: Sequence[np.ndarray],
    ) -> Heatmap:
        """Returns a panel of the weights of several heads or pointers, and of their maximum.

        Args:
            axes: What rows and columns are.
            part: `head` or `pointer`.
            weights: For each moment, [parts, rows, columns]."""
        names = tuple(f"{part} {i}" for i in range(len(weights[0])))
        choices = (f"max over {part}s", *names) if len(names) > 1 else names
        # What a program weighs with may have any numbers.
        ends = [float(bound(own)) for own in weights if own.size for bound in (np.min, np.max)]
        low, high = min([0.0, *ends]), max([1.0, *ends])
        lengths = [(*moment.lengths, None, None)[:2] for moment in moments]
        values = [np.concatenate([own.max(0, keepdims=True), own]) if len(own) > 1 else own for own in weights]
        if _is_time(moments) and all(1 in own.shape[1:] for own in weights):
            # A position reads all columns, or all rows read it.
            axis = int(all(own.shape[1] == 1 for own in weights))
            lines = [own.reshape(len(choices), -1) for own in values]
            what, over_time = self.over_time(moments, lines, [own[axis] for own in lengths])
            return Heatmap(title, caption, "time", f"{axes[axis]}, {what}", "weight", choices, over_time, low, high)
        frames, rows, columns = [], "", ""
        for moment, own, (row_length, column_length) in zip(moments, values, lengths, strict=True):
            rows, row_labels = self.axis(row_length, own.shape[1], moment.turns)
            columns, column_labels = self.axis(column_length, own.shape[2], moment.turns)
            frames.append(HeatmapFrame(_turn_label(moment.turns), row_labels, column_labels, own))
        what_rows, what_columns = f"{axes[0]}, {rows}", f"{axes[1]}, {columns}"
        return Heatmap(title, caption, what_rows, what_columns, "weight", choices, tuple(frames), low, high)

    def gate(self, path: str, moments: list[Moment], _: _Series) -> Iterator[Heatmap]:
        caption = "How far each column is updated, mean over channels: 0 copies it, 1 replaces it."
        yield self._by_depth(f"Gate: {path}", caption, "gate", moments, lambda gate: _array(gate[0]).mean(-1), 1.0)

    def change(self, path: str, moments: list[Moment], _: _Series) -> Iterator[Heatmap]:
        loop, state = path.rpartition(".")[::2]
        unit = moments[0].turns[-1].unit
        caption = f"How far each {unit} of the loop moves its state {state}, |{state}' - {state}| / |{state}'|."
        title = f"Change of the state {state} by {unit}: {loop}"
        yield self._by_depth(title, caption, "change", moments, lambda change: _array(change[0]))

    def halting(self, path: str, moments: list[Moment], series: _Series) -> Iterator[Heatmap]:
        loops = tuple(turn.loop for turn in moments[0].turns)
        running = series.get(("running", path, loops), [])
        caption = (
            "What each step adds to the probability of having halted; steps that were not taken are blank. "
            f"Steps taken: {_mean_steps_taken(running):.2f}, expected depth: {_expected_depth(moments):.2f}, where the "
            "remaining probability counts at the last step: means over "
            f"{'positions' if _has_positions(moments[0]) else 'the sample and its chunks'}."
        )
        title = f"Halting: {path}"
        yield self._by_depth(title, caption, "probability", moments, lambda mass: _array(mass[0]), high=1.0)

    def running(self, path: str, moments: list[Moment], _: _Series) -> Iterator[Heatmap]:
        caption = "Which steps were taken (1) and which were skipped (0)."
        title = f"Steps taken: {path}"
        yield self._by_depth(title, caption, "taken", moments, lambda taken: _array(taken[0]), 1.0, skipped=0.0)

    def memory(self, path: str, moments: list[Moment], _: _Series) -> Iterator[Heatmap]:
        if _is_time(moments):
            sizes = [np.abs(_array(moment.values[0])).T for moment in moments]  # [channels, slots]
            values = [np.concatenate([size.mean(0, keepdims=True), size]) for size in sizes]
            columns, over_time = self.over_time(moments, values, [moment.lengths[0] for moment in moments])
            choices = ("mean over channels", *(f"channel {i}" for i in range(len(sizes[0]))))
            caption = "The memory after each position: the absolute value of each slot."
            yield Heatmap(f"Memory: {path}", caption, "time", columns, "|value|", choices, over_time)
            return
        frames = tuple(
            HeatmapFrame(
                f"after {_turn_label(moment.turns)}",
                tuple(str(i) for i in range(moment.values.shape[1])),
                tuple(str(i) for i in range(moment.values.shape[2])),
                np.abs(_array(moment.values[:1])),
            )
            for moment in moments
        )
        caption = "The memory after each chunk: the absolute value of each channel of each slot."
        yield Heatmap(f"Memory: {path}", caption, "slot", "channel", "|value|", ("all",), frames)

    def over_time(
        self, moments: Sequence[Moment], values: Sequence[np.ndarray], lengths: Sequence[Dim | None]
    ) -> tuple[str, tuple[HeatmapFrame, ...]]:
        """Returns what the columns are, and a frame for each turn of the other loops around a scan, with a row for each
        position of the scan.

        Args:
            values: For each moment, [choices, columns].
            lengths: For each moment, the length of the columns."""
        frames = []
        width = max(of_moment.shape[1] for of_moment in values)
        widest = max(range(len(values)), key=lambda index: values[index].shape[1])
        columns, column_labels = self.axis(lengths[widest], width, moments[widest].turns)
        turns = [_turn_label(_without_parts(moment.turns)) for moment in moments]
        for label in dict.fromkeys(turns):
            indices = [index for index, turn in enumerate(turns) if turn == label]
            grid = np.full((len(values[0]), len(indices), width), np.nan)
            for row, index in enumerate(indices):
                grid[:, row, : values[index].shape[1]] = values[index]
            rows = tuple(self._position_label(_part(moments[index]).first, moments[index].turns) for index in indices)
            frames.append(HeatmapFrame(label, rows, column_labels, grid))
        return columns, tuple(frames)

    def _by_depth(
        self,
        title: str,
        caption: str,
        unit: str,
        moments: list[Moment],
        values_of: Callable[[Tensor], np.ndarray],
        high: float | None = None,
        skipped: float = np.nan,
    ) -> Heatmap:
        """Returns a panel with a row for each turn and a column for each position.

        Chunks of a sequence are side by side. Values without positions in the sequence (slots, whole samples) have a
        row for each chunk instead.

        Args:
            values_of: Maps the values of a moment to a number or to a vector over the columns.
            skipped: The value of a turn that a part of the sequence has not taken."""
        if _has_positions(moments[0]):
            row_labels = list(dict.fromkeys(_turn_label(_without_parts(moment.turns)) for moment in moments))
            column_labels: dict[int, str] = {}
            cells: list[tuple[int, int, np.ndarray]] = []  # row, first column, values
            columns = "position"
            for moment in moments:
                values = np.atleast_1d(values_of(moment.values))
                first = sum(turn.first for turn in moment.turns)
                columns, labels = self.axis(moment.lengths[0], len(values), moment.turns)
                column_labels.update((first + i, label) for i, label in enumerate(labels))
                cells.append((row_labels.index(_turn_label(_without_parts(moment.turns))), first, values))
        else:
            row_labels = [self._row_label(moment, _is_time(moments)) for moment in moments]
            cells = [(row, 0, np.atleast_1d(values_of(moment.values))) for row, moment in enumerate(moments)]
            columns, labels = "sample", ("whole sample",)
            if moments[0].lengths:
                columns, labels = self.axis(moments[0].lengths[0], cells[0][2].size, moments[0].turns)
            column_labels = dict(enumerate(labels))
        width = max(column_labels) + 1
        grid = np.full((1, len(row_labels), width), skipped)
        for row, first, values in cells:
            grid[0, row, first : first + len(values)] = values
        all_labels = tuple(column_labels.get(i, str(i)) for i in range(width))
        frame = HeatmapFrame("", tuple(label or "once" for label in row_labels), all_labels, grid)
        rows = "time" if _is_time(moments) and not _has_positions(moments[0]) else "depth"
        return Heatmap(title, caption, rows, columns, unit, ("all",), (frame,), high=high)


# In the order of the panels.
_KINDS: Mapping[str, Callable[[_PanelDrawer, str, list[Moment], _Series], Iterator[Heatmap]]] = {
    "gate": _PanelDrawer.gate,
    "halting": _PanelDrawer.halting,
    "running": _PanelDrawer.running,
    "pointer": _PanelDrawer.pointer,
    "attention": _PanelDrawer.attention,
    "memory": _PanelDrawer.memory,
    "change": _PanelDrawer.change,
}


def _expected_depth(halting: Sequence[Moment]) -> float:
    depths = []
    for _, turns in groupby(halting, key=_outer_turns):
        mass = np.stack([_array(moment.values[0]) for moment in turns])
        steps = np.arange(1, len(mass) + 1).reshape(-1, *[1] * (mass.ndim - 1))
        remaining = (1 - mass.sum(0)).clip(0)
        depths.append(((mass * steps).sum(0) + remaining * len(mass)).ravel())
    return float(np.mean(np.concatenate(depths)))


def _mean_steps_taken(running: Sequence[Moment]) -> float:
    taken = [
        np.stack([_array(moment.values[0]) for moment in turns]).sum(0).ravel()
        for _, turns in groupby(running, key=_outer_turns)
    ]
    return float(np.mean(np.concatenate(taken))) if taken else float("nan")


def _outer_turns(moment: Moment) -> tuple[Turn, ...]:
    return moment.turns[:-1]


def _is_time(moments: Sequence[Moment]) -> bool:
    """Whether the moments are those of a scan whose parts are single positions."""
    if any(sum(turn.unit in _PARTS for turn in moment.turns) != 1 for moment in moments):
        return False
    parts = [_part(moment) for moment in moments]
    return len({part.index for part in parts}) > 1 and all(part.first == part.index for part in parts)


def _part(moment: Moment) -> Turn:
    return next(turn for turn in moment.turns if turn.unit in _PARTS)


def _has_positions(moment: Moment) -> bool:
    """Whether the first axis is positions of a sequence, and not slots or a whole sample."""
    return bool(moment.lengths) and moment.lengths[0].constant is None


def _without_parts(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    return tuple(turn for turn in turns if turn.unit not in _PARTS)


def _turn_label(turns: Sequence[Turn]) -> str:
    return ", ".join(f"{turn.unit} {turn.index + 1}" for turn in turns)


def _array(values: Tensor) -> np.ndarray:
    array: np.ndarray = values.detach().to("cpu", torch.float32).numpy()
    return array
