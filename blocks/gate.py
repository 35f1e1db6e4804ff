"""The gate of the Gated Universal Transformer."""

import torch
from jaxtyping import Float
from torch import Tensor

from archlang.backend.runtime.joined_linear import NO_PRODUCTS, Products
from archlang.blocks.feedforward import Feedforward


class Gate(Feedforward):
    """The weight of the update for each channel of a column.

        g = σ(drop(W2 gelu(drop(W1 x + b1)) + b2))

    "Investigating Recurrent Transformers with Dynamic Halt", Eq. 10. The paper does not state that dropout applies to
    the logits, nor that there is no bias towards copying."""

    def __init__(self, *, ff: int, dropout: float, init: str, d: int) -> None:
        super().__init__(
            ff=ff, activation="gelu", dropout=dropout, output_dropout=dropout, bias=0.0, bias_init="drawn", init=init,
            gain=1.0, d=d,
        )  # fmt: skip

    def forward(self, x: Float[Tensor, "*b d"], *, products: Products = NO_PRODUCTS) -> Float[Tensor, "*b d"]:
        return torch.sigmoid(super().forward(x, products=products))
