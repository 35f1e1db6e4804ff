"""The pages of blocks/models/linear_mixers.arch equal loops over positions and heads."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn.functional import softplus

from tests.conftest import Compiled
from tests.slow_pages import N, Slow, Weights, equals_slow, rotated, silu, unit


def short(w: Weights, name: str, x: Tensor) -> Tensor:
    """The convolution over four positions."""
    kernel = [w[f"{name}.learned{suffix}"][0] for suffix in ("", "_2", "_3", "_4")]
    return 0.5 * torch.stack([sum((kernel[a] * x[i - a] for a in range(min(4, i + 1))), x[0] * 0) for i in range(N)])


def by_head(y: Callable[[int, int, slice], Tensor], width: int = 4) -> Tensor:
    """The results of all positions and two heads, each head from position to position."""
    parts = [[y(i, h, slice(width * h, width * h + width)) for i in range(N)] for h in range(2)]
    return torch.stack([torch.cat(row) for row in zip(*parts, strict=True)])


def corrected(q: Tensor, k: Tensor, v: Tensor, beta: Tensor, decay: Tensor) -> Tensor:
    """S <- α (I - β k kᵀ) S + β k vᵀ, read by queries over the root of their features."""
    state = [torch.zeros(4, 4), torch.zeros(4, 4)]

    def step(i: int, h: int, part: slice) -> Tensor:
        reflected = torch.eye(4) - beta[i, h] * torch.outer(k[i, part], k[i, part])
        state[h] = decay[i, h] * reflected @ state[h] + beta[i, h] * torch.outer(k[i, part], v[i, part])
        return q[i, part] / 2 @ state[h]

    return by_head(step)


def delta_net(w: Weights, x: Tensor) -> Tensor:
    pairs = (("read", ""), ("write", "_2"), ("give", "_3"))
    q, k, v = (silu(short(w, f"short_convolution{suffix}", w.map(name, x))) for name, suffix in pairs)
    y = corrected(unit(q, 2), unit(k, 2), v, 2 * torch.sigmoid(w.map("linear", x)), torch.ones(N, 2))
    return w.map("linear_2", w.rms("rms_norm", y, 2))


def gated_delta_net(w: Weights, x: Tensor) -> Tensor:
    q, k, v = (silu(short(w, f"short_convolution{suffix}", w.map(f"linear{suffix}", x))) for suffix in ("", "_2", "_3"))
    decay = torch.exp(-w["learned"][0].exp() * softplus(w.map("linear_5", x)))
    y = corrected(unit(q, 2), unit(k, 2), v, torch.sigmoid(w.map("linear_4", x)), decay)
    return w.map("linear_7", w.rms("rms_norm", y, 2) * silu(w.map("linear_6", x)))


def remembered(q: Tensor, k: Tensor, v: Tensor, decay: Tensor, width: int = 4, keys: int = 4) -> Tensor:
    """S <- diag(α) S + k vᵀ, with an α for each feature of the keys."""
    state = [torch.zeros(keys, width), torch.zeros(keys, width)]

    def step(i: int, h: int, part: slice) -> Tensor:
        of_keys = slice(keys * h, keys * h + keys)
        state[h] = torch.diag(decay[i, of_keys]) @ state[h] + torch.outer(k[i, of_keys], v[i, part])
        return q[i, of_keys] @ state[h]

    return by_head(step, width)


def gated_linear_attention(w: Weights, x: Tensor) -> Tensor:
    decay = torch.sigmoid(w.map("linear_2", w.map("linear", x))) ** (1 / 16)
    y = remembered(w.map("linear_3", x) / 2, w.map("linear_4", x), w.map("linear_5", x), decay)
    return w.map("linear_7", w.rms("rms_norm", y, 2) * silu(w.map("linear_6", x)))


def multi_scale_retention(w: Weights, x: Tensor) -> Tensor:
    q, k = (rotated(w.map(name, x), 2) for name in ("linear", "linear_2"))
    decay = torch.tensor([1 - 2.0**-5, 1 - 2.0**-6]).repeat_interleave(4).expand(N, -1)
    parts = remembered(q / 2, k, w.map("linear_3", x), decay).reshape(N, 2, 4)
    centred = parts - parts.mean(-1, keepdim=True)
    normed = (centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()).flatten(1)
    y = normed * w["group_norm"] + w.of["group_norm.bias"]
    return w.map("linear_5", y * silu(w.map("linear_4", x)))


def state_space(w: Weights, x: Tensor) -> Tensor:
    u, b, c = (silu(short(w, f"short_convolution{suffix}", w.map(f"linear{suffix}", x))) for suffix in ("", "_2", "_3"))
    step = softplus(w.map("linear_4", x))
    decay = torch.exp(-w["learned"][0].exp() * step).repeat_interleave(3, -1)
    y = remembered(c.repeat(1, 2), b.repeat(1, 2), step.repeat_interleave(8, -1) * u, decay, width=8, keys=3)
    z = (y + w["learned_2"][0].repeat_interleave(8) * u) * silu(w.map("linear_5", x))
    return w.map("linear_6", w.rms("rms_norm", z))


@pytest.mark.parametrize(
    ("slow", "call"),
    [
        (delta_net, "delta_net[2, range = 2.0, convolution = true](x)"),
        (gated_delta_net, "gated_delta_net[2](x)"),
        (gated_linear_attention, "gated_linear_attention[2, rank = 3](x)"),
        (multi_scale_retention, "multi_scale_retention[2](x)"),
        (state_space, "state_space[2, states = 3](x)"),
    ],
)
def test_a_page_equals_its_equations(slow: Slow, call: str, compiled: Compiled) -> None:
    equals_slow(compiled, "linear_mixers", call, slow)
