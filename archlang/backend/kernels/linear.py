"""Linear maps of many numbers by oneDNN, which takes half the time of MKL on processors of AMD."""

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from archlang.backend.runtime.stacking import is_large_on_cpu

# The products, and the rows, columns and features, from which oneDNN takes less time, with the call.
_LEAST_PRODUCTS = 1 << 23
_LEAST_SIDE = 8
_HAS_BOTH = torch.backends.mkl.is_available() and bool(torch.backends.mkldnn.is_available())  # type: ignore[no-untyped-call]  # torch's own


class KernelLinear(nn.Linear):
    """torch's linear map, by `linear`."""

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b k"]:
        return linear(x, self.weight, self.bias)


def linear(
    x: Float[Tensor, "*b d"], weight: Float[Tensor, "k d"], bias: Float[Tensor, " k"] | None = None
) -> Float[Tensor, "*b k"]:
    """Returns x Wᵀ + b."""
    # Most calls are small, and end here.
    if not is_large_on_cpu(x, x.numel() * len(weight), _LEAST_PRODUCTS) or not _HAS_BOTH:
        return F.linear(x, weight, bias)
    is_single = x.dtype == weight.dtype == torch.float32 and not torch.is_autocast_enabled("cpu")
    if not is_single or min(x.numel() // x.shape[-1], *weight.shape) < _LEAST_SIDE:
        return F.linear(x, weight, bias)
    sources = (x, weight) if bias is None else (x, weight, bias)
    if not torch.is_grad_enabled() or not any(source.requires_grad for source in sources):
        return _product(x, weight, bias)
    y: Tensor = _LargeLinear.apply(x, weight, bias)  # type: ignore[no-untyped-call]  # torch's own
    return y


def _product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    # oneDNN takes a thousand times as long for weights that lie in a larger tensor.
    if not (weight.is_contiguous() or weight.t().is_contiguous()):
        weight = weight.contiguous()
    y: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return y


class _LargeLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:  # Any: torch's own
        ctx.save_for_backward(x, weight)
        return _product(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:  # Any: as above
        x, weight = ctx.saved_tensors
        # Plain products can be differentiated again.
        product = F.linear if torch.is_grad_enabled() else _product
        of_x, of_weight, of_bias = ctx.needs_input_grad
        rows = gradient.flatten(0, -2)
        return (
            product(gradient, weight.t()) if of_x else None,
            product(rows.t(), x.flatten(0, -2).t()) if of_weight else None,
            rows.sum(0) if of_bias else None,
        )
