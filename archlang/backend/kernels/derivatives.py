"""Second derivatives of fast forms: a plain form computes them.

Autograd calls the backward of a fast form with gradients enabled if the caller passes `create_graph=True`. The fast
backward computes no graph, so the plain form then gives the gradients. torch's `once_differentiable` is no remedy:
`torch.autograd.grad` silently omits what it guards."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor


def plain_gradients(
    plain: Callable[..., Tensor | tuple[Tensor, ...]],
    inputs: Sequence[Tensor],
    required: Sequence[bool],
    gradients: Sequence[Tensor],
) -> list[Tensor | None]:
    """Returns the gradients of `plain(*inputs)`, which can be differentiated again.

    Args:
        plain: the plain form
        inputs: its differentiable arguments
        required: for each input whether its gradient is required; None is returned for the others
        gradients: the gradient of each result"""
    with torch.enable_grad(), torch.autocast(inputs[0].device.type, enabled=False):
        # One tensor may be several inputs, each with a gradient of its own.
        copies = [tensor.view_as(tensor) for tensor in inputs]
        results = plain(*copies)
        wanted = [copy for copy, is_required in zip(copies, required, strict=True) if is_required]
        computed = iter(
            torch.autograd.grad(
                results, wanted, gradients, create_graph=True, allow_unused=True, materialize_grads=True
            )
        )
    return [next(computed) if is_required else None for is_required in required]
