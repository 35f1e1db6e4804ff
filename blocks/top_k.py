"""The largest features."""

import torch
from jaxtyping import Float
from torch import Tensor, nn


class TopK(nn.Module):
    """y_c = 1 if x_c is among the k largest features, else 0

    Among equal features, torch.sort chooses: ONNX has no stable sort.
    With `straight_through`, ∂y/∂x is the identity, as in Bengio, Léonard, Courville, "Estimating or propagating
    gradients through stochastic neurons", 2013."""

    def __init__(self, *, k: int, straight_through: bool, d: int) -> None:
        super().__init__()
        self.k = k
        self.straight_through = straight_through

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b d"]:
        largest = x.detach().sort(dim=-1, descending=True).indices[..., : self.k]
        y = torch.zeros_like(x).scatter(-1, largest, 1.0)
        # x - x is 0 also in rounding, unlike y - x + x.
        return y + (x - x.detach()) if self.straight_through else y
