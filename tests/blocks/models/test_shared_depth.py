"""The pages of blocks/models/shared_depth.arch equal their equations, with turns one after the other."""

import pytest
import torch
from torch import Tensor
from torch.nn.functional import gelu, pad

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
    softmax_past,
    weighed,
)


def attended(w: Weights, at: str, x: Tensor) -> Tensor:
    """The block `attention`, causal and with rotary positions."""
    q, k, v = (w.map(f"{at}attention.{name}", x) for name in ("query", "key", "value"))
    s = scored(rotated(q, 2, adjacent=True), rotated(k, 2, adjacent=True), 2)
    return w.map(f"{at}attention.output", weighed(softmax_past(s), v))


def shared_encoder(w: Weights, x: Tensor) -> Tensor:
    h = w.map("linear", x)
    for _ in range(3):
        q, k, v = (w.map(f"attention.{name}", h) for name in ("query", "key", "value"))
        a = w.layer_norm("norm", h + w.map("attention.output", weighed(scored(q, k, 2).softmax(-1), v)))
        h = w.layer_norm("norm_2", a + w.map("linear_3", gelu(w.map("linear_2", a))))
    return h


def in_order(*layers: str) -> Slow:
    def slow(w: Weights, h: Tensor) -> Tensor:
        for layer in layers:
            h = w.network(f"{layer}.0.layer" if layer.startswith("stack") else f"stack.{layer}.layer", h)
        return h

    return slow


def length_looped(w: Weights, x: Tensor) -> Tensor:
    h = torch.zeros_like(x)
    for _ in range(N):
        h = w.network("f", h + x)
    return h


def recall_network(w: Weights, x: Tensor) -> Tensor:
    def convolved(name: str, u: Tensor) -> Tensor:
        padded = pad(u, (0, 0, 1, 1))
        return torch.stack([padded[a : a + N] @ w[name][:, :, a].T for a in range(3)]).sum(0)

    h = convolved("convolve", x).relu()
    for _ in range(3):
        h = convolved("convolve_2", torch.cat((h, x), -1))
        for at in ("stack.0.", "stack.1."):
            h = (h + convolved(f"{at}convolve_2", convolved(f"{at}convolve", h).relu())).relu()
    return h


def chained_turns(w: Weights, h: Tensor) -> Tensor:
    """With one softmax over the keys of all turns."""
    keys: list[Tensor] = []
    values: list[Tensor] = []
    for turn in range(3):
        u = w.rms("before", h)
        keys.append(rotated(w.map("key", u), 2))
        values.append(w.map("value", u))
        s = scored(rotated(w.map("query", u), 2), torch.cat(keys), 2)
        a = s.masked_fill(~past(N).repeat(1, turn + 1), float("-inf")).softmax(-1)
        read = (a @ of_heads(torch.cat(values), 2)).transpose(0, 1).reshape(N, D)
        h = h + w.map("output", read)
        h = h + w.network("network", w.rms("between", h))
    return h


def slot_attention(w: Weights, x: Tensor) -> Tensor:
    u, s = w.layer_norm("norm", x), w["learned"]
    k, v = w.map("linear", u), w.map("linear_2", u)
    for turn in range(3):
        s = s.detach() if turn == 1 else s
        shares = (k @ w.map("query", w.layer_norm("slot_norm", s)).T / D**0.5).softmax(-1) + 1e-8
        read = (shares / shares.sum(0)).T @ v
        z, r = (torch.sigmoid(w.map(name, torch.cat((read, s), -1))) for name in ("linear_3", "linear_4"))
        s = z * s + (1 - z) * torch.tanh(w.map("linear_5", torch.cat((read, r * s), -1)))
        s = s + w.map("linear_7", w.map("linear_6", w.layer_norm("norm_2", s)).relu())
    return x + s.sum(0)


def relational_network(w: Weights, x: Tensor) -> Tensor:
    h, c = x, torch.zeros_like(x)
    for _ in range(3):
        heard = []
        for i in range(N):
            message = w["linear_3"] @ (w.map("linear", h[i]) + w.map("linear_2", h)).relu().T
            message = message.T + w.of["linear_3.bias"]
            heard.append(message[:i].sum(0))
        y = w.map("linear_5", w.map("linear_4", torch.cat((x, torch.stack(heard)), -1)).relu())
        a, f, g, o = w.map("gates", torch.cat((y, h), -1)).chunk(4, -1)
        c = torch.sigmoid(f) * c + torch.sigmoid(a) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
    return h


def hybrid_loop(w: Weights, h: Tensor) -> Tensor:
    for at in 2 * ("stack.0.", "stack.1."):
        u = w.rms(f"{at}rms_norm", h)
        h = h + (torch.tanh(u) if at == "stack.0." else attended(w, at, u))
        h = h + w.network(f"{at}feedforward", w.rms(f"{at}rms_norm_2", h))
    return h


REGULAR = "TC0, regular"


@pytest.mark.parametrize(
    ("slow", "call", "theorems", "is_causal"),
    [
        (shared_encoder, "shared_encoder[8, 2, 12, 3](x)", "TC0, turns", False),
        (in_order("0", "1", "0", "1"), "shared_layers[feedforward[12], 2, 2](x)", REGULAR, True),
        (in_order("0", "0", "1", "1"), "shared_layers[feedforward[12], 2, 2, sequence](x)", REGULAR, True),
        (in_order("stack", "stack_2", "stack_2", "stack_3"), "algorithm_layers[feedforward[12], 2](x)", REGULAR, True),
        (length_looped, "length_looped[feedforward[12], 9](x)", "TC0", True),
        (recall_network, "recall_network[8, 3](x)", "TC0", False),
        (chained_turns, "chained_turns[2, 12](x)", "TC0", True),
        (hybrid_loop, "hybrid_loop[tanh, 2, 12, 2, 2, period = 2](x)", "TC0, turns", True),
        (slot_attention, "x + sum(slot_attention[3, 12, kept = 2](x))", "TC0", False),
        (relational_network, "relational_network[3](x, greater(distances(x, x)))", "TC0", False),
    ],
)
def test_a_page_equals_its_equations(slow: Slow, call: str, theorems: str, is_causal: bool, compiled: Compiled) -> None:
    equals_slow(compiled, "shared_depth", call, slow, causal=is_causal)
    assert card_in_words("shared_depth", call) == ("", theorems)
