"""A recurrent network that attends to a memory before each step."""

from collections.abc import Sequence
from math import sqrt

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from archlang.backend.decode.block_cache import BlockCache
from archlang.backend.runtime.graph_loops import scan_steps
from archlang.backend.runtime.padded_division import Mask, real_only
from archlang.blocks.pointer_unit import gated, over_slots


class AttentiveGru(nn.Module):
    """A GRU that attends to a memory before each step.

        e_n = v · relu(W [h_{t-1}; m_n] + b),    c_t = Σ_n softmax_n(e_n) m_n
        h_t = GRU([x_t; c_t], h_{t-1}),          y_t = O [h_t; c_t] + o

    The controller of the program of Le et al., "Enhancing Length Extrapolation in Sequential Models with
    Pointer-Augmented Neural Memory", 2024; the controller of the paper (Eq. 7) is a GRU that reads mode 2 instead."""

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
        mask_n: Bool[Tensor, "b n"] | None = None,
        **_: Mask,
    ) -> Float[Tensor, "b t hidden"]:
        memory = real_only(memory, mask_n)
        return self._results(*self.states(x, memory, start, mask_n), memory)

    def extend(
        self,
        cache: BlockCache,
        x: Float[Tensor, "b t e"],
        memory: Float[Tensor, "b n d"],
        start: Float[Tensor, "b hidden"],
        *,
        mask_n: Bool[Tensor, "b n"] | None = None,
        **_: Mask,
    ) -> Float[Tensor, "b t hidden"]:
        memory = real_only(memory, mask_n)
        states, weights = self.states(x, memory, cache.tensors.get("h", start), mask_n)
        if states.shape[1]:
            cache.tensors["h"] = states[:, -1]
        return self._results(states, weights, memory)

    def states(
        self,
        x: Float[Tensor, "b t e"],
        memory: Float[Tensor, "b n d"],
        h: Float[Tensor, "b hidden"],
        mask_n: Bool[Tensor, "b n"] | None = None,
    ) -> tuple[Float[Tensor, "b t hidden"], Float[Tensor, "b t n"]]:
        """Returns h_t and softmax_n(e_n) of the steps after the state h.

        W [h; m] is W_h h + W_m m, and the gates are sums too: the terms of x and of the memory are computed for all
        steps at once, before the recurrence."""
        widths = [x.shape[-1], h.shape[-1], memory.shape[-1]]
        of_state, of_memory = torch.split(self.attention.weight, widths[1:], dim=1)
        slots = F.linear(memory, of_memory, self.attention.bias)
        of_input, of_context = torch.split(self.cell.weight_ih, widths[::2], dim=1)
        input_gates = F.linear(x, of_input, self.cell.bias_ih)
        weight = torch.cat((of_state, self.cell.weight_hh))
        bias = torch.cat((torch.zeros_like(self.attention.bias), self.cell.bias_hh))

        def step(states: Sequence[Tensor], inputs: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
            """Returns the next state, and the weights of the memory."""
            (h,), (gates,) = states, inputs
            products = F.linear(h, weight, bias)
            query, state_gates = products[:, : len(of_state)], products[:, len(of_state) :]
            weights = over_slots(F.relu(query[:, None] + slots) @ self.score, mask_n)
            h = gated(torch.addmm(gates, (weights[:, None] @ memory)[:, 0], of_context.T), state_gates, h)
            return [h], [h, weights]

        _, (states, weights) = scan_steps(step, [h], [input_gates.transpose(0, 1)])
        return states.transpose(0, 1), weights.transpose(0, 1)

    def _results(
        self, states: Float[Tensor, "b t hidden"], weights: Float[Tensor, "b t n"], memory: Float[Tensor, "b n d"]
    ) -> Float[Tensor, "b t hidden"]:
        y: Tensor = self.output(torch.cat((states, weights @ memory), dim=-1))
        return y
