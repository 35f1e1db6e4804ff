"""A linear map of the features."""

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn


class Linear(nn.Linear):
    """A linear map of the features.

        y = x Wᵀ + b

    W and b are initialised as in torch, U(±1/sqrt(d)); with `init = xavier`, W is uniform within sqrt(6 / (d +
    out))."""

    def __init__(self, *, out: int, bias: bool, init: str, d: int) -> None:
        super().__init__(d, out, bias=bias)
        if init == "xavier":
            nn.init.xavier_uniform_(self.weight)

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b out"]:
        return F.linear(x, self.weight, self.bias)
