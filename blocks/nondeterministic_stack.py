"""Attention by a nondeterministic stack."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from archlang.backend.runtime.block import Mask


class NondeterministicStack(nn.Module):
    """All runs of a weighted pushdown automaton at once, whose stack holds a symbol and a vector in each place.

        γ_{i→t}    weight of the runs from (state, top) after i actions to those after t, in which the place that is
                   pushed by action i + 1 is on top at t; γ_{-1→t} is about the bottom place
        γ_{i→i+1} = push_{i+1}
        γ_{i→t}   = γ_{i→t-1} replace_t + Σ_{i<k<t-1} γ_{i→k} (γ_{k→t-1} pop_t)
        α_{i→t}   = Σ_j α_{j→i} γ_{i→t},    α_{-1→t} = γ_{-1→t}
        y_t       = Σ_i α_{i→t} v_{i+1} / Σ_i α_{i→t},    v_0 = σ(bottom),    v_{i+1} = exp(x_{i+1} Wvᵀ)

    DuSell and Chiang, "Stack attention", ICLR 2024, section 4.2. All weights of a time are divided by the same number,
    which changes no quotient and keeps them in the range of floats. As in the paper's program, pushed vectors are
    exponentials, not sigmoids."""

    def __init__(self, *, states: int, symbols: int, width: int, d: int) -> None:
        super().__init__()
        self.states = states
        self.symbols = symbols
        self.width = width
        tops = states * symbols
        self.actions = nn.Linear(d, tops * (2 * tops + states), bias=False)
        self.push = nn.Linear(d, width, bias=False)
        self.bottom = nn.Parameter(torch.randn(width))

    def forward(self, x: Float[Tensor, "b n d"], **_: Mask) -> Float[Tensor, "b n _qsm"]:
        batch, length = x.shape[:2]
        tops = self.states * self.symbols
        logits = self.actions(x)
        weights = (logits - logits.detach().amax(-1, keepdim=True)).exp().unflatten(2, (tops, 2 * tops + self.states))
        push, replace, pop = weights.split([tops, tops, self.states], -1)
        vectors = torch.cat((self.bottom.sigmoid().expand(batch, 1, -1), self.push(x).exp()), 1)
        start = x.new_zeros(batch, tops)
        start[:, 0] = 1  # state 0 with symbol 0 on top
        reached = [start]  # after t actions, the weight of each (state, top) over all runs
        bottoms = [start]  # γ_{-1→t}
        spans: list[Tensor] = []  # γ_{0→t}, …, γ_{t-1→t} for t = 1, 2, …: [b t tops tops]
        readings = []
        for t in range(length):
            bottom = (bottoms[-1][:, None] @ replace[:, t])[:, 0]
            span = push[:, t, None]
            if t:
                popped = spans[-1] @ pop[:, t, None]
                before = torch.stack(bottoms[:-1], 1)[:, :, None]
                bottom = bottom + self._joined(before, popped).sum((1, 2))
                span = torch.cat((spans[-1] @ replace[:, t, None] + self._after_pops(spans[:-1], popped), span), 1)
            pushed = torch.einsum("bia,biac->bic", torch.stack(reached, 1), span)
            on_top = torch.cat((bottom[:, None], pushed), 1)  # α_{-1→t+1}, α_{0→t+1}, …
            scale = on_top.sum((1, 2)).detach()[:, None, None]
            spans.append(span / scale[..., None])
            bottoms.append(bottom / scale[..., 0])
            reached.append((on_top / scale).sum(1))
            reading = torch.einsum("bia,bim->bam", on_top, vectors[:, : t + 2])
            readings.append((reading / on_top.sum((1, 2))[:, None, None]).flatten(1))
        return torch.stack(readings, 1) if readings else x.new_zeros(batch, 0, tops * self.width)

    def _joined(
        self, before: Float[Tensor, "b k _f t"], popped: Float[Tensor, "b k t _q"]
    ) -> Float[Tensor, "b k _f t"]:
        """Runs to a place on top after k actions, then runs above it until a pop: its symbol stays, the state moves."""
        by_symbol = before.reshape(*before.shape[:3], self.states, self.symbols)
        returned = popped.reshape(*popped.shape[:2], self.states, self.symbols, self.states)
        return torch.einsum("bkfus,bkusr->bkfrs", by_symbol, returned).flatten(3)

    def _after_pops(self, spans: list[Tensor], popped: Float[Tensor, "b _i t _q"]) -> Float[Tensor, "b _i t t"]:
        """Σ_{i<k} γ_{i→k} popped_k for each i; `spans` has γ_{0→k}, …, γ_{k-1→k} for k = 1, 2, …"""
        batch, count, tops, _ = popped.shape
        total = popped.new_zeros(batch, count, tops, tops)
        for k, span in enumerate(spans, start=1):
            joined = self._joined(span, popped[:, k, None].expand(-1, k, -1, -1))
            total = total + nn.functional.pad(joined, (0, 0, 0, 0, 0, count - k))
        return total
