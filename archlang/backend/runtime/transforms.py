"""Whether a transform of torch.func, or forward-mode differentiation, acts on a call.

The autograd functions of fast forms have no rules for them, and under vmap Python control flow cannot read a value."""

import torch
from torch.autograd import forward_ad

from archlang.backend.runtime.stacking import is_stacked


def is_transformed() -> bool:
    """Returns whether a transform acts on the call. Call it only if torch.compile does not trace."""
    return torch._C._are_functorch_transforms_active() or forward_ad._current_level >= 0


def needs_plain_form() -> bool:
    """Returns whether only a plain form can compute the call. Stacked models are transformed too, but their fast forms
    run outside of vmap."""
    return is_transformed() and not is_stacked()
