"""Softmax attention by torch's fused kernels, with the derivatives that only torch's plain form has."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Shaped
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from archlang.backend.runtime.stacking import needs_plain_form, plain_gradients
from archlang.errors import ErrorWithRemedy


class DerivativeError(ErrorWithRemedy):
    """A derivative that a fast form does not have, nor its plain form."""


_WITHOUT_KERNELS = (
    "Put the call of the model into `with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):`, or "
    "set the dropout of the attention to 0."
)


def scaled_dot_product_attention(
    query: Float[Tensor, "b h n c"],
    key: Float[Tensor, "b g m c"],
    value: Float[Tensor, "b g m c"],
    attn_mask: Shaped[Tensor, "..."] | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Float[Tensor, "b h n c"]:
    """Returns softmax attention, as `torch.nn.functional.scaled_dot_product_attention` does.

    The plain form, whose memory is quadratic in the length, computes second derivatives and the transforms of
    torch.func."""
    attend = partial(
        F.scaled_dot_product_attention, dropout_p=dropout_p, is_causal=is_causal, scale=scale, enable_gqa=enable_gqa
    )
    if not torch.compiler.is_compiling() and key.shape[2] == 0:
        # Without keys, torch's kernel on a CPU returns what was in memory.
        nothing = key.sum((1, 2, 3), keepdim=True) + value.sum((1, 2), keepdim=True)
        return query[..., :0].sum(-1, keepdim=True) + nothing
    # torch.compile traces torch's own operation.
    if not torch.compiler.is_compiling() and needs_plain_form():
        return _plainly(attend, query, key, value, attn_mask)
    result = attend(query, key, value, attn_mask)
    if torch.compiler.is_compiling() or result.grad_fn is None:
        return result
    if not result.grad_fn.name().startswith("ScaledDotProduct"):  # those of the fused kernels
        return result
    fused: Tensor = _Fused.apply(result, query, key, value, attn_mask, attend, dropout_p)  # type: ignore[no-untyped-call]  # torch's own
    return fused


def _plainly(
    attend: Callable[..., Tensor], query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None
) -> Tensor:
    with sdpa_kernel(SDPBackend.MATH):
        return attend(query, key, value, attn_mask)


class _Fused(torch.autograd.Function):
    """The identity of a result of a fused kernel. If the gradients will be differentiated again, it passes them to the
    plain form's arguments, and not to the kernel."""

    @staticmethod
    def forward(
        ctx: Any,  # torch's context
        result: Tensor,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None,
        attend: Callable[..., Tensor],
        dropout_p: float,
    ) -> Tensor:
        ctx.save_for_backward(query, key, value, attn_mask)
        ctx.attend, ctx.dropout_p = attend, dropout_p
        return result.view_as(result)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # Any: as above
        if not torch.is_grad_enabled():
            return gradient, None, None, None, None, None, None
        if ctx.dropout_p:
            message = "a second derivative of attention needs the numbers that its dropout drew, which no kernel keeps"
            raise DerivativeError(message, _WITHOUT_KERNELS)
        query, key, value, attn_mask = ctx.saved_tensors
        plain = partial(_plainly, ctx.attend, attn_mask=attn_mask)
        gradients = plain_gradients(plain, (query, key, value), ctx.needs_input_grad[1:4], (gradient,))
        return None, *gradients, None, None, None
