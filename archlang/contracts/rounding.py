"""Compares results up to rounding."""

import torch
from torch import Tensor

# In float64 the order of a sum affects the last of sixteen digits.
_TOLERANCE = 1e-9


def difference(left: Tensor, right: Tensor) -> float:
    """Returns the largest absolute difference of two tensors of the same shape; 0 for rounding or if both are NaN."""
    if left.numel() == 0:
        return 0.0
    left, right = left.detach().double(), right.detach().double()
    far = ~torch.isclose(left, right, rtol=_TOLERANCE, atol=_TOLERANCE, equal_nan=True)
    if not far.any():
        return 0.0
    gap = (left - right).abs()[far]
    return float("nan") if not gap.isfinite().all() else float(gap.max())
