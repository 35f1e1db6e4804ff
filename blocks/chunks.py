"""Sequences cut into chunks."""

from math import ceil

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn


class Chunks(nn.Module):
    """Cuts sequences of padded length S into chunks of g positions, the last one shorter.

        fixed       g = size
        balanced    g = ceil(S / ceil(S / size))
        counted     g = ceil(S / count)

    "Investigating Recurrent Transformers with Dynamic Halt", Alg. 2; its torch.chunk is the balanced form. The fixed
    form is ours: it makes the result of a sample independent of the other samples of its batch."""

    def __init__(self, *, size: int, balanced: bool, count: int, d: int) -> None:
        super().__init__()
        self.size = size
        self.balanced = balanced
        self.count = count

    def length(self, total: int) -> int:
        """Returns g for a padded length."""
        if self.count:
            return max(1, ceil(total / self.count))
        if self.balanced and total:
            return ceil(total / ceil(total / self.size))
        return self.size

    def regime(self, total: int, x: Float[Tensor, "b n d"]) -> int:
        """Returns g, on which the cuts of a growing sequence depend."""
        return self.length(total)

    def forward(
        self, x: Float[Tensor, "b n d"], *, mask_n: Bool[Tensor, "b n"] | None = None
    ) -> list[tuple[Float[Tensor, "b _c d"], Bool[Tensor, "b _c"] | None]]:
        length = self.length(x.shape[1])
        parts = torch.split(x, length, dim=1)
        if mask_n is None:
            return [(part, None) for part in parts]
        return list(zip(parts, torch.split(mask_n, length, dim=1), strict=True))
