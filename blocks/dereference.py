"""What pointers point at."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn


class Dereference(nn.Module):
    """What pointers point at, side by side.

        y_t = concat over pointers of  Wo (Σ_n w_t[n] (Wv m_n + bv)) + bo    (code)
                                       Σ_n w_t[n] m_n                        (paper)

    Le et al., "Pointer-Augmented Neural Memory", 2024, section 2.3.2, mode 1. The maps, one pair for each pointer, are
    in its program only; Wv starts by Xavier, Wo as torch's Linear, biases of both at 0, as in MultiheadAttention."""

    def __init__(self, *, form: str, k: int, d: int) -> None:
        super().__init__()
        projected = k if form == "code" else 0
        self.value = nn.ModuleList(nn.Linear(d, d) for _ in range(projected))
        self.output = nn.ModuleList(nn.Linear(d, d) for _ in range(projected))
        for value, output in zip(self.value, self.output, strict=True):
            nn.init.xavier_uniform_(value.get_parameter("weight"))
            nn.init.zeros_(value.get_parameter("bias"))
            nn.init.zeros_(output.get_parameter("bias"))

    def forward(
        self,
        w: Float[Tensor, "b t k n"],
        memory: Float[Tensor, "b n d"],
        *,
        mask_t: Bool[Tensor, "b t"] | None = None,
        mask_n: Bool[Tensor, "b n"] | None = None,
    ) -> Float[Tensor, "b t k*d"]:
        if w.dim() != 4:
            raise ValueError("dereference takes what pointer_unit gives, not addresses themselves")
        if not self.value:
            return (w @ memory[:, None]).flatten(2)
        pairs = zip(self.value, self.output, strict=True)
        return torch.cat([output(w[:, :, i] @ value(memory)) for i, (value, output) in enumerate(pairs)], dim=-1)
