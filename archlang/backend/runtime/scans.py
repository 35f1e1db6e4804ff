"""Scans at run time: over the chunks of a sequence, or over its positions; masks of lengths that only loops find."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, takewhile
from typing import Any

import torch
from jaxtyping import Bool, Float, Int, Shaped
from torch import Tensor
from torch.nn.functional import pad

from archlang.backend.runtime.graph_loops import is_exporting, scan_steps
from archlang.backend.runtime.loops import Body, Costs, Loop, SplitBody, broadcast_mask, total_of
from archlang.backend.runtime.parallel_scans import Positions
from archlang.backend.runtime.scan_gradients import ScanGradient
from archlang.backend.runtime.stacking import is_plain

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


@dataclass(frozen=True)
class GrowingState:
    """The index of a carried state that grows by `each` positions in each step, and by `per_position` for each position
    of the chunk."""

    index: int
    each: int
    per_position: int


@dataclass(eq=False, kw_only=True)
class ScanLoop(Loop):
    """Runs over parts in order, which are chunks or positions. A sample without a real position in a part keeps its
    carried states there. `carried` counts these states; with `emits`, the result includes what the steps emit. The
    gradient of the carried states is cut after every `truncated` parts, or nowhere. The body also takes the last
    `before` positions before the part, all of them if that is 0; none are taken if it is None. The masks of `growing`
    states are behind the states, in the arguments and in those of the body. `parallel` is the body for all positions at
    once, if there is one: it takes `Positions` before the other values, and the positions along the batch."""

    carried: int
    emits: bool
    truncated: int | None = None
    before: int | None = None
    growing: tuple[GrowingState, ...] = ()

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

    def _arguments(self, values: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any]]:
        """Splits the arguments behind the parts: the carried states, the masks of growing ones, and captured values."""
        end = self.carried + len(self.growing)
        return values[: self.carried], values[self.carried : end], values[end:]

    def _next_states(
        self,
        results: Sequence[Tensor],
        states: Sequence[Tensor],
        masks: Sequence[Bool[Tensor, "b _m"] | None],
        real: Bool[Tensor, " b"] | None,
        part: Sequence[Any],
    ) -> tuple[list[Tensor], list[Bool[Tensor, "b _m"] | None]]:
        new_states, new_masks = list(results[: self.carried]), list(masks)
        growing = {state.index for state in self.growing}
        if real is not None:
            others = [index for index in range(self.carried) if index not in growing]
            moved = _where_real(real, [new_states[index] for index in others], [states[index] for index in others])
            for index, state in zip(others, moved, strict=True):
                new_states[index] = state
        for place, growth in enumerate(self.growing):
            added = None
            if real is not None:
                added = real * (growth.each + (growth.per_position * part[1].sum(1) if growth.per_position else 0))
            index = growth.index
            new_states[index], new_masks[place] = grown(new_states[index], states[index], masks[place], real, added)
        return new_states, new_masks

    def _run(
        self, parts: Sequence[tuple[Any, ...]], reals: Sequence[Bool[Tensor, " b"] | None], values: Sequence[Any]
    ) -> tuple[list[Tensor], list[Tensor], Costs]:
        """Runs the body on each part, which are its first arguments. `reals` are the samples to which a part belongs,
        None for all. Returns the carried states, what was emitted, and the extra results."""
        owner, count = self.owner, self.carried
        states, masks, captured = self._arguments(values)
        emitted: list[Tensor] = []
        extras: list[Costs] = []
        head_results: list[tuple[Any, ...]] = []
        for index, (part, real) in enumerate(zip(parts, reals, strict=True)):
            if self.truncated is not None and index > 0 and index % self.truncated == 0:
                cut_states = [state.detach() for state in states]
                # A sample that has ended keeps the gradient of its last states.
                states = cut_states if real is None else _where_real(real, cut_states, states)
            if self.split is None:
                results = self.body(owner, *part, *states, *masks, *captured)
            else:
                if index == len(head_results):
                    head_results += self._run_heads(self.split, parts[index:], captured)
                results = self.split.rest(owner, *part, *states, *masks, *captured, *head_results[index])
            states, masks = self._next_states(results, states, masks, real, part)
            if self.emits:
                emitted.append(results[count])
            if self.extras:
                extras.append(results[count + self.emits :])
        return [*states], emitted, mean_over_chunks(extras, reals) if self.extras else ()

    def _in_graph(
        self, parts: Sequence[Tensor], sizes: Int[Tensor, "k b"], length: int, values: Sequence[Any]
    ) -> tuple[list[Tensor], list[Tensor]]:
        """The loop as one operation of torch, over the slices of `parts` along their first axis. `sizes` has the real
        positions of each part, and `length` is that of the sequence. Returns the carried states and the stack of what
        was emitted, then the extra results."""
        owner, body, count = self.owner, self.body, self.carried
        states, masks, captured = self._arguments(values)
        reals = sizes > 0
        states, growing_masks = self._with_room(states, masks, sizes, length)
        # torch needs a carried state.
        carried = states or (parts[0].new_zeros(()),)
        growing = {state.index for state in self.growing}
        index = torch.arange(reals.shape[0], device=reals.device)
        cuts = torch.zeros_like(index, dtype=torch.bool)
        if self.truncated is not None:
            cuts = (index > 0) & (index % self.truncated == 0)

        def step(states: Sequence[Tensor], inputs: Sequence[Tensor]) -> tuple[Sequence[Tensor], Sequence[Tensor]]:
            *part, real, cut = inputs[: len(inputs) - len(growing_masks)]
            masks = inputs[len(inputs) - len(growing_masks) :]
            if self.truncated is not None:
                states = _where_real(real & cut, [state.detach() for state in states], states)
            results = body(owner, *part, *states[:count], *masks, *captured)
            # Real positions come first, so what a growing state has no room for is padding.
            new = [
                after[:, : before.shape[1]] if index in growing else after
                for index, (after, before) in enumerate(zip(results[:count], states[:count], strict=True))
            ]
            return _where_real(real, new, states[:count]) or states, results[count:]

        last, outputs = scan_steps(step, carried, [*parts, reals, cuts, *growing_masks])
        extras = outputs[int(self.emits) :]
        means = [value.masked_fill(~reals, 0).sum(0) / reals.sum(0).clamp(min=1) for value in extras]
        return [*last[:count], *outputs[: int(self.emits)]], means

    def _with_room(
        self, states: Sequence[Tensor], masks: Sequence[Any], sizes: Int[Tensor, "k b"], length: int
    ) -> tuple[list[Tensor], list[Bool[Tensor, "k b _m"]]]:
        """Returns the carried states, the growing ones padded to their last length, and the masks that these have
        before each part."""
        padded, growing_masks = list(states), []
        for state, mask in zip(self.growing, masks, strict=True):
            first = states[state.index]
            added = state.each * (sizes > 0) + state.per_position * sizes
            room = state.each * sizes.shape[0] + state.per_position * length
            padded[state.index] = torch.cat((first, first.new_zeros(first.shape[0], room, first.shape[2])), 1)
            before = added.cumsum(0) - added + (first.shape[1] if mask is None else mask.sum(1))
            growing_masks.append(torch.arange(first.shape[1] + room, device=first.device) < before[:, :, None])
        return padded, growing_masks

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
        shared = (*(None,) * (self.carried + len(self.growing)), *captured)
        columns = [*zip(*group, strict=True), *((value,) * count for value in shared)]
        results = split.head(self.owner, *(_concatenate(columns[index]) for index in split.reads))
        return list(zip(*(_separate(result, len(first), count) for result in results), strict=True))

    def _outputs(self, results: Sequence[Any], extras: Sequence[Tensor]) -> Any:  # Any: as in `Body`
        """The results of the loop: a tuple, unless there is one result and no extra one."""
        return (*results, *extras) if self.extras or len(results) > 1 else results[0]


@dataclass(eq=False, kw_only=True)
class ChunkScan(ScanLoop):
    """Runs over the chunks of a sequence; what is emitted for them is concatenated."""

    def __call__(self, chunks: Sequence[Chunk] | StackedChunks, *values: Any) -> Any:
        if isinstance(chunks, StackedChunks):
            sequence, mask = chunks.values.transpose(0, 1).flatten(1, 2), chunks.masks.transpose(0, 1).flatten(1, 2)
            before = self._before_in_graph(sequence, mask, chunks.masks.shape[0], chunks.masks.shape[2])
            parts = [chunks.values, chunks.masks, *before]
            results, extras = self._in_graph(parts, chunks.masks.sum(2), chunks.length, values)
            if self.emits:
                place = torch.arange(chunks.length, device=results[-1].device)
                length = results[-1].shape[2]
                chunked = results.pop().transpose(1, 2)
                results.append(chunked[place // length, place % length].transpose(0, 1))
            return self._outputs(results, extras)
        steps = list(filled_parts(self.with_before(chunks)))
        states, emitted, costs = self._run([step[1:] for step in steps], [step[0] for step in steps], values)
        return self._outputs([*states, *([torch.cat(emitted, 1)] if self.emits else [])], costs)

    def with_before(self, chunks: Sequence[Chunk]) -> Sequence[tuple[Any, ...]]:
        """Returns the arguments of the body that belong to each chunk."""
        if self.before is None:
            return chunks
        sequence = torch.cat([values for values, _ in chunks], 1)
        masks = [mask for _, mask in chunks if mask is not None]
        ends = list(accumulate(values.shape[1] for values, _ in chunks))
        before = self._before(sequence, torch.cat(masks, 1) if masks else None, [0, *ends[:-1]])
        return [(*chunk, *window) for chunk, window in zip(chunks, before, strict=True)]


@dataclass(eq=False, kw_only=True)
class PositionScan(ScanLoop):
    """Runs over the positions of a sequence in order; its body takes a vector, and emits one. `gradient` is the body
    with a backward pass of its own, if there is one."""

    gradient: ScanGradient | None = None

    def __call__(
        self,
        sequence: Float[Tensor, "b n d"],
        *values: Any,
        mask: Bool[Tensor, "b n"] | None = None,
        earlier: Float[Tensor, "b _k d"] | None = None,
    ) -> Any:
        """`earlier` are positions that only the body's `before` takes; with them, nothing is padding."""
        batch, length, width = sequence.shape
        if mask is not None and length:
            sequence = torch.where(mask[..., None], sequence, sequence[:, :1].detach())
        if is_exporting():
            reals = sequence.new_ones(length, batch, dtype=torch.bool) if mask is None else mask.transpose(0, 1)
            before = self._before_in_graph(sequence, reals.transpose(0, 1), length, 1)
            results, means = self._in_graph([sequence.transpose(0, 1), *before], reals.long(), length, values)
            if self.emits:
                results.append(results.pop().transpose(0, 1))
            return self._outputs(results, means)
        if not length:  # a step that belongs to no sample
            sequence, mask = sequence.new_zeros(batch, 1, width), sequence.new_zeros(batch, 1, dtype=torch.bool)
        if self.parallel is not None and length > 1 and is_plain():
            return self._many_positions_at_once(self.parallel, sequence, values, mask)
        if self.gradient is not None and is_plain() and self.gradient.fits(self.owner, sequence):
            states, _, captured = self._arguments(values)
            last, outputs = self.gradient(self.owner, sequence, states, captured, mask)
            return self._outputs([*last, *outputs], ())
        known = sequence if earlier is None else torch.cat((earlier, sequence), 1)
        windows = self._before(known, mask, range(known.shape[1])[-sequence.shape[1] :])
        parts = [(position, *window) for position, window in zip(sequence.unbind(1), windows, strict=True)]
        results, emitted, extras = self._run(parts, [None] * len(parts) if mask is None else mask.unbind(1), values)
        if not length:
            for state in self.growing:
                results[state.index] = values[state.index]
        return self._outputs([*results, *([torch.stack(emitted, 1)[:, :length]] if self.emits else [])], extras)

    def _many_positions_at_once(
        self, body: Body, sequence: Float[Tensor, "b n d"], values: Sequence[Any], mask: Bool[Tensor, "b n"] | None
    ) -> Any:  # Any: as in `_outputs`
        states, _, captured = self._arguments(values)
        batch, length, _ = sequence.shape
        size = max(2, _MOST_POSITIONS // max(1, batch))
        emitted = []
        for first in range(0, length, size):
            part = sequence[:, first : first + size]
            positions = Positions(batch, part.shape[1], None if mask is None else mask[:, first : first + size])
            results = body(self.owner, positions, part.flatten(0, 1), *states, *captured)
            states = results[: self.carried]
            emitted += [positions.cut(result) for result in results[self.carried :]]
        return self._outputs([*states, *([torch.cat(emitted, 1)] if self.emits else [])], ())


def filled_parts(parts: Sequence[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """Yields which samples have a part, None for all, then the part, its mask, and what is behind these. A sample that
    does not have it computes on a copy of its first part, with one position at least: 0 times the gradients of what
    no result reads must not be NaN, and those of zeros can be infinite, as of a quotient by their mean."""
    first, first_mask, *_ = parts[0]
    for part, mask, *others in parts:
        if mask is None:
            yield None, part, mask, *others
            continue
        real, begun = mask.any(1), pad(first_mask[:, 1 : mask.shape[1]], (1, 0), value=True)
        copied = _where_real(real, [part, mask], [first[:, : part.shape[1]].detach(), begun])
        yield real, *copied, *others


def _where_real(real: Bool[Tensor, " b"], after: Sequence[Tensor], before: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Returns the states after a step, for the samples to which the step belongs; those before it for the others."""
    return tuple(
        torch.where(broadcast_mask(real, new.dim(), has_positions=False), new, old)
        for new, old in zip(after, before, strict=True)
    )


def grown(
    new: Float[Tensor, "b _m d"],
    old: Float[Tensor, "b _k d"],
    mask: Bool[Tensor, "b _k"] | None,
    real: Bool[Tensor, " b"] | None,
    added: Int[Tensor, " b"] | None,
) -> tuple[Float[Tensor, "b _m d"], Bool[Tensor, "b _m"] | None]:
    """Returns a growing state after a part, and its mask. `mask` is that before the part. A sample to which the part
    does not belong keeps its state; `real` are the others, and `added` counts the positions that their states have
    grown by. If all samples have the whole part, these are None."""
    more = new.shape[1] - old.shape[1]
    if real is not None:
        new = torch.where(real[:, None, None], new, pad(old, (0, 0, 0, more)))
    elif mask is None:
        return new, None
    count = (old.shape[1] if mask is None else mask.sum(1)) + (more if added is None else added)
    assert isinstance(count, Tensor)
    return new, torch.arange(new.shape[1], device=new.device) < count[:, None]


def _concatenate(values: Sequence[Any]) -> Any:
    """Concatenates the values of several chunks along the batch. Equal values that are no tensors are one value."""
    return torch.cat(list(values)) if isinstance(values[0], Tensor) and len(values) > 1 else values[0]


def _shapes(part: Sequence[Any]) -> list[torch.Size]:
    return [value.shape for value in part if value is not None]


def _separate(value: Any, batch: int, count: int) -> Sequence[Any]:
    """Undoes `_concatenate` for `count` chunks."""
    if isinstance(value, tuple):
        return list(zip(*(_separate(item, batch, count) for item in value), strict=True))
    return torch.split(value, [batch] * count) if isinstance(value, Tensor) else (value,) * count


def mean_over_chunks(extras: Sequence[Costs], reals: Sequence[Bool[Tensor, " b"] | None]) -> Costs:
    """The means of ponder, depth and auxiliary losses over a sample's real chunks or positions."""
    if reals[0] is None:
        return tuple(total_of(values) / len(extras) for values in zip(*extras, strict=True))
    real = torch.stack([mark for mark in reals if mark is not None])
    count = real.sum(0).clamp(min=1)
    return tuple(torch.stack(values).masked_fill(~real, 0).sum(0) / count for values in zip(*extras, strict=True))


def derived_mask(
    value: Shaped[Tensor, "b *_"], axis: int, factors: Sequence[int], *masks: Bool[Tensor, "b _"] | None
) -> Bool[Tensor, "b _"] | None:
    """Returns the mask of an axis of a value, whose length is a sum: the length of each mask times its factor, and a
    constant. Returns None if all positions are real, as where a mask is None."""
    padding = [
        factor * (~mask).sum(1, keepdim=True) for factor, mask in zip(factors, masks, strict=True) if mask is not None
    ]
    if not padding:
        return None
    size = value.shape[axis]
    return torch.arange(size, device=value.device) < size - sum(padding)


def mask_of_chunks(chunks: Sequence[Chunk] | StackedChunks) -> Bool[Tensor, "b _k"] | None:
    """Returns which samples have which chunks; None if all have all of them."""
    if isinstance(chunks, StackedChunks):
        return chunks.masks.any(2).transpose(0, 1)
    masks = [mask.any(1) for _, mask in chunks if mask is not None]
    return torch.stack(masks, 1) if masks else None
