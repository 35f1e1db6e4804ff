"""Scans at run time: over the chunks of a sequence, or over its positions."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, takewhile
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from archlang.backend.runtime.graph_loops import is_exporting, scan_steps
from archlang.backend.runtime.loops import Costs, Loop, SplitBody, broadcast_mask, total_of

# The most positions for which a head runs at once, unless a single chunk has more: this bounds the memory.
_MOST_POSITIONS = 1 << 14

Chunk = tuple[Float[Tensor, "b _c d"], Bool[Tensor, "b _c"] | None]


@dataclass(frozen=True, eq=False)
class StackedChunks:
    """The chunks of an exported model: all have the same length, and the last is padded. `length` is that of the
    sequence."""

    values: Float[Tensor, "k b c d"]
    masks: Bool[Tensor, "k b c"]
    length: int


@dataclass(eq=False, kw_only=True)
class Scan(Loop):
    """Runs over parts in order, which are chunks or positions. A sample without a real position in a part keeps its
    carried states there. `carried` counts these states; with `emits`, the result includes what the steps emit. The
    gradient of the carried states is cut after every `truncated` parts, or nowhere. The body also takes the last
    `before` positions before the part, all of them if that is 0; none are taken if it is None."""

    carried: int
    emits: bool
    truncated: int | None = None
    before: int | None = None

    def _is_cut(self, index: int) -> bool:
        """Whether the carried states lose their gradient before the part of this index."""
        return self.truncated is not None and index > 0 and index % self.truncated == 0

    def _before(
        self, sequence: Float[Tensor, "b n d"], mask: Bool[Tensor, "b n"] | None, starts: Sequence[int]
    ) -> list[tuple[Any, ...]]:
        """Returns the positions before each part, and their mask; nothing if the body does not take them. A part that
        a sample has comes after real positions only."""
        if self.before is None:
            return [()] * len(starts)
        ranges = [slice(max(0, start - self.before) if self.before else 0, start) for start in starts]
        return [(sequence[:, window], None if mask is None else mask[:, window]) for window in ranges]

    def _before_in_graph(
        self, sequence: Float[Tensor, "b n d"], mask: Bool[Tensor, "b n"], count: int, size: int
    ) -> list[Tensor]:
        """As `_before`, for `count` parts of `size` positions: all have the same length, and are padded."""
        if self.before is None:
            return []
        n = sequence.shape[1]
        start = size * torch.arange(count, device=sequence.device)[:, None]
        place = torch.arange(self.before or n, device=sequence.device) + (start - (self.before or n)).clamp(min=0)
        inside = place.clamp(max=n - 1)
        masks = (place < start)[:, None] & mask[:, inside].transpose(0, 1)
        return [sequence[:, inside].transpose(0, 1), masks]

    def _run(
        self, parts: Sequence[tuple[Any, ...]], reals: Sequence[Bool[Tensor, " b"] | None], values: Sequence[Any]
    ) -> tuple[list[Tensor], list[Tensor], Costs]:
        """Runs the body on each part, which are its first arguments. `reals` are the samples to which a part belongs,
        None for all. Returns the carried states, what was emitted, and the extra results."""
        owner, body, count = self.owner, self.body, self.carried
        states, captured = values[:count], values[count:]
        emitted: list[Tensor] = []
        extras: list[Costs] = []
        head_results: list[tuple[Any, ...]] = []
        for index, (part, real) in enumerate(zip(parts, reals, strict=True)):
            if self.split is not None:
                if index == len(head_results):
                    head_results += self._run_heads(self.split, parts[index:], captured)
                body = self.split.with_head_results(head_results[index])
            if self._is_cut(index):
                cut_states = [state.detach() for state in states]
                # A sample that has ended keeps the gradient of its last states.
                states = cut_states if real is None else _where_real(real, cut_states, states)
            results = body(owner, *part, *states, *captured)
            states = results[:count] if real is None else _where_real(real, results[:count], states)
            if self.emits:
                emitted.append(results[count])
            if self.extras:
                extras.append(results[count + self.emits :])
        return [*states], emitted, mean_over_chunks(extras, reals) if self.extras else ()

    def _in_graph(
        self, parts: Sequence[Tensor], reals: Bool[Tensor, "k b"], values: Sequence[Any]
    ) -> tuple[list[Tensor], list[Tensor]]:
        """The loop as one operation of torch, over the slices of `parts` along their first axis. Returns the carried
        states and the stack of what was emitted, then the extra results."""
        owner, body, count = self.owner, self.body, self.carried
        states, captured = values[:count], values[count:]
        # torch needs a carried state.
        carried = states or (parts[0].new_zeros(()),)
        index = torch.arange(reals.shape[0], device=reals.device)
        cuts = torch.zeros_like(index, dtype=torch.bool)
        if self.truncated is not None:
            cuts = (index > 0) & (index % self.truncated == 0)

        def step(states: Sequence[Tensor], inputs: Sequence[Tensor]) -> tuple[Sequence[Tensor], Sequence[Tensor]]:
            *part, real, cut = inputs
            if self.truncated is not None:
                states = _where_real(real & cut, [state.detach() for state in states], states)
            results = body(owner, *part, *states[:count], *captured)
            return _where_real(real, results[:count], states[:count]) or states, results[count:]

        last, outputs = scan_steps(step, carried, [*parts, reals, cuts])
        extras = outputs[int(self.emits) :]
        means = [value.masked_fill(~reals, 0).sum(0) / reals.sum(0).clamp(min=1) for value in extras]
        return [*last[:count], *outputs[: int(self.emits)]], means

    def _run_heads(
        self, split: SplitBody, parts: Sequence[tuple[Any, ...]], captured: Sequence[Any]
    ) -> list[tuple[Any, ...]]:
        """Runs the head for several of the next parts at once, which have one shape. Returns its results for each."""
        first = parts[0][0]
        shapes = _shapes(parts[0])
        most = max(1, _MOST_POSITIONS // max(1, *(shape[:-1].numel() for shape in shapes)))
        group = list(takewhile(lambda part: _shapes(part) == shapes, parts[:most]))
        count = len(group)
        # For each argument of the body, its values for the parts of the group; a head reads no carried state.
        shared = (*(None,) * self.carried, *captured)
        columns = [*zip(*group, strict=True), *((value,) * count for value in shared)]
        results = split.head(self.owner, *(_concatenate(columns[index]) for index in split.reads))
        return list(zip(*(_separate(result, len(first), count) for result in results), strict=True))

    def _outputs(self, results: Sequence[Any], extras: Sequence[Tensor]) -> Any:  # Any: as in `Body`
        """The results of the loop: a tuple, unless there is one result and no extra one."""
        return (*results, *extras) if self.extras or len(results) > 1 else results[0]


@dataclass(eq=False, kw_only=True)
class ChunkScan(Scan):
    """Runs over the chunks of a sequence; what is emitted for them is concatenated."""

    def __call__(self, chunks: Sequence[Chunk] | StackedChunks, *values: Any) -> Any:
        if isinstance(chunks, StackedChunks):
            sequence, mask = chunks.values.transpose(0, 1).flatten(1, 2), chunks.masks.transpose(0, 1).flatten(1, 2)
            before = self._before_in_graph(sequence, mask, chunks.masks.shape[0], chunks.masks.shape[2])
            parts = [chunks.values, chunks.masks, *before]
            results, extras = self._in_graph(parts, chunks.masks.any(2), values)
            if self.emits:
                place = torch.arange(chunks.length, device=results[-1].device)
                length = results[-1].shape[2]
                chunked = results.pop().transpose(1, 2)
                results.append(chunked[place // length, place % length].transpose(0, 1))
            return self._outputs(results, extras)
        reals = [None if mask is None else mask.any(1) for _, mask in chunks]
        states, emitted, costs = self._run(self._with_before(chunks), reals, values)
        return self._outputs([*states, *([torch.cat(emitted, 1)] if self.emits else [])], costs)

    def _with_before(self, chunks: Sequence[Chunk]) -> Sequence[tuple[Any, ...]]:
        """Returns the arguments of the body that belong to each chunk."""
        if self.before is None:
            return chunks
        sequence = torch.cat([values for values, _ in chunks], 1)
        masks = [mask for _, mask in chunks if mask is not None]
        ends = list(accumulate(values.shape[1] for values, _ in chunks))
        before = self._before(sequence, torch.cat(masks, 1) if masks else None, [0, *ends[:-1]])
        return [(*chunk, *window) for chunk, window in zip(chunks, before, strict=True)]


@dataclass(eq=False, kw_only=True)
class PositionScan(Scan):
    """Runs over the positions of a sequence in order; its body takes a vector, and emits one."""

    def __call__(self, sequence: Float[Tensor, "b n d"], *values: Any, mask: Bool[Tensor, "b n"] | None = None) -> Any:
        batch, length, width = sequence.shape
        if is_exporting():
            reals = sequence.new_ones(length, batch, dtype=torch.bool) if mask is None else mask.transpose(0, 1)
            before = self._before_in_graph(sequence, reals.transpose(0, 1), length, 1)
            results, means = self._in_graph([sequence.transpose(0, 1), *before], reals, values)
            if self.emits:
                results.append(results.pop().transpose(0, 1))
            return self._outputs(results, means)
        if not length:  # a step that belongs to no sample
            sequence, mask = sequence.new_zeros(batch, 1, width), sequence.new_zeros(batch, 1, dtype=torch.bool)
        windows = self._before(sequence, mask, range(sequence.shape[1]))
        parts = [(position, *window) for position, window in zip(sequence.unbind(1), windows, strict=True)]
        results, emitted, extras = self._run(parts, [None] * len(parts) if mask is None else mask.unbind(1), values)
        return self._outputs([*results, *([torch.stack(emitted, 1)[:, :length]] if self.emits else [])], extras)


def _where_real(real: Bool[Tensor, " b"], after: Sequence[Tensor], before: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Returns the states after a step, for the samples to which the step belongs; those before it for the others."""
    return tuple(
        torch.where(broadcast_mask(real, new.dim(), has_positions=False), new, old)
        for new, old in zip(after, before, strict=True)
    )


def _concatenate(values: Sequence[Any]) -> Any:
    """Concatenates the values of several chunks along the batch. Equal values that are no tensors are one value."""
    return torch.cat(list(values)) if isinstance(values[0], Tensor) and len(values) > 1 else values[0]


def _shapes(part: Sequence[Any]) -> list[torch.Size]:
    return [value.shape for value in part if value is not None]


def _separate(value: Any, batch: int, count: int) -> Sequence[Any]:
    """Undoes `_concatenate` for `count` chunks."""
    if isinstance(value, tuple):
        return list(zip(*(_separate(item, batch, count) for item in value), strict=True))
    return torch.split(value, batch) if isinstance(value, Tensor) else (value,) * count


def mean_over_chunks(extras: Sequence[Costs], reals: Sequence[Bool[Tensor, " b"] | None]) -> Costs:
    """The means of ponder, depth and charges over a sample's real chunks or positions."""
    if reals[0] is None:
        return tuple(total_of(values) / len(extras) for values in zip(*extras, strict=True))
    real = torch.stack([mark for mark in reals if mark is not None])
    count = real.sum(0).clamp(min=1)
    return tuple(torch.stack(values).masked_fill(~real, 0).sum(0) / count for values in zip(*extras, strict=True))
