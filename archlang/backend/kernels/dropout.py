"""Dropout that is faster than torch's on the CPU, where torch draws a number of 64 bits for each element on one core.

That takes a third of a training step of a Neural Data Router. Here one number decides four elements. The numbers do not
depend on the processor."""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from archlang.backend.runtime.stacking import is_large_on_cpu

LEAST = 1 << 13
"""The number of elements from which it is faster than torch."""
# A decision uses 16 bits, so the rate is rounded to a multiple of 1 / 2^16. Outside of these rates the error would be
# more than a tenth of the smaller probability, so torch decides.
_PARTS = 1 << 16
_LOWEST, _HIGHEST = 1e-4, 0.999


def dropout(x: Float[Tensor, "*b"], rate: float, training: bool) -> Float[Tensor, "*b"]:
    """Returns, in training, 0 with probability `rate`, else x / (1 - rate), as `torch.nn.functional.dropout` does.

    The implementation depends on the device, the size and the rate only."""
    if not training or not rate:
        return x
    if not _LOWEST <= rate <= _HIGHEST or not is_drawn_here(x, x.numel()):
        return F.dropout(x, rate)
    drawn = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(1 << 63), None)
    mask = drawn.view(torch.int16)[: x.numel()] >= round(rate * _PARTS) - _PARTS // 2
    return x * mask.to(x.dtype).view(x.shape).mul_(1 / (1 - rate))


def is_drawn_here(x: Tensor, count: int) -> bool:
    """Returns whether this module draws the numbers for `count` elements on the device of x."""
    return is_large_on_cpu(x, count, LEAST)
