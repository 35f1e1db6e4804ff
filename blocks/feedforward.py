"""Two linear maps with an activation between them."""

from collections.abc import Callable, Mapping
from math import sqrt

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from archlang.backend.kernels.dropout import dropout
from archlang.backend.runtime.joined_linear import NO_PRODUCTS, Products, mapped

ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "silu": F.silu,
    "tanh": torch.tanh,
}


class Feedforward(nn.Module):
    """Two linear maps with an activation between them, applied to each column.

        y = W2 f(drop(W1 x + b1)) + b2

    Vaswani et al., "Attention is all you need", 2017; NDR, Eq. 5. Dropout is applied before f, as in Dynamic Halt's
    program; for relu this equals dropout after f, as in the other programs. Neither paper states the initialisation:
    see the table in feedforward.arch."""

    def __init__(
        self,
        *,
        ff: int,
        activation: str,
        dropout: float,
        output_dropout: float,
        bias: float,
        bias_init: str,
        init: str,
        gain: float,
        d: int,
        tiny: float = 1e-6,
    ) -> None:
        super().__init__()
        self.hidden = nn.Linear(d, ff)
        self.output = nn.Linear(ff, d)
        self.activation = ACTIVATIONS[activation]
        self.dropout = dropout
        self.output_dropout = output_dropout
        if init in ("relu", "relu_hidden"):
            nn.init.xavier_uniform_(self.hidden.weight, sqrt(2))
        elif init == "xavier":
            nn.init.xavier_uniform_(self.hidden.weight)
            nn.init.normal_(self.hidden.bias, std=tiny)
            nn.init.normal_(self.output.bias, std=tiny)
        if init in ("relu", "xavier"):
            nn.init.xavier_uniform_(self.output.weight, gain)
        if bias_init == "constant":
            nn.init.constant_(self.output.bias, bias)

    def forward(self, x: Float[Tensor, "*b d"], *, products: Products = NO_PRODUCTS) -> Float[Tensor, "*b d"]:
        hidden = dropout(mapped(self.hidden, "hidden", x, products), self.dropout, self.training)
        y: Tensor = self.output(self.activation(hidden))
        return dropout(y, self.output_dropout, self.training)
