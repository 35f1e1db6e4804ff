"""The softmax over allowed entries, with a backward that does not mask again.

The weights of hidden entries are 0, so torch's backward of the softmax gives them the gradient 0 by itself. With two
operations for the masks, a training step of attention spends as much time on masks as on the softmax."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from archlang.backend.runtime.transforms import is_transformed


def masked_softmax(x: Float[Tensor, "*b"], allowed: Bool[Tensor, "..."] | None, axis: int = -1) -> Float[Tensor, "*b"]:
    """Returns the softmax over the allowed entries of an axis; the others have weights 0.

    A line without allowed entries, such as a query without keys, has weights 0 and finite gradients.

    Args:
        allowed: which entries are allowed, of a shape that broadcasts to that of x; None for all"""
    if allowed is None:
        return x.softmax(axis)
    hidden = ~allowed
    # torch.compile and torch.export trace torch's own operations.
    if torch.compiler.is_compiling() or is_transformed():
        return _plainly(x, hidden, axis)
    weights: Tensor = _MaskedSoftmax.apply(x, hidden, axis)
    return weights


def _plainly(x: Tensor, hidden: Tensor, axis: int) -> Tensor:
    return _softmax(x, hidden, axis).masked_fill(hidden, 0.0)


def _softmax(x: Tensor, hidden: Tensor, axis: int) -> Tensor:
    # The least number, not -inf: a line without allowed entries would have NaN.
    return x.masked_fill(hidden, torch.finfo(x.dtype).min).softmax(axis)


class _MaskedSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, hidden: Tensor, axis: int) -> Tensor:  # Any: torch's context
        weights = _softmax(x, hidden, axis).masked_fill_(hidden, 0.0)
        ctx.save_for_backward(weights)
        ctx.axis, ctx.dtype = axis, x.dtype
        return weights

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:  # Any: as above
        (weights,) = ctx.saved_tensors
        # Autograd can differentiate this operation again; under autocast on a GPU, weights are wider than x.
        derivative = torch.ops.aten._softmax_backward_data(gradient, weights, ctx.axis, weights.dtype)
        return derivative.to(ctx.dtype), None, None
