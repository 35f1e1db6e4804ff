"""Linear maps of the features, and two of them with an activation between."""

from collections.abc import Callable, Mapping
from functools import partial
from math import sqrt

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from archlang.backend.kernels.dropout import dropout
from archlang.backend.runtime.joined_linear import NO_PRODUCTS, Products, mapped


class Linear(nn.Linear):
    """A linear map of the features.

        y = x Wᵀ + b

    W and b are initialised as in torch, U(±1/sqrt(d)); with `init = xavier`, W is uniform within sqrt(6 / (d + out)).
    With `normal` W is from N(0, std²), with `orthogonal` orthonormal, with `zeros` 0, and b is 0."""

    acts_as = "affine"

    def __init__(self, *, out: int, bias: bool, init: str, std: float, d: int) -> None:
        super().__init__(d, out, bias=bias)
        draw: dict[str, Callable[[Tensor], Tensor]] = {
            "xavier": nn.init.xavier_uniform_, "normal": partial(nn.init.normal_, std=std),
            "orthogonal": nn.init.orthogonal_, "zeros": nn.init.zeros_,
        }  # fmt: skip
        if init in draw:
            draw[init](self.weight)
        if init not in ("torch", "xavier") and bias:
            nn.init.zeros_(self.bias)

    def forward(self, x: Float[Tensor, "*b d"]) -> Float[Tensor, "*b out"]:
        return F.linear(x, self.weight, self.bias)


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
