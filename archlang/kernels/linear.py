"""Linear maps by oneDNN on CPUs where torch's matrix products are slow.

On the CPU torch computes products of float32 with MKL, which uses half of the AVX-512 units of AMD's processors.
oneDNN, which torch includes, uses all of them."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from archlang.backend.runtime.joined_linear import Joinable
from archlang.backend.runtime.transforms import is_transformed
from archlang.kernels.processor import is_made_by

# The number of multiplications from which oneDNN is faster.
_LEAST = 1 << 23
# Subclasses of these, such as fake and distributed tensors, need torch's own operation.
_PLAIN = (Tensor, nn.Parameter)


def linear(
    x: Float[Tensor, "*b d"], weight: Float[Tensor, "k d"], bias: Float[Tensor, " k"] | None = None
) -> Float[Tensor, "*b k"]:
    """Returns x Wᵀ + b, as `torch.nn.functional.linear` does, by the library that is faster for these sizes and dtypes.

    The choice depends on the machine and the sizes only, not on measured times."""
    # torch.compile traces torch's own operations only.
    if torch.compiler.is_compiling() or not _is_for_onednn(x, weight):
        return F.linear(x, weight, bias)
    if torch.is_grad_enabled() and (x.requires_grad or weight.requires_grad):
        result: Tensor = _Linear.apply(x, weight, bias)
        return result
    return _product(x, weight, bias)


class Linear(Joinable):
    """`torch.nn.Linear` that computes with `linear`."""

    product = staticmethod(linear)

    def forward(self, input: Float[Tensor, "*b d"]) -> Float[Tensor, "*b k"]:
        return linear(input, self.weight, self.bias)


def _is_for_onednn(x: Tensor, weight: Tensor) -> bool:
    return (
        x.numel() * len(weight) >= _LEAST
        and has_slow_products()
        and x.device.type == "cpu"
        and x.dtype == weight.dtype == torch.float32
        and type(x) in _PLAIN
        and type(weight) in _PLAIN
        and not torch.is_autocast_enabled("cpu")
        and not is_transformed()
    )


@cache
def has_slow_products() -> bool:
    """Returns whether torch's products of float32 are slow on this processor and torch includes oneDNN."""
    try:
        schema = str(torch.ops.mkldnn._linear_pointwise.default._schema)
    except (AttributeError, RuntimeError):
        return False
    # The operation is internal to torch and may change.
    is_supported = "(Tensor X, Tensor W, Tensor? B, str attr, Scalar?[] scalars, str? algorithm) -> Tensor" in schema
    wide = torch.backends.cpu.get_cpu_capability() == "AVX512"
    return (
        is_made_by("AuthenticAMD")
        and wide
        and is_supported
        and torch.backends.mkl.is_available()
        and torch.backends.mkldnn.is_available()
    )


def _product(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    result: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return result


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:  # Any: torch's context
        ctx.save_for_backward(x, weight)
        return _product(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, by: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:  # Any: as above
        x, weight = ctx.saved_tensors
        of_x, of_weight, of_bias = ctx.needs_input_grad
        rows = by.reshape(-1, by.shape[-1])
        inputs = x.reshape(-1, x.shape[-1])
        return (
            _times(by, weight) if of_x else None,
            _weight_gradient(rows, inputs) if of_weight else None,
            rows.sum(0) if of_bias else None,
        )


def _times(by: Tensor, weight: Tensor) -> Tensor:
    # A second derivative needs an operation that torch can differentiate.
    return by @ weight if torch.is_grad_enabled() else _product(by, weight.t(), None)


def _weight_gradient(by: Float[Tensor, "r k"], x: Float[Tensor, "r d"]) -> Float[Tensor, "k d"]:
    """Returns byᵀ x, as the weight gradient of a 1 x 1 convolution whose pixels are the rows."""
    if torch.is_grad_enabled():
        return by.t() @ x
    (k, d), pixels = (by.shape[1], x.shape[1]), len(x)
    gradient: Tensor = torch.ops.aten.convolution_backward(
        by.view(1, pixels, 1, k).permute(0, 3, 1, 2),
        x.view(1, pixels, 1, d).permute(0, 3, 1, 2),
        x.new_empty(k, d, 1, 1),
        None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1, [False, True, False],
    )[1]  # fmt: skip
    return gradient.view(k, d)
