"""Masks of lengths that only the result of a loop has."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Shaped
from torch import Tensor

from archlang.backend.runtime.scans import Chunk, StackedChunks


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
