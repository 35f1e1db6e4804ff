"""Dropout that is faster than torch's on CPUs where torch draws random numbers slowly.

On the CPU torch draws a number of 64 bits for each element, on one core, except with Intel's library on Intel's
processors. This takes a third of a training step of a Neural Data Router. Here one number decides four elements."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from archlang.backend.runtime.transforms import is_transformed
from archlang.kernels.processor import is_made_by

# The number of elements from which it is faster than torch.
_LEAST = 1 << 13
# A decision uses 16 bits, so the rate is rounded to a multiple of 1 / 2^16.
_PARTS = 1 << 16


def dropout(x: Float[Tensor, "*b"], rate: float, training: bool) -> Float[Tensor, "*b"]:
    """Returns, in training, 0 with probability `rate`, else x / (1 - rate), as `torch.nn.functional.dropout` does.

    The implementation depends on the machine and the size only."""
    dropped = round(rate * _PARTS)
    if not training or not is_drawn_here(x, x.numel()) or not 0 < dropped < _PARTS:
        return F.dropout(x, rate, training)
    return x * _noise(x, dropped).mul_(1 / (1 - rate))


def is_drawn_here(x: Tensor, count: int) -> bool:
    """Returns whether this module draws the numbers for `count` elements on the device of x."""
    return (
        count >= _LEAST
        and x.device.type == "cpu"
        # torch.compile and stacked models need torch's own operation. Tracing must not read the processor's name.
        and not torch.compiler.is_compiling()
        and not is_transformed()
        and has_slow_draws()
    )


def _noise(x: Tensor, dropped: int) -> Tensor:
    """Returns 0 for each dropped element, else 1."""
    count = x.numel()
    drawn = torch.empty(-(-count // 4), dtype=torch.int64).random_(-(1 << 63), None)
    mask = drawn.view(torch.int16)[:count] >= dropped - _PARTS // 2
    return mask.to(x.dtype).view(x.shape)


def has_slow_draws() -> bool:
    """Returns whether torch draws the numbers of dropout one by one on this processor."""
    return not (torch.backends.mkl.is_available() and is_made_by("GenuineIntel"))
