"""A recurrent network that looks at a memory before each step."""

from __future__ import annotations

from math import sqrt

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

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
        h = start
        steps = []
        for x_t in x.unbind(1):
            beside = h[:, None].expand(-1, memory.shape[1], -1)
            scores = F.relu(self.attention(torch.cat((beside, memory), dim=-1))) @ self.score
            context = (over_slots(scores, mask_n)[:, None] @ memory)[:, 0]
            h = self.cell(torch.cat((x_t, context), dim=-1), h)
            steps.append(self.output(torch.cat((h, context), dim=-1)))
        return torch.stack(steps, dim=1) if steps else x.new_zeros(len(x), 0, h.shape[-1])
