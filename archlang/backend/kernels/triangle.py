"""The lower triangle of blocks of rows, most of whose columns are kept: only the others are set, in a copy."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from archlang.backend.runtime.stacking import is_transformed


def lower_triangle(x: Float[Tensor, "*b n m"], diagonal: int) -> Float[Tensor, "*b n m"]:
    """Returns x at the columns up to `diagonal` + i of row i, else 0."""
    # torch.compile and torch.export trace torch's own operation, whose kernel writes number by number.
    if diagonal <= 0 or torch.compiler.is_compiling() or is_transformed():
        return x.tril(diagonal)
    lower: Tensor = _LowerTriangle.apply(x, diagonal)
    return lower


class _LowerTriangle(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, diagonal: int) -> Tensor:  # Any: torch's context
        ctx.diagonal = diagonal
        lower = x.clone()
        lower[..., diagonal:].tril_()
        return lower

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:  # Any: as above
        return lower_triangle(gradient, ctx.diagonal), None
