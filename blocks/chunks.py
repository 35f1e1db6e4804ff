"""Sequences cut into chunks."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from archlang.backend.runtime.graph_loops import is_exporting
from archlang.backend.runtime.scans import StackedChunks
from archlang.blocks.weightless import Weightless


class Chunks(Weightless):
    """Cuts sequences of padded length S into chunks of g positions, the last one shorter.

        fixed       g = size
        balanced    g = ceil(S / ceil(S / size))
        counted     g = ceil(S / count)

    "Investigating Recurrent Transformers with Dynamic Halt", Alg. 2; its torch.chunk is the balanced form. The fixed
    form is ours: it makes the result of a sample independent of the other samples of its batch."""

    size: int
    balanced: bool
    count: int

    def length(self, total: int) -> int:
        """Returns g for a padded length."""
        if self.count:
            return max(1, -(-total // self.count))
        if self.balanced and total:
            return -(-total // -(-total // self.size))
        return self.size

    def regime(self, total: int, x: Float[Tensor, "b n d"]) -> int:
        """Returns g, on which the cuts of a growing sequence depend."""
        return self.length(total)

    def forward(
        self, x: Float[Tensor, "b n d"], *, mask_n: Bool[Tensor, "b n"] | None = None
    ) -> list[tuple[Float[Tensor, "b _c d"], Bool[Tensor, "b _c"] | None]] | StackedChunks:
        length = self.length(x.shape[1])
        if is_exporting():
            return stacked_chunks(x, mask_n, length)
        parts = torch.split(x, length, dim=1)
        if mask_n is None and not x.shape[1]:  # a chunk that belongs to no sample
            mask_n = x.new_ones(x.shape[:2], dtype=torch.bool)
        if mask_n is None:
            return [(part, None) for part in parts]
        return list(zip(parts, torch.split(mask_n, length, dim=1), strict=True))


def stacked_chunks(x: Float[Tensor, "b n d"], mask_n: Bool[Tensor, "b n"] | None, length: int) -> StackedChunks:
    """Returns the chunks of a length, of which the last are padded: there are at least two, because torch compiles one
    as a constant."""
    n = x.shape[1]
    count = (n + length - 1) // length + 1
    # Gathered, because torch would branch on how much padding is needed.
    place = length * torch.arange(count, device=x.device)[:, None] + torch.arange(length, device=x.device)
    inside = place.clamp(max=n - 1)
    masks = (place < n)[:, None].expand(-1, x.shape[0], -1)
    if mask_n is not None:
        masks = masks & mask_n[:, inside].transpose(0, 1)
    return StackedChunks(x[:, inside].transpose(0, 1), masks, n)
