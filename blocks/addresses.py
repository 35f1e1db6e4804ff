"""Physical addresses of memory slots."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn


class Addresses(nn.Module):
    """The numbers base, base + 1, … in binary, one for each slot of a memory.

        a_n = the bits of (base + n) mod 2^bits, the least significant first

    Le et al., "Pointer-Augmented Neural Memory", 2024, section 2.2. The paper writes the most significant bit first,
    its program the least; the base is 0 at test, where the program draws it too."""

    def __init__(self, *, bits: int, base: str, d: int) -> None:
        super().__init__()
        self.bits = bits
        self.base = base

    def forward(
        self, memory: Float[Tensor, "b n d"], *, mask_n: Bool[Tensor, "b n"] | None = None
    ) -> Float[Tensor, "b n bits"]:
        b, n, _ = memory.shape
        base = torch.zeros(b, 1, dtype=torch.int64, device=memory.device)
        if self.base == "always" or (self.base == "training" and self.training):
            base = torch.randint(2**self.bits, (b, 1), device=memory.device)
        return self.bank(base, n).to(memory.dtype)

    def bank(self, base: Tensor, n: int) -> Tensor:
        """The bits [b, n, bits] of n addresses from each base [b, 1] on; the address after the last one is 0."""
        address = base + torch.arange(n, device=base.device)
        return (address[..., None] >> torch.arange(self.bits, device=base.device)) & 1
