"""The pages of blocks/models/delta_rules.arch equal loops over positions and heads."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn.functional import softplus

from tests.conftest import Compiled
from tests.slow_pages import N, Slow, Weights, card_in_words, equals_slow, silu, unit


def filtered(w: Weights, name: str, x: Tensor) -> Tensor:
    return silu(w.convolved(f"{name}.filter", w.map(f"{name}.linear", x)))


def by_head(y: Callable[[int, int, slice], Tensor], heads: int = 2, width: int = 4) -> Tensor:
    """The results of all positions and heads, each head from position to position."""
    parts = [[y(i, h, slice(width * h, width * h + width)) for i in range(N)] for h in range(heads)]
    return torch.stack([torch.cat(row) for row in zip(*parts, strict=True)])


def erased(w: Weights, x: Tensor, q: Tensor, k: Tensor, erase: Tensor, v: Tensor) -> Tensor:
    """S <- (I - k eᵀ) diag(α) S + k vᵀ, with the decay, gate and norm of KDA."""
    rate = softplus(w.map("linear_2", w.map("linear", x)))
    state = [torch.zeros(4, 4), torch.zeros(4, 4)]

    def step(i: int, h: int, part: slice) -> Tensor:
        decay = torch.diag(torch.exp(-w["learned"][0, h].exp() * rate[i, part]))
        moved = (torch.eye(4) - torch.outer(k[i, part], erase[i, part])) @ decay
        state[h] = moved @ state[h] + torch.outer(k[i, part], v[i, part])
        return q[i, part] @ state[h]

    gate = torch.sigmoid(w.map("linear_4", w.map("linear_3", x)))
    return w.map("linear_5", w.rms("rms_norm", by_head(step), 2) * gate)


def kimi_delta_attention(w: Weights, x: Tensor) -> Tensor:
    q, k = unit(filtered(w, "filtered", x), 2), unit(filtered(w, "filtered_2", x), 2)
    beta = torch.sigmoid(w.map("rate", x)).repeat_interleave(4, -1)
    return erased(w, x, q, k, beta * k, beta * filtered(w, "filtered_3", x))


def gated_delta_net_2(w: Weights, x: Tensor) -> Tensor:
    q, k = unit(filtered(w, "filtered", x), 2), unit(filtered(w, "filtered_2", x), 2)
    erase, write = (torch.sigmoid(w.map(name, x)) for name in ("erase", "write"))
    return erased(w, x, q, k, 2 * erase * k, write * filtered(w, "filtered_3", x))


def comba(w: Weights, x: Tensor) -> Tensor:
    k, q = unit(filtered(w, "filtered", x), 2), unit(filtered(w, "filtered_2", x), 2)
    v, beta, rate = filtered(w, "filtered_3", x), torch.sigmoid(w.map("rate", x)), softplus(w.map("linear", x))
    state = [torch.zeros(4, 4), torch.zeros(4, 4)]

    def step(i: int, h: int, part: slice) -> Tensor:
        decay = torch.exp(-w["learned"][0, h].exp() * rate[i, h])
        b, c = torch.sigmoid(1 + w["learned_2"][0, h]), 1 + w["learned_3"][0, h]
        error = v[i, part] - b * k[i, part] @ state[h]
        state[h] = decay * state[h] + beta[i, h] * torch.outer(k[i, part], error)
        return (q[i, part] - c * b * k[i, part]) @ state[h]

    return w.map("linear_2", w.rms("rms_norm", by_head(step), 2) * torch.sigmoid(w.map("gate", x)))


def mesa(w: Weights, x: Tensor) -> Tensor:
    """With the solution of the linear system in place of conjugate gradients."""
    q, k, v = unit(filtered(w, "filtered", x), 2), unit(filtered(w, "filtered_2", x), 2), w.map("linear", x)
    rates, ridge = torch.sigmoid(w.map("rates", x)), softplus(0.11 + w["learned"][0]) + 0.25
    kk, kv = ([torch.zeros(4, 4), torch.zeros(4, 4)] for _ in range(2))

    def step(i: int, h: int, part: slice) -> Tensor:
        kept, written = rates[i, h], rates[i, 2 + h]
        kk[h] = kept * kk[h] + written * torch.outer(k[i, part], k[i, part])
        kv[h] = kept * kv[h] + written * torch.outer(k[i, part], v[i, part])
        solved: Tensor = torch.linalg.solve(kk[h] + torch.diag(ridge[part]), q[i, part])
        return kv[h].T @ solved

    return w.map("linear_2", w.rms("rms_norm", by_head(step), 2))


ANY_RANK = "low rank 1 [-inf, inf]"
REAL, FADES = "no parity, no S3, PNC1, regular", "no parity, no mod 3, scans in TC0, regular"


@pytest.mark.parametrize(
    ("slow", "call", "transitions", "theorems"),
    [
        (kimi_delta_attention, "kimi_delta_attention[2](x)", "low rank 1 [0, 1]", REAL),
        (gated_delta_net_2, "gated_delta_net_2[2, range = 2.0](x)", ANY_RANK, "PNC1, regular"),
        (comba, "comba[2](x)", ANY_RANK, "PNC1, regular"),
        (
            mesa,
            "mesa[2, steps = 4](x)",
            "diagonal [0, 1]; diagonal [0, 1]",
            "no parity, no mod 3, scans in TC0, regular",
        ),
    ],
)
def test_a_page_equals_its_equations(
    slow: Slow, call: str, transitions: str, theorems: str, compiled: Compiled
) -> None:
    equals_slow(compiled, "delta_rules", call, slow)
    assert card_in_words("delta_rules", call) == (transitions, theorems)


def test_rates_up_to_two_give_kimi_delta_attention_negative_eigenvalues() -> None:
    said = card_in_words("delta_rules", "kimi_delta_attention[2, range = 2.0](x)")
    assert said == ("low rank 1 [-1, 1]", "no S3, S2, PNC1, regular")
