"""Reads of slots that resemble the values that pointers point at."""

from math import sqrt

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from archlang.backend.decode.block_cache import BlockCache
from archlang.backend.kernels.dropout import dropout
from archlang.backend.runtime.padded_division import Mask, real_only
from archlang.blocks.pointer_unit import over_slots, so_far


class DotRead(nn.Module):
    """q = Wq (L p_t + l) + bq,  w = softmax_n(q · (Wk m_n + bk) / sqrt(d)),  y_t = Wo (Σ_n w[n] (Wv m_n + bv)) + bo

    Wq, Wk and Wv start as Xavier of one joint matrix, L and Wo as torch's Linear, all biases except l at 0."""

    def __init__(self, reads: int, k: int, d: int, dropout: float) -> None:
        super().__init__()
        self.pointed = nn.Linear(k, reads * d)  # L and l of all reads
        self.query = nn.Linear(d, d)
        self.key = nn.Linear(d, d)
        self.value = nn.Linear(d, d)
        self.output = nn.Linear(d, d)
        for projection in (self.query, self.key, self.value):
            bound = sqrt(6 / (4 * d))
            nn.init.uniform_(projection.weight, -bound, bound)
            nn.init.zeros_(projection.bias)
        nn.init.zeros_(self.output.bias)
        self.reads = reads
        self.dropout = dropout

    def weights(
        self, p: Float[Tensor, "b t k"], memory: Float[Tensor, "b n d"], mask: Bool[Tensor, "_b *_t n"] | None
    ) -> Float[Tensor, "b t reads n"]:
        pointed: Tensor = self.pointed(p)
        # One product for all steps and reads of a sample.
        query = self.query(pointed.reshape(p.shape[0], -1, memory.shape[-1]))
        scores = query @ self.key(memory).transpose(-1, -2) / sqrt(memory.shape[-1])
        return over_slots(scores.view(*p.shape[:2], self.reads, memory.shape[1]), mask)

    def forward(
        self, p: Float[Tensor, "b t k"], memory: Float[Tensor, "b n d"], mask: Bool[Tensor, "_b *_t n"] | None
    ) -> Float[Tensor, "b t reads d"]:
        weights = dropout(self.weights(p, memory, mask), self.dropout, self.training)
        y: Tensor = self.output(weights.flatten(1, 2) @ self.value(memory))
        return y.view(*p.shape[:2], self.reads, memory.shape[-1])


class CosineRead(nn.Module):
    """q = W2 relu(W1 p_t + b1) + b2,  w = softmax_n(cos(q, m_n)),  y_t = Σ_n w[n] m_n: Eqs. 4-6 as printed."""

    def __init__(self, reads: int, k: int, d: int, width: int, dropout: float, epsilon: float = 1e-8) -> None:
        super().__init__()
        self.hidden = nn.ModuleList(nn.Linear(k, width) for _ in range(reads))
        self.output = nn.ModuleList(nn.Linear(width, d) for _ in range(reads))
        self.dropout = dropout
        self.epsilon = epsilon

    def weights(
        self, p: Float[Tensor, "b t k"], memory: Float[Tensor, "b n d"], mask: Bool[Tensor, "_b *_t n"] | None
    ) -> Float[Tensor, "b t reads n"]:
        maps = zip(self.hidden, self.output, strict=True)
        query = torch.stack([output(F.relu(hidden(p))) for hidden, output in maps], dim=2)
        size = query.norm(dim=-1, keepdim=True) * memory.norm(dim=-1)[:, None, None]
        scores = query @ memory[:, None].transpose(-1, -2) / size.clamp(min=self.epsilon)
        return over_slots(scores, mask)

    def forward(
        self, p: Float[Tensor, "b t k"], memory: Float[Tensor, "b n d"], mask: Bool[Tensor, "_b *_t n"] | None
    ) -> Float[Tensor, "b t reads d"]:
        return dropout(self.weights(p, memory, mask), self.dropout, self.training) @ memory[:, None]


class RelationalRead(nn.Module):
    """Reads slots of a memory that resemble the values that pointers point at: y_t concatenates all reads.

    Le et al., "Enhancing Length Extrapolation in Sequential Models with Pointer-Augmented Neural Memory", 2024, Eqs.
    4-6 (mode 2), in the form of its program (DotRead: a scaled dot product, reads share all maps except L, dropout 0.5
    on w) or of the paper (CosineRead)."""

    def __init__(self, *, reads: int, hidden: int, form: str, dropout: float, causal: bool, k: int, d: int) -> None:
        super().__init__()
        self.reads = reads
        self.causal = causal
        self.read: DotRead | CosineRead
        if form == "code":
            self.read = DotRead(reads, k, d, dropout)
        else:
            self.read = CosineRead(reads, k, d, hidden, dropout)

    def forward(
        self,
        p: Float[Tensor, "b t k"],
        memory: Float[Tensor, "b n d"],
        *,
        mask_n: Bool[Tensor, "b n"] | None = None,
        **_: Mask,
    ) -> Float[Tensor, "b t {self.reads}*d"]:
        return self._read(p, memory, mask_n, 0)

    def extend(
        self,
        cache: BlockCache,
        p: Float[Tensor, "b t k"],
        memory: Float[Tensor, "b n d"],
        *,
        mask_n: Bool[Tensor, "b n"] | None = None,
        **_: Mask,
    ) -> Float[Tensor, "b t {self.reads}*d"]:
        if cache.grows[1]:
            memory = cache.append("memory", memory)
        return self._read(p, memory, mask_n, cache.start)

    def _read(
        self, p: Float[Tensor, "b t k"], memory: Float[Tensor, "b n d"], mask_n: Bool[Tensor, "b n"] | None, begin: int
    ) -> Float[Tensor, "b t {self.reads}*d"]:
        """Returns the reads of the steps from `begin`."""
        seen = mask_n
        if self.causal:
            seen = so_far(begin + p.shape[1], memory.shape[1], p.device)[None, begin:]
            seen = seen if mask_n is None else seen & mask_n[:, None]
        y: Tensor = self.read(p, real_only(memory, mask_n), seen)
        return y.flatten(2)
