"""The pages of blocks/models/attention_variants.arch equal their equations, with a matrix of weights for each head."""

import pytest
import torch
from torch import Tensor

from tests.conftest import Compiled
from tests.slow_pages import (
    D,
    N,
    Slow,
    Weights,
    card_in_words,
    equals_slow,
    of_heads,
    past,
    rotated,
    scored,
    silu,
    softmax_past,
    weighed,
)


def differential_attention(w: Weights, x: Tensor) -> Tensor:
    q, k = w.map("linear", x), w.map("linear_2", x)
    first, second = (softmax_past(scored(rotated(q[:, p], 2), rotated(k[:, p], 2), 2)) for p in (slice(4), slice(4, 8)))
    q1, q2, k1, k2 = 0.1 * w["vectors"]
    a = first - ((q1 @ k1).exp() - (q2 @ k2).exp() + 0.5) * second
    return w.map("linear_4", 0.5 * w.rms("rms_norm", weighed(a, w.map("linear_3", x)), 2))


def selective_attention(w: Weights, x: Tensor) -> Tensor:
    s = scored(w.map("linear", x), w.map("linear_2", x), 2)
    masked = torch.zeros(N, N)
    for i in range(N):
        for j in range(1, N):
            masked[i, j] = sum((s[0, m, j].relu() for m in range(j + 1, i)), torch.zeros(()))
    return w.map("linear_4", weighed(softmax_past(s - masked), w.map("linear_3", x)))


def threshold_relative_attention(w: Weights, x: Tensor) -> Tensor:
    q, k = (w.rms("no gain", w.map(name, x), 2, 1e-6) for name in ("linear", "linear_2"))
    s, v = scored(q, k, 2), of_heads(w.map("linear_3", x), 2)
    f, rows = torch.sigmoid(w.map("gate", x)), torch.zeros(N, 2, 4)
    for h in range(2):
        for i in range(N):
            kept = [j for j in range(i + 1) if s[h, i, j] > 0]
            if kept:
                logits = [s[h, i, j] + sum(m >= j for m in kept) * f[i, h].log() for j in kept]
                rows[i, h] = torch.stack(logits).softmax(0) @ v[h, kept]
    return w.map("linear_4", rows.reshape(N, D))


def delta_former(w: Weights, x: Tensor) -> Tensor:
    """Solves the triangular system of all corrected values."""
    q, k = (rotated(w.map(name, x), 2) for name in ("linear", "linear_2"))
    s = scored(k, k, 2).masked_fill(~past(N, -1), float("-inf"))
    s[:, 0] = 0
    known = s.softmax(-1) * past(N, -1) * w.map("rate", x).T[:, :, None]
    values = torch.linalg.solve(torch.eye(N) + known, of_heads(w.map("linear_3", x), 2))
    return w.map("linear_4", weighed(softmax_past(scored(q, k, 2)), values.transpose(0, 1).reshape(N, D)))


def canon_layer(w: Weights, h: Tensor) -> Tensor:
    def canon(name: str, x: Tensor) -> Tensor:
        return x + w.convolved(f"{name}.convolve", x)

    q, k, v = canon("canon_2", w.map("linear", canon("canon", w.rms("rms_norm", h)))).chunk(3, -1)
    a = h + w.map("linear_2", weighed(softmax_past(scored(rotated(q, 2), rotated(k, 2), 2)), v))
    g, u = canon("canon_4", w.map("linear_3", canon("canon_3", w.rms("rms_norm_2", a)))).chunk(2, -1)
    return a + w.map("linear_4", silu(g) * u)


def gated_attention(w: Weights, x: Tensor) -> Tensor:
    q, k, v = (w.map(f"attention.{name}", x) for name in ("query", "key", "value"))
    e = scored(rotated(q, 2, adjacent=True), rotated(k, 2, adjacent=True), 2).exp() * past(N)
    a = e / (w.of["attention.sinks"].exp()[:, None, None] + e.sum(-1, keepdim=True))
    return w.map("attention.output", weighed(a, v) * torch.sigmoid(w.map("attention.gate", x)))


def value_residual_layers(w: Weights, h: Tensor) -> Tensor:
    first = None
    for at in ("stack.0.", "stack.1.", "stack.2."):
        u = w.rms(f"{at}rms_norm", h)
        v = w.map(f"{at}linear", u)
        first = v if first is None else first
        if at != "stack.0.":
            a, b = 0.5 + w[f"{at}learned"][0]
            v = a * v + b * first
        q, k = (rotated(w.map(f"{at}linear_{i}", u), 2) for i in (2, 3))
        h = h + w.map(f"{at}linear_4", weighed(softmax_past(scored(q, k, 2)), v))
        h = h + w.network(f"{at}feedforward", w.rms(f"{at}rms_norm_2", h))
    return h


def product_key_memory(w: Weights, x: Tensor) -> Tensor:
    """Looks among the pairs of the nearest halves only."""
    rows = []
    for row in x:
        q = w.map("query", row)
        one, two = w["rows"] @ q[:4], w["columns"] @ q[4:]
        pairs = [(one[i] + two[j], i, j) for i in one.topk(3).indices.tolist() for j in two.topk(3).indices.tolist()]
        best = sorted(pairs, key=lambda pair: -pair[0].item())[:3]
        weights = torch.stack([near for near, _, _ in best]).softmax(0)
        read = sum((a * w["values"][:, 4 * i + j] for a, (_, i, j) in zip(weights, best, strict=True)), torch.zeros(D))
        rows.append(w.map("linear", read * silu(w.map("gate", row))))
    return torch.stack(rows)


def block_attention(w: Weights, x: Tensor) -> Tensor:
    q, k = (rotated(w.map(name, x), 2) for name in ("linear", "linear_2"))
    means = torch.stack([k[b : b + 2].mean(0) for b in range(0, N, 2)])
    near, keep = of_heads(q, 2) @ of_heads(means, 2).mT, torch.zeros(2, N, N, dtype=torch.bool)
    for h in range(2):
        for i in range(N):
            chosen = near[h, i, : i // 2].topk(min(2, i // 2)).indices.tolist()
            keep[h, i, : i + 1] = torch.tensor([j // 2 in {i // 2, *chosen} for j in range(i + 1)])
    a = scored(q, k, 2).masked_fill(~keep, float("-inf")).softmax(-1)
    return w.map("linear_4", weighed(a, w.map("linear_3", x)))


WRITTEN = ("", "TC0")


@pytest.mark.parametrize(
    ("slow", "call", "card"),
    [
        (differential_attention, "differential_attention[2, start = 0.5](x)", WRITTEN),
        (selective_attention, "selective_attention[2](x)", WRITTEN),
        (threshold_relative_attention, "threshold_relative_attention[2](x)", WRITTEN),
        (delta_former, "delta_former[2](x)", ("grows; matrix", "")),
        (canon_layer, "canon_layer[2, 12](x)", WRITTEN),
        (gated_attention, "gated_attention[2](x)", ("", "TC0, no parity in a layer")),
        (value_residual_layers, "value_residual_layers[2, 12, 3](x)", WRITTEN),
        (product_key_memory, "product_key_memory[4, 3](x)", ("", "TC0, regular")),
        (block_attention, "block_attention[2, size = 2, k = 2](x)", ("grows", "TC0")),
    ],
)
def test_a_page_equals_its_equations(slow: Slow, call: str, card: tuple[str, str], compiled: Compiled) -> None:
    equals_slow(compiled, "attention_variants", call, slow)
    assert card_in_words("attention_variants", call) == card
