"""A network with one hidden layer, applied to each column."""

from jaxtyping import Float
from torch import Tensor, nn

from archlang.backend.kernels.dropout import dropout
from archlang.backend.runtime.joined_linear import NO_PRODUCTS, Products, mapped
from archlang.blocks.feedforward import ACTIVATIONS


class Mlp(nn.Module):
    """Two linear maps with an activation between them, to any width.

    y = W2 drop(f(W1 x + b1)) + b2"""

    def __init__(self, *, hidden: int, out: int, activation: str, dropout: float, d: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(d, hidden)
        self.output = nn.Linear(hidden, out)
        self.activation = ACTIVATIONS[activation]
        self.dropout = dropout

    def forward(self, x: Float[Tensor, "*b d"], *, products: Products = NO_PRODUCTS) -> Float[Tensor, "*b out"]:
        hidden = mapped(self.hidden, "hidden", x, products)
        y: Tensor = self.output(dropout(self.activation(hidden), self.dropout, self.training))
        return y
