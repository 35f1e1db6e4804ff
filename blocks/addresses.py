"""Physical addresses of memory slots."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from archlang.backend.runtime.graph_loops import is_exporting
from archlang.backend.runtime.padded_division import Mask
from archlang.blocks.weightless import Weightless


class Addresses(Weightless):
    """The binary numbers base, base + 1, …, one for each slot of a memory.

        a_n = the bits of (base + n) mod 2^bits, the least significant first

    Le et al., "Enhancing Length Extrapolation in Sequential Models with Pointer-Augmented Neural Memory", 2024,
    section 2.2. The paper writes the most significant bit first, its program the least. With `base = training` the base
    is 0 in evaluation, where the program draws it too."""

    bits: int
    base: str

    def forward(self, memory: Float[Tensor, "b n d"], **_: Mask) -> Float[Tensor, "b n bits"]:
        b, n = memory.shape[:2]
        return self.bank(self.bases(b, memory.device)[:, None], n).to(memory.dtype)

    def bases(self, b: int, device: torch.device) -> Int[Tensor, " b"]:
        """Returns the first address of each sample."""
        if self.base == "always" or (self.base == "training" and self.training):
            return torch.randint(2**self.bits, (b,), device=device)
        return torch.zeros(b, dtype=torch.int64, device=device)

    def bank(self, base: Int[Tensor, "b 1"], n: int) -> Int[Tensor, "b n bits"]:
        """Returns the bits of n addresses from each base; addresses wrap around to 0."""
        address = base + torch.arange(n, device=base.device)
        if is_exporting():  # ONNX shifts unsigned numbers only
            power = 2 ** torch.arange(self.bits, device=base.device)
            return (address[..., None] % (2 * power) >= power).to(torch.int64)
        return (address[..., None] >> torch.arange(self.bits, device=base.device)) & 1
