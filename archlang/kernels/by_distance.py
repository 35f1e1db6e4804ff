"""The scores of each query for its keys, selected from scores for distances.

Torch's derivative of the selection fills and copies two tensors of the size of all scores; this one writes one."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from archlang.backend.runtime.transforms import is_transformed


def by_distance(scores: Float[Tensor, "*b n r"], m: int) -> Float[Tensor, "*b n m"]:
    """Returns for query i and key j < m the score of the distance j - i.

    Args:
        scores: of each query for the distances -(n-1), …, m. If they end at the distance 0, and m <= n, results with
            j > i mean nothing, and must get the gradient 0."""
    # torch.compile and torch.export trace torch's own operations.
    if torch.compiler.is_compiling() or is_transformed() or not scores.numel() or not m:
        return _plainly(scores, m)
    selected: Tensor = _ByDistance.apply(scores, m) if scores.requires_grad else _select(scores, m)
    return selected


def _plainly(scores: Tensor, m: int) -> Tensor:
    n, r = scores.shape[-2:]
    if n == 0:
        return scores[..., :m]
    if r < n + m:
        scores = F.pad(scores, (0, n + m - r))
    # Row i starts at column n-1-i: the rows of a view that is one column narrower and starts at column n-1.
    width = n + m - 1
    narrower = scores.flatten(-2)[..., n - 1 : n - 1 + n * width]
    return narrower.reshape(*scores.shape[:-2], n, width)[..., :m]


def _select(scores: Tensor, m: int) -> Tensor:
    n, r = scores.shape[-2:]
    flat = scores.flatten(-2)
    *outer, step = flat.stride()
    strides = (*outer, (r - 1) * step, step)
    return flat.as_strided((*scores.shape[:-1], m), strides, flat.storage_offset() + (n - 1) * step)


class _ByDistance(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, m: int) -> Tensor:  # Any: torch's context
        ctx.shape = scores.shape
        return _select(scores, m)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:  # Any: as above
        *batch, n, r = ctx.shape
        m = gradient.shape[-1]
        width = r - 1
        flat = gradient.new_empty((*batch, n * r))
        flat[..., : n - 1] = 0.0
        rows = flat[..., n - 1 : -1].unflatten(-1, (n, width))
        rows[..., :m] = gradient[..., :width]
        rows[..., m:] = 0.0
        # If the distances end at 0, the last key of the last query is behind the rows.
        flat[..., -1] = gradient[..., -1, -1] if m > width else 0.0
        return flat.unflatten(-1, (n, r)), None
