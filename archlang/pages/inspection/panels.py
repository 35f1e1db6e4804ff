"""What was recorded of one sample, as panels: gates by depth, attention, halting, pointers, memories."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
import torch
from torch import Tensor

from archlang.backend.runtime.recording import Moment, Turn
from archlang.pages.inspection.heatmap import Frame, Heatmap
from archlang.types import Dim


@dataclass(frozen=True)
class Field:
    """A field of the input: its length in the program, and the text at each position."""

    name: str
    length: Dim
    texts: tuple[str, ...]


def panels(
    moments: Sequence[Moment], fields: Sequence[Field], lines: Mapping[str, str] | None = None
) -> tuple[Heatmap, ...]:
    """Every panel of the first sample: kind by kind, and of one kind in the order in which the model computes. `lines`
    are those of the program, by the paths of the blocks in them."""
    series: dict[tuple[str, str, tuple[str, ...]], list[Moment]] = {}
    for moment in moments:
        series.setdefault((moment.kind, moment.path, tuple(turn.loop for turn in moment.turns)), []).append(moment)
    draw = _Drawer(fields)
    made = [
        (kind, replace(panel, source=(lines or {}).get(path, "")))
        for (kind, path, _), found in series.items()
        for panel in _KINDS[kind](draw, path, found, series)
    ]
    order = list(_KINDS)
    return tuple(panel for _, panel in sorted(made, key=lambda one: order.index(one[0])))


_Series = Mapping[tuple[str, str, tuple[str, ...]], list[Moment]]


@dataclass(frozen=True)
class _Drawer:
    fields: Sequence[Field]

    # Axes

    def axis(self, length: Dim | None, count: int, turns: Sequence[Turn]) -> tuple[str, tuple[str, ...]]:
        """What the positions of an axis are, and the text of each."""
        for field in self.fields:
            if field.length == length and len(field.texts) == count:
                return f"position of {field.name}", tuple(f"{i} {text}" for i, text in enumerate(field.texts))
        if length is None or length.constant is not None or not _chunked(turns):
            name = "slot" if length is not None and length.constant is not None else "position"
            return name, tuple(str(i) for i in range(count))
        first = sum(turn.first for turn in turns)
        return "position", tuple(self._global(first + i) for i in range(count))

    def _global(self, place: int) -> str:
        """The text at a position of the sequence that was cut into chunks: it is known where only one field is."""
        if len(self.fields) == 1 and place < len(self.fields[0].texts):
            return f"{place} {self.fields[0].texts[place]}"
        return str(place)

    # Panels

    def attention(self, path: str, found: list[Moment], _: _Series) -> Iterator[Heatmap]:
        heads = found[0].values.shape[1]
        frames, rows, columns = [], "", ""
        for one in found:
            n, m = one.values.shape[2:]
            rows, row_texts = self.axis(one.lengths[0] if one.lengths else None, n, one.turns)
            columns, column_texts = self.axis(one.lengths[1] if one.lengths[1:] else None, m, one.turns)
            frames.append(Frame(_label(one.turns), row_texts, column_texts, _with_largest(_array(one.values[0]))))
        choices = ("max over heads", *(f"head {i}" for i in range(heads))) if heads > 1 else ("head 0",)
        yield Heatmap(
            f"Attention: {path}", "How much each query (row) takes from each key (column).",
            f"query, {rows}", f"key, {columns}", "weight", choices, tuple(frames), high=1.0,
        )  # fmt: skip

    def gate(self, path: str, found: list[Moment], _: _Series) -> Iterator[Heatmap]:
        caption = "How far each column is updated, mean over channels: 0 copies it as it is, 1 replaces it."
        yield self._by_depth(f"Gate: {path}", caption, "gate", found, lambda one: _array(one[0]).mean(-1), high=None)

    def change(self, path: str, found: list[Moment], _: _Series) -> Iterator[Heatmap]:
        caption = "How far a turn moves each state, |h' - h| / |h'|."
        yield self._by_depth(f"Change of {path}", caption, "change", found, lambda one: _array(one[0]), high=None)

    def halting(self, path: str, found: list[Moment], series: _Series) -> Iterator[Heatmap]:
        loops = tuple(turn.loop for turn in found[0].turns)
        running = series.get(("running", path, loops), [])
        depths = _depths(found, running)
        caption = (
            "What each step adds to the probability of having halted. "
            f"Steps taken: {depths.taken:.2f} on average; expected depth: {depths.expected:.2f}, "
            "where what is left counts at the last step."
        )
        yield self._by_depth(f"Halting: {path}", caption, "probability", found, lambda one: _array(one[0]), high=1.0)

    def running(self, path: str, found: list[Moment], _: _Series) -> Iterator[Heatmap]:
        caption = "Which steps were taken (1) and which were not any more (0)."
        yield self._by_depth(f"Steps taken: {path}", caption, "taken", found, lambda one: _array(one[0]), high=1.0)

    def pointer(self, path: str, found: list[Moment], _: _Series) -> Iterator[Heatmap]:
        for one in found:
            w = _array(one.values[0]).transpose(1, 0, 2)
            pointers, steps, slots = w.shape
            rows, row_texts = self.axis(one.lengths[0], steps, one.turns)
            columns, column_texts = self.axis(one.lengths[1], slots, one.turns)
            both = w.max(0, keepdims=True)
            values = np.concatenate([both, w]) if pointers > 1 else w
            names = tuple(f"pointer {i}" for i in range(pointers))
            frame = Frame(_label(one.turns), row_texts, column_texts, values)
            yield Heatmap(
                f"Pointers: {path}", "The trajectory of each pointer: how much each step points at each address.",
                f"step, {rows}", f"address, {columns}", "weight",
                ("max over pointers", *names) if pointers > 1 else names, (frame,), high=1.0,
            )  # fmt: skip

    def memory(self, path: str, found: list[Moment], _: _Series) -> Iterator[Heatmap]:
        frames = tuple(
            Frame(
                f"after {_label(one.turns)}",
                tuple(str(i) for i in range(one.values.shape[1])),
                tuple(str(i) for i in range(one.values.shape[2])),
                np.abs(_array(one.values[:1])),
            )
            for one in found
        )
        caption = "What is remembered after each chunk: the size of each channel of each slot."
        yield Heatmap(f"Memory: {path}", caption, "slot", "channel", "|value|", ("all",), frames)

    def _by_depth(
        self,
        title: str,
        caption: str,
        unit: str,
        found: list[Moment],
        values: Callable[[Tensor], np.ndarray],
        high: float | None,
    ) -> Heatmap:
        """Depth by position: a row a turn of the loops that are no scan; chunks stand side by side. What has no
        position in the sequence (slots, whole samples) has a row for each chunk, too."""
        everywhere = _places(found[0])
        width = values(found[0].values).size
        if everywhere:
            rows = list(dict.fromkeys(_label(_deep(one.turns)) for one in found))
            texts: dict[int, str] = {}
            cells: list[tuple[int, int, np.ndarray]] = []
            name = "position"
            for one in found:
                given = np.atleast_1d(values(one.values))
                first = sum(turn.first for turn in one.turns)
                name, labels = self.axis(one.lengths[0], len(given), one.turns)
                texts.update((first + i, text) for i, text in enumerate(labels))
                cells.append((rows.index(_label(_deep(one.turns))), first, given))
            width = max(texts) + 1
        else:
            rows = [_label(one.turns) for one in found]
            name, labels = self.axis(found[0].lengths[0] if found[0].lengths else None, width, found[0].turns)
            labels = labels if found[0].lengths else ("whole sample",)
            name = name if found[0].lengths else "sample"
            texts = dict(enumerate(labels))
            cells = [(index, 0, np.atleast_1d(values(one.values))) for index, one in enumerate(found)]
        grid = np.full((1, len(rows), width), np.nan)
        for row, first, given in cells:
            grid[0, row, first : first + len(given)] = given
        columns = tuple(texts.get(i, str(i)) for i in range(width))
        frame = Frame("", tuple(row or "once" for row in rows), columns, grid)
        return Heatmap(title, caption, "depth", name, unit, ("all",), (frame,), high=high)


# The order in which panels stand.
_KINDS: Mapping[str, Callable[[_Drawer, str, list[Moment], _Series], Iterator[Heatmap]]] = {
    "gate": _Drawer.gate,
    "halting": _Drawer.halting,
    "running": _Drawer.running,
    "pointer": _Drawer.pointer,
    "attention": _Drawer.attention,
    "memory": _Drawer.memory,
    "change": _Drawer.change,
}


@dataclass(frozen=True)
class Depths:
    """The mean over positions, and over chunks, of the steps that were taken and of those that were expected."""

    taken: float
    expected: float


def _depths(halting: Sequence[Moment], running: Sequence[Moment]) -> Depths:
    def outer(one: Moment) -> tuple[Turn, ...]:
        return one.turns[:-1]

    expected, taken = [], []
    for _, part in groupby(halting, key=outer):
        mass = np.stack([_array(one.values[0]) for one in part])
        steps = np.arange(1, len(mass) + 1).reshape(-1, *[1] * (mass.ndim - 1))
        expected.append(((mass * steps).sum(0) + (1 - mass.sum(0)).clip(0) * len(mass)).mean())
    for _, part in groupby(running, key=outer):
        taken.append(np.stack([_array(one.values[0]) for one in part]).sum(0).mean())
    return Depths(float(np.mean(taken)) if taken else float("nan"), float(np.mean(expected)))


def _places(one: Moment) -> bool:
    """Whether its first axis is positions of a sequence, and not slots or nothing."""
    return bool(one.lengths) and one.lengths[0].constant is None


def _chunked(turns: Sequence[Turn]) -> bool:
    return any(turn.unit == "chunk" for turn in turns)


def _deep(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    return tuple(turn for turn in turns if turn.unit != "chunk")


def _label(turns: Sequence[Turn]) -> str:
    """`layer 1, step 3`: counted from 1, as papers do."""
    return ", ".join(f"{turn.unit} {turn.index + 1}" for turn in turns)


def _with_largest(weights: np.ndarray) -> np.ndarray:
    """Behind the largest of all heads each head by itself."""
    return np.concatenate([weights.max(0, keepdims=True), weights]) if len(weights) > 1 else weights


def _array(values: Tensor) -> np.ndarray:
    found: np.ndarray = values.detach().to("cpu", torch.float32).numpy()
    return found
