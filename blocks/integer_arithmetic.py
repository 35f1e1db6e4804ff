"""Arithmetic on distributions of integers."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

Function = Callable[[Tensor, Tensor], Tensor]
CONSTANTS = {"zero": 0, "one": 1, "two": 2}
UNARY = {"increment": 1, "decrement": -1}
BINARY: dict[str, Function] = {
    "add": torch.add,
    "subtract": torch.sub,
    "less": torch.lt,
    "less_or_equal": torch.le,
    "equal": torch.eq,
    "minimum": torch.minimum,
    "maximum": torch.maximum,
}


class IntegerArithmetic(nn.Module):
    """y_c = Σ_{i, j} a_i b_j [f(i, j) = c], modulo m

    Kurach, Andrychowicz, Sutskever, "Neural random-access machines", ICLR 2016."""

    results: Tensor
    unit: Tensor

    def __init__(self, *, operation: str, m: int) -> None:
        super().__init__()
        self.operation = operation
        integers = torch.arange(m)
        if operation in BINARY:
            results = BINARY[operation](integers[:, None], integers).long().flatten() % m
            self.register_buffer("results", results, persistent=False)
        elif operation in CONSTANTS:
            unit = torch.eye(m)[CONSTANTS[operation] % m]
            self.register_buffer("unit", unit, persistent=False)

    def forward(self, a: Float[Tensor, "*b m"], b: Float[Tensor, "*b m"]) -> Float[Tensor, "*b m"]:
        if self.operation in CONSTANTS:
            return self.unit.expand(a.shape)
        if self.operation in UNARY:
            return a.roll(UNARY[self.operation], -1)
        joint = (a[..., :, None] * b[..., None, :]).flatten(-2)
        return torch.zeros_like(a).index_add(-1, self.results, joint)
