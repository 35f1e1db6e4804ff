"""Masks of lengths that only the result of a loop has."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Shaped
from torch import Tensor


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
