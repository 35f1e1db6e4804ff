"""Gated updates of columns."""

import torch
from jaxtyping import Float
from torch import Tensor

from archlang.blocks.weightless import Weightless


class CopyGate(Weightless):
    """Interpolates each channel of a column between its state and its update by a gate.

        h' = g * u + (1 - g) * h

    NDR (Csordás, Irie, Schmidhuber, "The Neural Data Router", ICLR 2022), Eq. 4. In training all gates of a column are
    0 with probability `column_dropout`, which is in the paper's program only."""

    column_dropout: float

    def forward(
        self, g: Float[Tensor, "*b d"], u: Float[Tensor, "*b d"], h: Float[Tensor, "*b d"]
    ) -> Float[Tensor, "*b d"]:
        if self.training and self.column_dropout > 0:
            closed = torch.rand(g.shape[:-1], device=g.device) < self.column_dropout
            g = g.masked_fill(closed[..., None], 0.0)
        if g.dtype == u.dtype == h.dtype:
            return torch.lerp(h, u, g)  # one pass, and exactly h where g is 0
        return g * u + (1 - g) * h
