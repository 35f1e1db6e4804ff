"""A recurrent network that looks at a memory before each step."""

from __future__ import annotations

from math import sqrt

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from archlang.backend.past import Past
from archlang.blocks.pointer_unit import over_slots


class AttentiveGru(nn.Module):
    """A GRU that looks at a memory before each step.

        e_n = v · relu(W [h_{t-1}; m_n] + b),    c_t = Σ_n softmax_n(e_n) m_n
        h_t = GRU([x_t; c_t], h_{t-1}),          y_t = O [h_t; c_t] + o

    The controller in the program of Le et al., "Pointer-Augmented Neural Memory", 2024; the paper's (Eq. 7) is a GRU
    that reads mode 2 instead."""

    def __init__(self, *, hidden: int, e: int, d: int, s: int) -> None:
        super().__init__()
        self.attention = nn.Linear(hidden + d, hidden)
        self.score = nn.Parameter(torch.empty(hidden).uniform_(-1 / sqrt(hidden), 1 / sqrt(hidden)))
        self.cell = nn.GRUCell(e + d, hidden)
        self.output = nn.Linear(hidden + d, hidden)

    def forward(
        self,
        x: Float[Tensor, "b t e"],
        memory: Float[Tensor, "b n d"],
        start: Float[Tensor, "b hidden"],
        *,
        mask_t: Bool[Tensor, "b t"] | None = None,
        mask_n: Bool[Tensor, "b n"] | None = None,
    ) -> Float[Tensor, "b t hidden"]:
        return self._walk(x, memory, start, mask_n)[0]

    def extend(
        self,
        past: Past,
        x: Float[Tensor, "b t e"],
        memory: Float[Tensor, "b n d"],
        start: Float[Tensor, "b hidden"],
        *,
        mask_t: Bool[Tensor, "b t"] | None = None,
        mask_n: Bool[Tensor, "b n"] | None = None,
    ) -> Float[Tensor, "b t hidden"]:
        y, past.kept["h"] = self._walk(x, memory, past.kept.get("h", start), mask_n)
        return y

    def _walk(
        self,
        x: Float[Tensor, "b t e"],
        memory: Float[Tensor, "b n d"],
        h: Float[Tensor, "b hidden"],
        mask_n: Bool[Tensor, "b n"] | None,
    ) -> tuple[Float[Tensor, "b t hidden"], Float[Tensor, "b hidden"]]:
        """The results of the steps after the state h, and the state after them."""
        steps = []
        # W [h; m] is W_h h + W_m m, and the memory stays as it is.
        of_state, of_memory = torch.split(self.attention.weight, [h.shape[-1], memory.shape[-1]], dim=1)
        slots = F.linear(memory, of_memory, self.attention.bias)
        for x_t in x.unbind(1):
            scores = F.relu(F.linear(h, of_state)[:, None] + slots) @ self.score
            context = (over_slots(scores, mask_n)[:, None] @ memory)[:, 0]
            h = self.cell(torch.cat((x_t, context), dim=-1), h)
            steps.append(self.output(torch.cat((h, context), dim=-1)))
        return torch.stack(steps, dim=1) if steps else x.new_zeros(len(x), 0, h.shape[-1]), h
