"""An LSTM as one operation of torch, by cuDNN or oneDNN."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import linear

from archlang.backend.runtime.stacking import is_plain, plain_gradients

States = tuple[Float[Tensor, "b k"], Float[Tensor, "b k"]]


def lstm(
    x: Float[Tensor, "b n d"], states: States, weights: Sequence[Tensor], mask: Bool[Tensor, "b n"] | None
) -> tuple[Float[Tensor, "b n k"], Float[Tensor, "b k"], Float[Tensor, "b k"]]:
    """Returns h_1, …, h_n, and the last h and c of each sample. `weights` are those of x, [4k, d], of h, [4k, k], and
    biases [4k], if there are any; their rows are i, f, g, o:

        c_t = σ(f) c_{t-1} + σ(i) tanh(g),    h_t = σ(o) tanh(c_t)

    Real positions come first. A padded one changes neither state, and its result means nothing."""
    of_input, *others = weights
    if mask is not None:
        # A further feature, of padding, closes its input gate and opens its forget gate: σ is 0 and 1 there.
        padding, most = ~mask[..., None], torch.finfo(x.dtype).max / 4
        x = torch.cat((x.masked_fill(padding, 0), padding.to(x.dtype)), -1)
        column = x.new_zeros(4, len(of_input) // 4, 1)
        column[0], column[1] = -most, most  # numbers of the host in a tensor could not be captured in a CUDA graph
        of_input = torch.cat((of_input, column.flatten(0, 1)), 1)
    y, h, c = _Lstm.apply(x, *states, of_input, *others)  # type: ignore[no-untyped-call]  # torch's own
    if mask is not None:
        count = mask.sum(1)
        at_end = y[torch.arange(len(y), device=y.device), count - 1]
        h = torch.where((count > 0)[:, None], at_end, states[0])
    return y, h, c


class _Lstm(torch.autograd.Function):
    """torch's own has no second derivatives."""

    @staticmethod
    def forward(ctx: Any, *inputs: Tensor) -> tuple[Tensor, ...]:  # Any: torch's own
        needed = any(ctx.needs_input_grad)
        own = [value.detach().requires_grad_(needed) for value in inputs]
        with torch.set_grad_enabled(needed):
            results = _fused(*own)
        if needed:
            ctx.save_for_backward(*inputs)
            ctx.graph = own, results
        return tuple(result.detach() for result in results)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:  # Any: torch's own
        inputs = ctx.saved_tensors  # an error if they have changed, or a first backward pass has freed them
        if torch.is_grad_enabled() or not is_plain():
            return (*plain_gradients(_plain, inputs, ctx.needs_input_grad, gradients),)
        own, results = ctx.graph
        again: bool = torch._C._autograd._get_current_graph_task_keep_graph()
        if not again:
            del ctx.graph  # this frees its memory, also while the result is held
        return torch.autograd.grad(results, own, gradients, retain_graph=again)


def _fused(x: Tensor, h: Tensor, c: Tensor, *weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    _, _, *biases = weights
    separate = [*weights, *map(torch.zeros_like, biases)]  # torch has two biases
    # cuDNN takes weights that are one tensor.
    joined = torch.cat([weight.flatten() for weight in separate])
    parts = torch.split(joined, [weight.numel() for weight in separate])
    parameters = [part.view_as(weight) for part, weight in zip(parts, separate, strict=True)]
    form = (bool(biases), 1, 0.0, torch.is_grad_enabled(), False, True)
    y, last_h, last_c = torch.lstm(x, [h[None].contiguous(), c[None].contiguous()], parameters, *form)
    return y, last_h[0], last_c[0]


def _plain(x: Tensor, h: Tensor, c: Tensor, *weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    of_input, of_state, *biases = weights
    results = []
    for inputs in linear(x, of_input, *biases).unbind(1):
        h, c = lstm_step(inputs + linear(h, of_state), c)
        results.append(h)
    return torch.stack(results, 1), h, c


def lstm_step(gates: Float[Tensor, "b _gates"], c: Float[Tensor, "b k"]) -> States:
    i, f, g, o = gates.chunk(4, dim=-1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c
