"""The pages of blocks/models/loops.arch equal their equations, with turns and layers one after the other."""

from collections import Counter

import pytest
import torch
from torch import Tensor
from torch.nn.functional import gelu

from tests.conftest import Compiled
from tests.slow_pages import (
    D,
    N,
    Slow,
    Weights,
    card_in_words,
    equals_slow,
    past,
    rotated,
    scored,
    silu,
    softmax_past,
    weighed,
)


def relaxed_recursion(w: Weights, h: Tensor) -> Tensor:
    for turn in range(2):
        at = f"stack.{turn}."

        def corrected(name: str, part: str, x: Tensor, at: str = at) -> Tensor:
            low = w[f"{at}low_rank{part}.linear_2"] @ w[f"{at}low_rank{part}.linear"]
            return x @ (w[name] + low).T

        u = w.rms(f"{at}rms_norm", h)
        q, k = rotated(corrected("query", "", u), 2), rotated(corrected("key", "_2", u), 2)
        h = h + corrected("output", "_4", weighed(softmax_past(scored(q, k, 2)), corrected("value", "_3", u)))
        hidden = gelu(corrected("up", "_5", w.rms(f"{at}rms_norm_2", h)))
        h = h + corrected("down", "_6", hidden)
    return h


def mixture_of_recursions(w: Weights, x: Tensor) -> Tensor:
    g = w.map("linear", x).softmax(-1)
    turns, h, results = g.argmax(-1), x, torch.zeros_like(x)
    for turn in range(3):
        here = turns >= turn
        u = w.rms("before", h)
        q, k = (rotated(w.map(name, u), 2) for name in ("query", "key"))
        s = scored(q, k, 2).masked_fill(~(past(N) & here), float("-inf"))
        a = h[here] + w.map("output", weighed(s.softmax(-1), w.map("value", u)))[here]
        h = h.index_put((here.nonzero()[:, 0],), a + w.network("network", w.rms("between", a)))
        results = torch.where((turns == turn)[:, None], g[:, turn : turn + 1] * h + x, results)
    return results


def attended(w: Weights, at: str, x: Tensor) -> Tensor:
    """The block `attention` with rotary positions, not causal."""
    q, k, v = (w.map(f"{at}attention.{name}", x) for name in ("query", "key", "value"))
    s = scored(rotated(q, 2, adjacent=True), rotated(k, 2, adjacent=True), 2)
    return w.map(f"{at}attention.output", weighed(s.softmax(-1), v))


def universal_reasoning(w: Weights, e: Tensor) -> Tensor:
    z = torch.zeros_like(e)
    for loop in range(3):
        z = (z.detach() if loop == 1 else z) + e
        for at in ("stack.0.", "stack.1."):
            a = w.rms("no gain", z + attended(w, at, z))
            u = silu(w.map(f"{at}linear", a)) * w.map(f"{at}linear_2", a)
            z = w.rms("no gain", a + w.map(f"{at}linear_3", silu(w.convolved(f"{at}convolve", u))))
    return z


def convolved(w: Weights, name: str, image: Tensor) -> Tensor:
    """Of an image [rows columns features], by three rows and columns."""
    rows, columns = image.shape[:2]
    padded = torch.zeros(rows + 2, columns + 2, D)
    padded[1:-1, 1:-1] = image
    parts = [padded[a : a + rows, c : c + columns] @ w[name][:, :, a, c].T for a in range(3) for c in range(3)]
    return torch.stack(parts).sum(0) + w.of[f"{name}.bias"]


def neural_gpu(w: Weights, x: Tensor) -> Tensor:
    s = torch.cat((x[:, None], torch.zeros(N, 1, D)), 1)
    for _ in range(N):
        for at in ("stack.0.convolve_image", "stack.1.convolve_image"):
            u, r = torch.sigmoid(convolved(w, at, s)), torch.sigmoid(convolved(w, f"{at}_2", s))
            s = u * s + (1 - u) * torch.tanh(convolved(w, f"{at}_3", r * s))
    return s[:, 0]


def fixed_point_reasoning(w: Weights, e: Tensor) -> Tensor:
    inner, outer = torch.sigmoid(w["f.learned"][0]).chunk(2)
    share = 1 - outer * inner**4
    part, z, turns = share * (1 - inner) / (1 - inner**4 + 1e-5), torch.zeros_like(e), 0

    def turn(z: Tensor) -> Tensor:
        h = outer * z + share * e
        for at in ("f.stack.0.", "f.stack.1."):
            h = inner * h + part * attended(w, at, w.rms(f"{at}rms_norm", h))
            v = w.rms(f"{at}rms_norm_2", h)
            hidden = silu(w.map(f"{at}linear", v)) * w.map(f"{at}linear_2", v)
            h = inner * h + part * w.map(f"{at}linear_3", hidden)
        return h

    change = torch.tensor(1.0)
    while change >= 0.6:
        h, turns = turn(z), turns + 1
        change = ((h - z).abs().amax(-1) / (h.abs().amax(-1) + 1e-8)).amax()
        z = h
    assert 1 < turns < 7
    return turn(turn(z.detach()))


def hyperloop(w: Weights, x: Tensor) -> Tensor:
    rows = []
    for row in x:
        streams = row.repeat(3, 1)
        for at in ("stack.0.", "stack.1.", "stack.2."):
            z = w.rms(f"{at}rms_norm", streams.flatten())
            p, k, o = (torch.sigmoid(w.map(f"{at}linear{part}", z)) for part in ("", "_2", "_3"))
            u = w.network("middle", p @ streams) + w[f"{at}learned"][0]
            streams = k[:, None] * streams + 2 * torch.outer(o, u)
        rows.append(streams.mean(0))
    return torch.stack(rows)


def mixer_loop(w: Weights, h: Tensor) -> Tensor:
    for at in ("stack.0.", "stack.1.", "stack.2."):
        mixed = torch.tanh(w.rms("before", h))
        h = h + mixed + w[f"{at}learned"][0] * h
    return h + w.network("feedforward", w.rms("rms_norm", h))


HEADS = (slice(4), slice(4, 8))


def parallel_loop(w: Weights, x: Tensor) -> Tensor:
    near, far, h = past(N) & ~past(N, -2), (torch.zeros(0), torch.zeros(0)), torch.zeros(N, D)
    for turn in range(3):
        e = x if turn == 0 else x + torch.cat((torch.zeros(1, D), h[:-1]))
        u = w.rms("before", e)
        q, k, v = rotated(w.map("query", u), 2), rotated(w.map("key", u), 2), w.map("value", u)
        far = (k, v) if turn == 0 else far
        y = weighed(softmax_past(scored(q, far[0], 2)), far[1])
        if turn > 0:
            g = torch.stack([w["learned"][0, h] @ q[:, h].T + w["learned_2"][0, i] for i, h in enumerate(HEADS)], -1)
            g = torch.sigmoid(g).repeat_interleave(4, -1)
            y = g * y + (1 - g) * weighed(scored(q, k, 2).masked_fill(~near, float("-inf")).softmax(-1), v)
        a = e + w.map("output", y)
        h = a + w.network("network", w.rms("between", a))
    return h


def loop_former(w: Weights, h: Tensor) -> Tensor:
    def embedded(name: str, t: float) -> Tensor:
        angles = torch.tensor([t * 10_000 ** (-i / 5) for i in range(5)])
        hidden = silu(w.map(f"{name}.linear", torch.cat((angles.cos(), angles.sin()))))
        return w.map(f"{name}.linear_2", hidden)

    for t in (0, 1 / 3, 2 / 3):
        e = silu(embedded("time", t) + embedded("size", 1 / 3))
        for at in ("stack.0.", "stack.1."):
            gate, gate_2, scale, scale_2 = w.map(f"{at}linear", e).chunk(4)
            u = w.rms("no gain", h) * (1 + scale)
            q, k, v = (w.map(f"{at}attention.{name}", u) for name in ("query", "key", "value"))
            h = h + gate * w.map(f"{at}attention.output", weighed(softmax_past(scored(q, k, 2)), v))
            v = w.rms("no gain", h) * (1 + scale_2)
            h = h + gate_2 * w.map(f"{at}linear_3", gelu(w.map(f"{at}linear_2", v)))
    return h


def trellis_network(w: Weights, x: Tensor) -> Tensor:
    def convolved(name: str, u: Tensor) -> Tensor:
        before = torch.cat((torch.zeros(1, u.shape[1]), u[:-1]))
        return before @ w[name][:, :, 0].T + u @ w[name][:, :, 1].T

    c = h = torch.zeros(N, D)
    for _ in range(3):
        z = convolved("filter", h) + convolved("convolve", x) + w.of["convolve.bias"]
        i, o, g, f = z.chunk(4, -1)
        c = torch.sigmoid(f) * torch.cat((torch.zeros(1, D), c[:-1])) + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
    return h


def continuous_thoughts(w: Weights, x: Tensor) -> Tensor:
    """Computes all layers again for each position."""
    inputs: list[Tensor] = []
    results: list[Tensor] = []
    for i in range(N):
        inputs.append(results[-1] if i % 2 else x[i])
        z = torch.stack(inputs)
        for at in ("stack.0.", "stack.1."):
            u = w.layer_norm(f"{at}norm", z)
            k, v, q = (w.map(f"{at}linear{part}", u) for part in ("", "_2", "_3"))
            z = z + w.map(f"{at}linear_4", weighed(softmax_past(scored(q, k, 2)), v))
            z = z + w.network(f"{at}feedforward", w.layer_norm(f"{at}norm_2", z))
        results.append(w.layer_norm("final", z[-1]))
    return torch.stack(results)


ODD = "indices(x) - 2 * floor(indices(x) / 2)"


@pytest.mark.parametrize(
    ("slow", "call", "card"),
    [
        (relaxed_recursion, "relaxed_recursion[2, 12, 2, 3](x)", ("", "TC0")),
        (mixture_of_recursions, "mixture_of_recursions[2, 12](x)", ("", "TC0")),
        (universal_reasoning, "universal_reasoning[2, 12, 2, 3, 2](x)", ("", "TC0, turns, parity is hard")),
        (neural_gpu, "neural_gpu[2, 9](x)", ("", "TC0")),
        (fixed_point_reasoning, "fixed_point_reasoning[2, 12, 2, 9, 2, 0.6](x)", ("", "TC0, turns")),
        (hyperloop, "hyperloop[feedforward[12], 3](x)", ("", "TC0, regular")),
        (mixer_loop, "mixer_loop[tanh, 12, 3](x)", ("", "TC0, regular")),
        (parallel_loop, "parallel_loop[2, 12, 3, 2](x)", ("", "TC0, turns")),
        (loop_former, "loop_former[2, 12, 2, 3, 5](x)", ("", "TC0, turns, parity is hard")),
        (trellis_network, "trellis_network[8, 3](x)", ("", "TC0, regular")),
        (continuous_thoughts, f"continuous_thoughts[2, 12](x, {ODD})", ("; ".join(3 * ["non-linear"]), "L")),
    ],
)
def test_a_page_equals_its_equations(slow: Slow, call: str, card: tuple[str, str], compiled: Compiled) -> None:
    is_causal = slow not in (universal_reasoning, neural_gpu, fixed_point_reasoning)
    equals_slow(compiled, "loops", call, slow, causal=is_causal)
    assert card_in_words("loops", call) == card


def test_randomized_positions_are_any_numbers_in_order_and_all_choices_are_equally_likely(compiled: Compiled) -> None:
    text = "model m(x: seq[n, d]) -> logits[n, 1] { return randomized_positions[4](x) }\n"
    module = compiled(f"use archlang.models.loops\n{text}", d=3)
    torch.manual_seed(1)
    drawn = [module(torch.zeros(1, 2, 3))[0, :, 0].tolist() for _ in range(600)]
    pairs = Counter(map(tuple, drawn))
    assert {*pairs} == {(float(i), float(j)) for j in range(4) for i in range(j)}
    assert all(70 < count < 130 for count in pairs.values())
    batch = module(torch.zeros(50, 4, 3), lengths=[4] * 25 + [1] * 25)[:, :, 0]
    assert batch[:25].equal(torch.arange(4.0).expand(25, 4))
    assert len({*batch[25:, 0].tolist()}) == 4
