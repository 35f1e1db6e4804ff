"""Whether two results are the same but for rounding."""

import torch
from torch import Tensor

# In float64 the order of a sum moves the last of sixteen digits.
TOLERANCE = 1e-9


def difference(left: Tensor, right: Tensor) -> float:
    """By how much two tensors of one shape differ; 0 where that is rounding, or where both are NaN."""
    if left.numel() == 0:
        return 0.0
    left, right = left.detach().double(), right.detach().double()
    far = ~torch.isclose(left, right, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)
    if not far.any():
        return 0.0
    gap = (left - right).abs()[far]
    return float("nan") if not gap.isfinite().all() else float(gap.max())


def differs(left: Tensor, right: Tensor) -> bool:
    return difference(left, right) != 0.0
