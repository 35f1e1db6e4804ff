"""Dropout where torch draws its numbers slowly.

On the CPU torch draws one number of 64 bits for each element, on one core, except where Intel's library does it on
Intel's processors. In training that is a third of a step of a Neural Data Router. Here one such number decides over
four elements."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from archlang.kernels.processor import is_made_by

# Elements from which on it is faster: below, its calls cost more than they spare.
_LEAST = 1 << 13
# A decision is made by 16 bits, so that elements are dropped in so many parts, to the nearest of the rate.
_PARTS = 1 << 16


def dropout(x: Float[Tensor, "*b"], rate: float, training: bool) -> Float[Tensor, "*b"]:
    """In training, 0 with the probability `rate`, else x / (1 - rate): as `torch.nn.functional.dropout`, by the way
    that is faster here, which depends on the machine and the size only."""
    dropped = round(rate * _PARTS)
    if not training or not is_drawn_here(x, x.numel()) or not 0 < dropped < _PARTS:
        return F.dropout(x, rate, training)
    return x * _noise(x, dropped).mul_(1 / (1 - rate))


def is_drawn_here(x: Tensor, count: int) -> bool:
    """Whether so many elements, on the device of x, are dropped by numbers that are drawn here."""
    return (
        count >= _LEAST
        and x.device.type == "cpu"
        and has_slow_draws()
        # A compiler and stacked models have ways of their own.
        and not torch.compiler.is_compiling()
        and not torch._C._are_functorch_transforms_active()
    )


def _noise(x: Tensor, dropped: int) -> Tensor:
    """0 where an element is dropped, else 1."""
    count = x.numel()
    drawn = torch.empty(-(-count // 4), dtype=torch.int64).random_(-(1 << 63), None)
    stays = drawn.view(torch.int16)[:count] >= dropped - _PARTS // 2
    return stays.to(x.dtype).view(x.shape)


def has_slow_draws() -> bool:
    """Whether torch draws the numbers of dropout one by one on this processor."""
    return not (torch.backends.mkl.is_available() and is_made_by("GenuineIntel"))
