"""The functions that an exported model calls besides blocks: its loops, and what they need. The file has copies.

A body takes the module that owns its blocks, then its values. It returns the states after one step, what the step
emits, and costs: numbers of each sample, [b]."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from archlang.backend.runtime.halting import HaltingBlock
from archlang.backend.runtime.loops import broadcast_mask, mean_steps
from archlang.backend.runtime.scans import filled_parts, grown, mean_over_chunks


def real_positions(x: Tensor, lengths: Tensor | None) -> Tensor | None:
    """Returns the mask of the real positions of a padded batch, [b n]; None if all positions are real."""
    if lengths is None:
        return None
    return torch.arange(x.shape[1], device=x.device) < lengths[:, None]


def filled_padding(x: Tensor, mask: Tensor | None) -> Tensor:
    """Returns x with a copy of the sample's first position at padding, zeros if it has none."""
    if mask is None:
        return x
    mask = mask.reshape(*mask.shape, *[1] * (x.dim() - 2))
    return torch.where(mask, x, x[:, :1].detach().masked_fill(~mask[:, :1], 0))


def repeated(
    body: Callable[..., Any],
    owners: Sequence[nn.Module],
    states: Sequence[Any],
    captured: Sequence[Any],
    emits: bool,
    detached: int,
    terms: int,
    depth: int | None,
) -> Sequence[Any]:
    """Runs the body once for each owner, the first `detached` times without gradients, and the last of a settled loop
    once for each of the `terms` of its gradient. Returns the states, the last emission, and the sums of the costs; the
    mean of the depth, which has the index `depth` among them."""
    count, results = len(states), [*states]
    totals: list[Any] = []
    for index, owner in enumerate(owners):
        with torch.set_grad_enabled(torch.is_grad_enabled() and index >= detached):
            fixed, results = results, list(body(owner, *results[:count], *captured))
            for _ in range(terms - 1 if index == len(owners) - 1 else 0):
                # The same states, whose differences from themselves are 0, but have a gradient.
                again = [
                    old + (new - new.detach()) if isinstance(new, Tensor) else old
                    for old, new in zip(fixed[:count], results, strict=False)
                ]
                results = list(body(owner, *again, *captured))
        if index < detached:
            results = [value.detach() if isinstance(value, Tensor) else value for value in results]
        costs = results[count + emits :]
        totals = [sum(pair) for pair in zip(totals, costs, strict=True)] if totals else costs
    if depth is not None:
        totals[depth] = totals[depth] / len(owners)
    return *results[: count + emits], *totals


def halted(
    body: Callable[..., Any],
    owner: nn.Module,
    block: HaltingBlock,
    states: Sequence[Any],
    captured: Sequence[Any],
    mask: Tensor | None,
    limit: int,
    state: int,
    mixture: bool,
    shapes: Sequence[tuple[int, bool]],
    has_depth: bool,
) -> Sequence[Any]:
    """Runs the body until the block halts all samples, at most `limit` times. The block decides by the state of this
    index; the body takes the mean so far if `mixture`. `shapes` has the rank of each state and of the emission, and
    whether it has the positions of the halting state. Returns the states, the emission, the ponder and the depth."""
    halting, count = block.start(states[state], mask), len(states)
    values, inner = [*states, *[None] * (len(shapes) - count)], 0
    for _ in range(limit):
        values[state] = halting.state
        results = body(owner, *values[:count], *[halting.mixture] * mixture, *captured)
        halting = block.advance(halting, results[state], mask)
        for index, (rank, has_positions) in enumerate(shapes):
            moved = broadcast_mask(halting.accepted, rank, has_positions)
            old = values[index]
            values[index] = results[index] if old is None else torch.where(moved, results[index], old)
        for cost in results[len(shapes) :]:
            inner = inner + cost.masked_fill(~broadcast_mask(halting.accepted, 1, False), 0)
        if not halting.live.any():
            break
    values[state] = halting.mixture
    return *values, halting.ponder + inner, *([mean_steps(halting, mask)] if has_depth else [])


def scanned(
    body: Callable[..., Any],
    owner: nn.Module,
    parts: Sequence[Any],
    states: Sequence[Any],
    masks: Sequence[Any],
    captured: Sequence[Any],
    emits: bool,
    by_position: bool,
    truncated: int | None,
    growing: Mapping[int, tuple[int, int]],
) -> Sequence[Any]:
    """Runs the body on each part, cutting gradients after every `truncated` ones. `masks` are those of the growing
    states: by its index, the positions that each grows by in a step, and for each position of the part. Returns the
    states, the joined emissions, and the means of the costs."""
    reals, outputs, costs = [], [], []
    for index, (real, part, mask, *before) in enumerate(filled_parts(parts)):
        if truncated and index and index % truncated == 0:
            # A sample that has ended keeps the gradient of its last states.
            states = [where_real(real, own.detach(), own) for own in states]
        own = [part] if by_position else [part, mask]
        results = body(owner, *own, *before, *states, *masks, *captured)
        reals.append(real)
        outputs += results[len(states) : len(states) + emits]
        costs.append(results[len(states) + emits :])
        old, states, old_masks, masks = states, [], iter(masks), []
        for place, (new, state) in enumerate(zip(results, old, strict=False)):
            if place in growing:
                grown_state, grown_mask = grown_by_part(real, new, state, next(old_masks), mask, *growing[place])
                states.append(grown_state)
                masks.append(grown_mask)
            else:
                states.append(where_real(real, new, state))
    is_empty = by_position and parts[0][1] is not None and not parts[0][1].shape[1]
    outputs = [torch.stack(outputs, 1) if by_position else torch.cat(outputs, 1)] if emits else []
    joined = [output[:, :0] if is_empty else output for output in outputs]
    return *states, *joined, *mean_over_chunks(costs, reals)


def mixed(
    body: Callable[..., Any],
    owners: Sequence[nn.Module],
    values: Tensor,
    weights: Tensor,
    captured: Sequence[Any],
    mask: Tensor | None,
) -> Tensor:
    """Returns the results of the body for each owner, times the weights of the positions, added up. A weight of 0 has
    no gradient."""
    if mask is not None:
        weights = weights.masked_fill(~mask.unsqueeze(-1), 0)
    rows = values.reshape(-1, values.shape[-1])
    results = []
    for owner, weight in zip(owners, weights.reshape(-1, weights.shape[-1]).unbind(-1), strict=True):
        (result,) = body(owner, *(for_rows(value, weight) for value in (rows, *captured)))
        weight = weight.unsqueeze(-1)
        results.append(result.masked_fill(weight == 0, 0) * weight)
    return torch.stack(results).sum(0).view(*values.shape[:-1], result.shape[-1])


def where_real(real: Tensor | None, new: Tensor, old: Tensor) -> Tensor:
    """Returns the new state; the old one for a sample that does not have a part."""
    return new if real is None else torch.where(real.reshape(-1, *[1] * (new.dim() - 1)), new, old)


def grown_by_part(
    real: Tensor | None, new: Tensor, old: Tensor, mask_old: Tensor | None, mask: Tensor, each: int, per_position: int
) -> tuple[Tensor, Tensor | None]:
    """Returns a state that grows by `each` positions, and by `per_position` for each one of the part, and its mask."""
    added = None if real is None else real * (each + per_position * mask.sum(1))
    return grown(new, old, mask_old, real, added)


def positions(x: Tensor, mask: Tensor | None) -> Sequence[tuple[Tensor, Tensor | None]]:
    """Returns the vector of each position, and its mask; of no positions, a vector whose mask has none."""
    if not x.shape[1]:
        return [(x.new_zeros(x.shape[0], x.shape[2]), x.new_zeros(x.shape[0], 0, dtype=torch.bool))]
    masks = [None] * x.shape[1] if mask is None else mask.unsqueeze(-1).unbind(1)
    return list(zip(x.unbind(1), masks, strict=True))


def with_before(
    pairs: Sequence[tuple[Tensor, Tensor | None]], count: int
) -> Sequence[tuple[Tensor, Tensor | None, Tensor, Tensor | None]]:
    """Returns each part, its mask, the positions before it, the last `count` or all if that is 0, and their mask."""
    parts = []
    pieces = [part.unsqueeze(1) if part.dim() == 2 else part for part, _ in pairs]
    masks = [mask for _, mask in pairs if mask is not None]
    x, end = torch.cat(pieces, 1), 0
    whole_mask = torch.cat(masks, 1) if masks else None
    for (part, mask), piece in zip(pairs, pieces, strict=True):
        begin = max(0, end - count) if count else 0
        parts.append((part, mask, x[:, begin:end], None if whole_mask is None else whole_mask[:, begin:end]))
        end += piece.shape[1]
    return parts


def for_rows(value: Any, weight: Tensor) -> Any:
    """Returns a value of each sample for each of its rows; ones where the weight of a row is 0: an expert does not
    compute it, and 0 times an infinite gradient is NaN."""
    if isinstance(value, list | tuple):
        return type(value)(for_rows(item, weight) for item in value)
    if not isinstance(value, Tensor):
        return value
    value = value.repeat_interleave(len(weight) // max(1, len(value)), 0)
    chosen = (weight != 0).view(-1, *[1] * (value.dim() - 1))
    return torch.where(chosen, value, 1) if value.is_floating_point() else value
