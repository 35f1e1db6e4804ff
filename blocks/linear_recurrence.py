"""Recurrences with a matrix for each head as state, computed in chunks."""

from math import sqrt

import torch
from jaxtyping import Float
from torch import Tensor

from archlang.backend.decode.block_cache import BlockCache
from archlang.backend.runtime.block import MaskN, Weightless
from archlang.backend.runtime.linear_recurrence import Terms, linear_recurrence
from archlang.blocks.attention import join_heads, split_heads


class _FromZero(Weightless):
    """A recurrence from a zero state; `_terms` returns what the kernel reads of the inputs, split into heads."""

    heads: int
    scale: float
    d: int

    def _terms(self, *inputs: Float[Tensor, "b h n _c"]) -> Terms:
        raise NotImplementedError

    def _scaled(self, q: Float[Tensor, "b h n c"]) -> Float[Tensor, "b h n c"]:
        return (self.scale or sqrt(self.heads / self.d)) * q

    def forward(self, *inputs: Float[Tensor, "b n _d"], mask_n: MaskN = None) -> Float[Tensor, "b n e"]:
        y, _ = linear_recurrence(*self._terms(*(split_heads(x, self.heads) for x in inputs)), mask=mask_n)
        return join_heads(y)

    def extend(
        self, cache: BlockCache, *inputs: Float[Tensor, "b n _d"], mask_n: MaskN = None
    ) -> Float[Tensor, "b n e"]:
        terms = self._terms(*(split_heads(x, self.heads) for x in inputs))
        y, cache.tensors["state"] = linear_recurrence(*terms, state=cache.tensors.get("state"), mask=mask_n)
        return join_heads(y)


class LinearAttention(_FromZero):
    """Linear attention with a decaying memory.

        S_i = diag(exp g_i) S_{i-1} + k_i v_iᵀ,    S_0 = 0,    y_i = scale · S_iᵀ q_i

    Yang et al., "Gated linear attention transformers with hardware-efficient training", ICML 2024, Eq. 3; with g for
    each head, Sun et al., "Retentive network", 2023, and Dao, Gu, "Transformers are SSMs", ICML 2024 (Mamba-2)."""

    def _terms(self, *inputs: Float[Tensor, "b h n _c"]) -> Terms:
        q, k, v, log_decay = inputs
        return self._scaled(q), k, v, log_decay, None, None


class Retention(_FromZero):
    """Linear attention whose memory decays by a fixed factor for each head.

        S_i = γ_h S_{i-1} + k_i v_iᵀ,    S_0 = 0,    y_i = scale · S_iᵀ q_i,    γ_h = 1 - 2^(-5 - h)

    Sun et al., "Retentive network", 2023, Eqs. 6 and 8."""

    log_decay: Tensor

    def __init__(self, *, heads: int, **statics: object) -> None:
        super().__init__(heads=heads, **statics)
        log_decay = torch.log1p(-(2.0 ** (-5 - torch.arange(heads, dtype=torch.float64))))
        self.register_buffer("log_decay", log_decay, persistent=False)

    def _terms(self, *inputs: Float[Tensor, "b h n _c"]) -> Terms:
        q, k, v = inputs
        log_decay = self.log_decay.to(q.dtype)[:, None, None].expand(*q.shape[:3], 1)
        return self._scaled(q), k, v, log_decay, None, None


class DeltaRule(_FromZero):
    """The delta rule.

        S_i = S_{i-1} + β_i k_i (v_i - S_{i-1}ᵀ k_i)ᵀ,    S_0 = 0,    y_i = scale · S_iᵀ q_i

    Yang et al., "Parallelizing linear transformers with the delta rule over sequence length", NeurIPS 2024."""

    def _terms(self, *inputs: Float[Tensor, "b h n _c"]) -> Terms:
        q, k, v, beta = inputs
        return self._scaled(q), k, beta * v, None, k, -beta


class GatedDeltaRule(_FromZero):
    """The delta rule with a memory that decays first.

        S'_i = exp(g_i) S_{i-1},    S_i = S'_i + β_i k_i (v_i - S'_iᵀ k_i)ᵀ,    y_i = scale · S_iᵀ q_i

    Yang, Kautz, Hatamizadeh, "Gated delta networks", ICLR 2025, Eq. 10."""

    def _terms(self, *inputs: Float[Tensor, "b h n _c"]) -> Terms:
        q, k, v, beta, log_decay = inputs
        return self._scaled(q), k, beta * v, log_decay, k, -beta * log_decay.exp()


class LinearRecurrence(Weightless):
    """A recurrence whose transition is a diagonal plus a product of two vectors, from a given state.

        S_i = diag(exp g_i) S_{i-1} + b_i (S_{i-1}ᵀ a_i)ᵀ + k_i v_iᵀ,    y_i = S_iᵀ q_i

    Peng et al., "RWKV-7 Goose with expressive dynamic state evolution", 2025, with the transposed state."""

    heads: int

    def forward(self, *inputs: Float[Tensor, "b _n _d"], mask_n: MaskN = None) -> Float[Tensor, "b _m e"]:
        q, k, v, log_decay, a, b, state = (split_heads(x, self.heads) for x in inputs)
        y, _ = linear_recurrence(q, k, v, log_decay, a, b, state=state, mask=mask_n)
        return join_heads(y)

    def extend(
        self, cache: BlockCache, *inputs: Float[Tensor, "b _n _d"], mask_n: MaskN = None
    ) -> Float[Tensor, "b _m e"]:
        q, k, v, log_decay, a, b, state = (split_heads(x, self.heads) for x in inputs)
        state = cache.tensors.get("state", state)
        y, cache.tensors["state"] = linear_recurrence(q, k, v, log_decay, a, b, state=state, mask=mask_n)
        return join_heads(y)
