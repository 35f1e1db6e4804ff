"""The Python of shift.arch: a block that shifts a sequence."""

from __future__ import annotations

from torch import Tensor, nn


class Shift(nn.Module):
    """y_i = x_{i - by}, and 0 for i < by"""

    def __init__(self, *, by: int, d: int) -> None:
        super().__init__()
        self.by = by

    def forward(self, x: Tensor, *, mask_n: Tensor | None = None) -> Tensor:
        return nn.functional.pad(x, (0, 0, self.by, 0))[:, : x.shape[1]]
