"""A learned sequence."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


class Learned(nn.Module):
    """A sequence of learned vectors, the same for every sample.

    They start at zero, or are drawn from N(0, 1). Didolkar et al., "Temporal Latent Bottleneck", 2022."""

    def __init__(self, *, slots: int, d: int, init: str) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(slots, d) if init == "zeros" else torch.randn(slots, d))

    def forward(self, batch: int) -> Float[Tensor, "b slots d"]:
        return self.weight.expand(batch, -1, -1)
