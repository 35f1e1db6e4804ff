"""The functions that the method `forward` of an exported model calls besides blocks; the file has copies of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor

from archlang.backend.runtime.scans import grown


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


def where_real(mask: Tensor | None, new: Tensor, old: Tensor) -> Tensor:
    """Returns the new state; the old one for a sample that has no real position in a chunk."""
    if mask is None:
        return new
    return torch.where(mask.any(1).reshape(-1, *[1] * (new.dim() - 1)), new, old)


def grown_by_part(
    mask: Tensor | None, new: Tensor, old: Tensor, mask_old: Tensor | None, each: int, per_position: int
) -> tuple[Tensor, Tensor | None]:
    """Returns a state that grows by `each` positions, and by `per_position` for each one of the part, and its mask."""
    if mask is None:
        return grown(new, old, mask_old, None, None)
    real = mask.any(1)
    return grown(new, old, mask_old, real, each * real + per_position * mask.sum(1))


def positions(x: Tensor, mask: Tensor | None) -> Iterator[tuple[Tensor, Tensor | None]]:
    """Yields the vector of each position, and its mask."""
    for index, vector in enumerate(x.unbind(1)):
        yield vector, None if mask is None else mask[:, index : index + 1]


def with_before(
    parts: Iterable[tuple[Tensor, Tensor | None]], count: int
) -> Iterator[tuple[Tensor, Tensor | None, Tensor, Tensor | None]]:
    """Yields each part and its mask, with the positions before it, the last `count` or all if that is 0, and theirs."""
    pairs = list(parts)
    pieces = [part.unsqueeze(1) if part.dim() == 2 else part for part, _ in pairs]
    masks = [mask for _, mask in pairs if mask is not None]
    x, end = torch.cat(pieces, 1), 0
    whole_mask = torch.cat(masks, 1) if masks else None
    for (part, mask), piece in zip(pairs, pieces, strict=True):
        begin = max(0, end - count) if count else 0
        yield part, mask, x[:, begin:end], None if whole_mask is None else whole_mask[:, begin:end]
        end += piece.shape[1]


def routed(x: Tensor, weights: Tensor, mask: Tensor | None) -> tuple[Tensor, Sequence[Tensor]]:
    """Returns the real positions as rows, and for each expert the weights of the rows."""
    if mask is not None:
        weights = weights.masked_fill(~mask.unsqueeze(-1), 0)
    return x.reshape(-1, x.shape[-1]), weights.reshape(-1, weights.shape[-1]).unbind(-1)


def weighed(result: Tensor, weight: Tensor) -> Tensor:
    """Returns results times their weights; 0 for a weight of 0, which has no gradient."""
    weight = weight.unsqueeze(-1)
    return result.masked_fill(weight == 0, 0) * weight


def for_rows(value: Tensor | None, weight: Tensor) -> Tensor | None:
    """Returns a value of each sample for each of its rows; ones where the weight of a row is 0: an expert does not
    compute it, and 0 times an infinite gradient is NaN."""
    if value is None:
        return None
    value = value.repeat_interleave(len(weight) // max(1, len(value)), 0)
    chosen = (weight != 0).view(-1, *[1] * (value.dim() - 1))
    return torch.where(chosen, value, 1) if value.is_floating_point() else value
