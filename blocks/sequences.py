"""Selects, moves and adds positions of sequences."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from archlang.backend.decode.block_cache import BlockCache
from archlang.backend.runtime.block import Mask, MaskM, MaskN, Weightless, real_only
from archlang.blocks.positions import counted


def states_at(x: Float[Tensor, "b n d"], positions: Tensor) -> Float[Tensor, "b m d"]:
    """Returns the states at integer positions [b m]; zeros where x has no such position."""
    # A position more, so that x may have none.
    padded = torch.cat((x, x.new_zeros(x.shape[0], 1, x.shape[2])), 1)
    outside = (positions < 0) | (positions >= x.shape[1])
    index = positions.masked_fill(outside, x.shape[1])
    return padded.gather(1, index[..., None].expand(-1, -1, x.shape[2]))


class Shift(Weightless):
    """y_i = x_{i - by}, zeros at positions that the sample does not have"""

    by: int

    def forward(self, x: Float[Tensor, "b n d"], *, mask_n: MaskN = None) -> Float[Tensor, "b n d"]:
        b, n, d = x.shape
        zeros = x.new_zeros(b, abs(self.by), d)
        if self.by >= 0:
            return torch.cat((zeros, x), 1)[:, :n]
        return torch.cat((real_only(x, mask_n), zeros), 1)[:, -self.by :]

    def extend(self, cache: BlockCache, x: Float[Tensor, "b n d"], **_: Mask) -> Float[Tensor, "b n d"]:
        before = cache.tensors.get("before", x.new_zeros(x.shape[0], self.by, x.shape[2]))
        states = torch.cat((before, x), 1)
        cache.tensors["before"] = states[:, x.shape[1] :]
        return states[:, : x.shape[1]]


class Slice(Weightless):
    """y_i = x_{start + i}, i < length; a negative start counts from the end of the sample

    Positions that the sample does not have are zeros."""

    start: int
    length: int

    def forward(self, x: Float[Tensor, "b n d"], *, mask_n: MaskN = None) -> Float[Tensor, "b length d"]:
        positions = torch.arange(self.start, self.start + self.length, device=x.device).expand(x.shape[0], -1)
        if self.start < 0:
            positions = positions + (x.shape[1] if mask_n is None else mask_n.sum(1, keepdim=True))
        return states_at(real_only(x, mask_n), positions)


class Append(Weightless):
    """y = [x_0; …; x_{n - 1}; y_0; …; y_{m - 1}] of the real positions; padding stays at the end"""

    def forward(
        self, x: Float[Tensor, "b n d"], y: Float[Tensor, "b m d"], *, mask_n: MaskN = None, mask_m: MaskM = None
    ) -> tuple[Float[Tensor, "b n+m d"], Bool[Tensor, "b n+m"] | None]:
        both = torch.cat((x, y), 1)
        if mask_n is None and mask_m is None:
            return both, None
        n, m = x.shape[1], y.shape[1]
        place = torch.arange(n + m, device=x.device).expand(x.shape[0], -1)
        first = torch.full_like(place[:, :1], n) if mask_n is None else mask_n.sum(1, keepdim=True)
        second = torch.full_like(place[:, :1], m) if mask_m is None else mask_m.sum(1, keepdim=True)
        return states_at(both, torch.where(place < first, place, place + n - first)), place < first + second


class Pad(Weightless):
    """y = [0; …; 0; x_0; …; x_{n - 1}; 0; …; 0], with zeros before the first and after the last real position"""

    before: int
    after: int

    def forward(
        self, x: Float[Tensor, "b n d"], *, mask_n: MaskN = None
    ) -> tuple[Float[Tensor, "b _m d"], Bool[Tensor, "b _m"] | None]:
        b, n, d = x.shape
        y = torch.cat((x.new_zeros(b, self.before, d), real_only(x, mask_n), x.new_zeros(b, self.after, d)), 1)
        if mask_n is None:
            return y, None
        place = torch.arange(n + self.before + self.after, device=x.device)
        return y, place < mask_n.sum(1, keepdim=True) + self.before + self.after


class Expand(Weightless):
    """y_0 = x"""

    def forward(self, x: Float[Tensor, "b d"]) -> Float[Tensor, "b 1 d"]:
        return x[:, None]


class Indices(Weightless):
    """y_i = i"""

    def forward(self, x: Float[Tensor, "b n d"], **_: Mask) -> Float[Tensor, "b n 1"]:
        return counted(x.shape[1], x).to(x.dtype)[:, None].expand(x.shape[0], -1, -1)


class Gather(Weightless):
    """y_i = x_{at_i}, at rounded to the nearest; zeros where the sample has no such position"""

    def forward(
        self, x: Float[Tensor, "b n d"], at: Float[Tensor, "b m 1"], *, mask_n: MaskN = None, **_: Mask
    ) -> Float[Tensor, "b m d"]:
        nearest = at.detach()[..., 0].round()
        inside = (nearest >= 0) & (nearest < x.shape[1])  # false for NaN
        return states_at(real_only(x, mask_n), nearest.masked_fill(~inside, -1.0).long())


class Transpose(Weightless):
    """y_ic = x_ci"""

    def forward(self, x: Float[Tensor, "b k d"]) -> Float[Tensor, "b d k"]:
        return x.transpose(1, 2)
