"""Concatenation of features."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


class Concat(nn.Module):
    """y_i = [x1_i; x2_i; …]"""

    def forward(self, *xs: Float[Tensor, "*b _d"]) -> Float[Tensor, "*b sum"]:
        return torch.cat(xs, dim=-1)
