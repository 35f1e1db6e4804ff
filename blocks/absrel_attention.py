"""Relative attention with a gate between distances and absolute positions."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from archlang.backend.runtime.joined_linear import Products, mapped
from archlang.blocks.relative_attention import RelativeAttention


class AbsrelAttention(RelativeAttention):
    """Relative attention in which each query weighs distances against absolute positions with a gate.

        logit_ij = α ((q_i + b) · k_j + r_i (q_i + c) · R p_{j-i} + (1 - r_i) (q_i + c) · R p_j)
        r_i      = σ(w · h_i + b_r)

    NDR (Csordás, Irie, Schmidhuber, "The Neural Data Router", ICLR 2022), Eqs. 16-17. The paper has one gate for all
    heads, its program one per head. The gate is initialised as in torch's Linear."""

    def __init__(self, *, gates: str, heads: int, d: int, **statics: Any) -> None:  # Any: as of RelativeAttention
        super().__init__(heads=heads, d=d, **statics)
        self.relative_gate = nn.Linear(d, heads if gates == "per_head" else 1)

    def _distances(self, n: int, m: int) -> int:
        return n + m  # those of positive distances are those of absolute positions

    def _place(
        self, q: Float[Tensor, "b n d"], scores: Float[Tensor, "b h n r"], m: int, start: int, products: Products
    ) -> Float[Tensor, "b h n m"]:
        gate = mapped(self.relative_gate, "relative_gate", q, products)
        relative = torch.sigmoid(gate).transpose(1, 2)[..., None]
        # The position of key j is its distance from position 0, whose score follows those of the negative distances.
        placed = scores.narrow(-1, max(0, start + q.shape[1] - 1), m)
        return relative * super()._place(q, scores, m, start, products) + (1 - relative) * placed
