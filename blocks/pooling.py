"""Reductions of a sequence to a vector, which ignore padding."""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from archlang.blocks.weightless import Weightless


class First(Weightless):
    """y = x_0; zeros for a sample without positions"""

    def forward(self, x: Float[Tensor, "b n d"], *, mask_n: Bool[Tensor, "b n"] | None = None) -> Float[Tensor, "b d"]:
        if x.shape[1] == 0:
            return x.new_zeros(x.shape[0], x.shape[2])
        return x[:, 0] if mask_n is None else x[:, 0].masked_fill(~mask_n[:, :1], 0.0)


class Last(Weightless):
    """y = x_i, i the last real position; zeros for a sample without positions"""

    def forward(self, x: Float[Tensor, "b n d"], *, mask_n: Bool[Tensor, "b n"] | None = None) -> Float[Tensor, "b d"]:
        if x.shape[1] == 0:
            return x.new_zeros(x.shape[0], x.shape[2])
        if mask_n is None:
            return x[:, -1]
        place = (mask_n * torch.arange(x.shape[1], device=x.device)).amax(1)
        y = x[torch.arange(x.shape[0], device=x.device), place]
        return y.masked_fill(~mask_n.any(1, keepdim=True), 0.0)


class Sum(Weightless):
    """y = Σ_i x_i over the real positions"""

    acts_as = "sum"

    def forward(self, x: Float[Tensor, "b n d"], *, mask_n: Bool[Tensor, "b n"] | None = None) -> Float[Tensor, "b d"]:
        return x.sum(1) if mask_n is None else x.masked_fill(~mask_n[..., None], 0.0).sum(1)


class Mean(Weightless):
    """y = Σ_i x_i / n over the n real positions; zeros for a sample without positions"""

    def forward(self, x: Float[Tensor, "b n d"], *, mask_n: Bool[Tensor, "b n"] | None = None) -> Float[Tensor, "b d"]:
        if mask_n is None:
            return x.sum(1) / max(1, x.shape[1])
        count = mask_n.sum(1, keepdim=True).clamp(min=1)
        return x.masked_fill(~mask_n[..., None], 0.0).sum(1) / count


class Max(Weightless):
    """y = max_i x_i over the real positions; zeros for a sample without positions"""

    def forward(self, x: Float[Tensor, "b n d"], *, mask_n: Bool[Tensor, "b n"] | None = None) -> Float[Tensor, "b d"]:
        return extreme(x, mask_n, torch.amax, -torch.inf)


class Min(Weightless):
    """y = min_i x_i over the real positions; zeros for a sample without positions"""

    def forward(self, x: Float[Tensor, "b n d"], *, mask_n: Bool[Tensor, "b n"] | None = None) -> Float[Tensor, "b d"]:
        return extreme(x, mask_n, torch.amin, torch.inf)


def extreme(
    x: Float[Tensor, "b n d"], mask_n: Bool[Tensor, "b n"] | None, reduce: Callable[[Tensor, int], Tensor], last: float
) -> Float[Tensor, "b d"]:
    """Returns max or min over the real positions; zeros for a sample without positions. `last` is never chosen."""
    if x.shape[1] == 0:
        return x.new_zeros(x.shape[0], x.shape[2])
    if mask_n is None:
        return reduce(x, 1)
    return reduce(x.masked_fill(~mask_n[..., None], last), 1).masked_fill(~mask_n.any(1, keepdim=True), 0.0)
