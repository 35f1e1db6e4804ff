"""The pages of blocks/models/recurrent_cells.arch equal loops over positions."""

import pytest
import torch
from torch import Tensor

from tests.conftest import Compiled
from tests.slow_pages import D, N, Slow, Weights, card_in_words, equals_slow, silu


def of_heads(w: Weights, name: str, x: Tensor) -> Tensor:
    """A linear map of each of two heads."""
    parts = [x[..., 4 * h : 4 * h + 4] @ w[name][4 * h : 4 * h + 4, :, 0].T for h in range(2)]
    return torch.cat(parts, -1) + w.of.get(f"{name}.bias", torch.zeros(()))


def scalar_lstm(w: Weights, x: Tensor) -> Tensor:
    """Without the stabiliser m."""
    u, states = silu(w.convolved("filter", x)), []
    h, c, total = torch.zeros(D), torch.zeros(D), torch.zeros(D)
    for t in range(N):
        read = [of_heads(w, f"mapped_{gate}", (u if gate in "if" else x)[t]) for gate in "ifzo"]
        suffixes = ("", "_2", "_3", "_4")
        i, f, z, o = (a + of_heads(w, f"headwise{n}.convolve", h) for a, n in zip(read, suffixes, strict=True))
        c = torch.sigmoid(f) * c + i.exp() * torch.tanh(z)
        total = torch.sigmoid(f) * total + i.exp()
        h = torch.sigmoid(o) * c / total
        states.append(h)
    return normed(w, torch.stack(states))


def normed(w: Weights, y: Tensor) -> Tensor:
    parts = y.reshape(N, 2, -1)
    centred = parts - parts.mean(-1, keepdim=True)
    part = (centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()).flatten(1)
    return part * w["group_norm"] + w.of["group_norm.bias"]


def matrix_lstm(w: Weights, x: Tensor) -> Tensor:
    """Without the stabiliser m."""
    u, z = w.map("linear", x), w.map("linear_2", x)
    c = silu(w.convolved("filter", u))

    def grouped(name: str, y: Tensor) -> Tensor:
        return torch.cat([y[:, 4 * g : 4 * g + 4] @ w[name][4 * g : 4 * g + 4, :, 0].T for g in range(4)], -1)

    q, k, v = grouped("query", c), grouped("key", c), grouped("value", u)
    i, f = (w.map(name, torch.cat((q, k, v), -1)) for name in ("input", "forget"))
    rows = torch.zeros(N, 16)
    for h in range(2):
        part, memory, total = slice(8 * h, 8 * h + 8), torch.zeros(8, 8), torch.zeros(8)
        for t in range(N):
            kept, written = torch.sigmoid(f[t, h]), i[t, h].exp()
            memory = kept * memory + written * torch.outer(k[t, part] / 8**0.5, v[t, part])
            total = kept * total + written * k[t, part] / 8**0.5
            rows[t, part] = q[t, part] @ memory / (total @ q[t, part]).abs().clamp(min=1)
    skip = (1 + w["learned"][0]) * c
    return w.map("linear_3", (normed(w, rows) + skip) * silu(z))


def min_gru(w: Weights, x: Tensor) -> Tensor:
    h, states = torch.zeros(D), []
    for row in x:
        z = torch.sigmoid(w.map("linear", row))
        h = (1 - z) * h + z * w.map("linear_2", row)
        states.append(h)
    return torch.stack(states)


def min_lstm(w: Weights, x: Tensor) -> Tensor:
    h, states = torch.zeros(D), []
    for row in x:
        f, i = torch.sigmoid(w.map("linear", row)), torch.sigmoid(w.map("linear_2", row))
        h = f / (f + i) * h + i / (f + i) * w.map("linear_3", row)
        states.append(h)
    return torch.stack(states)


def permuting_state_space(w: Weights, x: Tensor) -> Tensor:
    """With complex numbers and one matrix for each position."""
    state, rows = torch.zeros(3, dtype=torch.complex128), []
    for row in x:
        r, phase = torch.sigmoid(w.map("linear", row)), 2 * torch.pi * torch.sigmoid(w.map("linear_2", row))
        shares = w.map("linear_3", row).softmax(-1)
        mixed = sum((share * m for share, m in zip(shares, w["choices"].chunk(2, -1), strict=True)), torch.zeros(3, 3))
        soft = mixed.softmax(-1).T
        places = soft + (torch.eye(3)[soft.argmax(0)].T - soft).detach()
        written = torch.complex(w.map("linear_4", row), w.map("linear_5", row))
        state = places.to(state.dtype) @ (torch.polar(r, phase) * state) + written
        rows.append(w.map("out", torch.cat((state.real, state.imag))) + w.map("linear_6", row))
    return torch.stack(rows)


FADES = ("diagonal [0, 1]", "no parity, no mod 3, scans in TC0, regular")


@pytest.mark.parametrize(
    ("slow", "call", "card"),
    [
        (scalar_lstm, "scalar_lstm[2](x)", ("; ".join(4 * ["non-linear"]), "L, regular")),
        (matrix_lstm, "matrix_lstm[2](x)", ("diagonal [0, inf]; diagonal [0, inf]; maximum", "regular")),
        (min_gru, "min_gru[8](x)", FADES),
        (min_lstm, "min_lstm[8](x)", FADES),
        (permuting_state_space, "permuting_state_space[3, dictionary = 2](x)", ("matrix; matrix", "PNC1, regular")),
    ],
)
def test_a_page_equals_its_equations(slow: Slow, call: str, card: tuple[str, str], compiled: Compiled) -> None:
    equals_slow(compiled, "recurrent_cells", call, slow)
    assert card_in_words("recurrent_cells", call) == card
