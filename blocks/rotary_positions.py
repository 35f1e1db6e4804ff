"""Rotary position encoding of a sequence, outside of an attention block."""

from math import ceil, floor, log, pi

import torch
from jaxtyping import Float
from torch import Tensor

from archlang.backend.decode.block_cache import BlockCache
from archlang.backend.runtime.padded_division import Mask
from archlang.blocks.positions import counted
from archlang.blocks.weightless import Weightless


class Rotation(Weightless):
    """Rotates pairs of features by an angle that grows with the position p_i.

        y_c       = w (x_c cos(a) - x_{c + r/2} sin(a))
        y_{c+r/2} = w (x_{c + r/2} cos(a) + x_c sin(a)),    a = (start + p_i) f_c,    f_c = first base^(-2c/r)

    for the first r = `rotated` features of each head, or all if it is 0; the others stay. With `interleaved`, the pairs
    are the features 2c and 2c + 1. With `scaling`, for inputs `factor` times as long as the `trained` ones,

        linear      f_c / factor
        llama3      (1 - s) f_c / factor + s f_c,    s = (trained f_c / 2π - slow) / (fast - slow) within 0 and 1
        yarn        the same,    s = (c(slow) - c) / (c(slow) - c(fast)) within 0 and 1,    w = 0.1 ln(factor) + 1

    where c(t) is the pair that turns t times in `trained` positions; with `rounded`, c(slow) is rounded up and c(fast)
    down. w is 1 except for yarn.

    Su et al., "RoFormer", 2021; the pairs are those of GPT-NeoX. Chen et al., "Extending context window of large
    language models via positional interpolation", 2023; Dubey et al., "The Llama 3 herd of models", 2024, and its
    program; Peng et al., "YaRN", 2023, section 3.2, and its program."""

    heads: int
    rotated: int
    start: int
    first: float
    base: float
    interleaved: bool
    scaling: str
    factor: float
    trained: int
    slow: float
    fast: float
    rounded: bool
    d: int

    def _rotated(self, x: Float[Tensor, "b n d"], places: Float[Tensor, "*b n"]) -> Float[Tensor, "b n d"]:
        size = self.d // self.heads
        half = (self.rotated or size) // 2
        frequency = self._frequency(torch.arange(half, dtype=places.dtype, device=x.device))
        angle = (places[..., None] * frequency)[..., None, :]
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        if self.scaling == "yarn":
            gain = 0.1 * log(self.factor) + 1
            cos, sin = gain * cos, gain * sin
        heads = x.reshape(*x.shape[:2], self.heads, size)
        rest = heads[..., 2 * half :]
        if self.interleaved:
            left, right = heads[..., 0 : 2 * half : 2], heads[..., 1 : 2 * half : 2]
            turned = torch.stack((left * cos - right * sin, right * cos + left * sin), -1).flatten(-2)
            return torch.cat((turned, rest), -1).flatten(2)
        left, right = heads[..., :half], heads[..., half : 2 * half]
        return torch.cat((left * cos - right * sin, right * cos + left * sin, rest), -1).flatten(2)

    def _frequency(self, pair: Float[Tensor, " k"]) -> Float[Tensor, " k"]:
        """Returns the angle of each pair from one position to the next."""
        frequency = self.first * self.base ** (-pair / len(pair))
        if self.scaling == "none":
            return frequency
        if self.scaling == "linear":
            return frequency / self.factor
        if self.scaling == "llama3":
            kept = (self.trained * frequency / (2 * pi) - self.slow) / (self.fast - self.slow)
        else:
            last, first = self._pair_of(self.slow, len(pair)), self._pair_of(self.fast, len(pair))
            if self.rounded:
                last, first = ceil(last), floor(first)
            last, first = min(last, 2 * len(pair) - 1), max(first, 0)
            last += 0.001 if last == first else 0.0  # as in the program of transformers
            kept = (last - pair) / (last - first)
        kept = kept.clamp(0, 1)
        return (1 - kept) * frequency / self.factor + kept * frequency

    def _pair_of(self, turns: float, pairs: int) -> float:
        """Returns which of the pairs turns so many times in the positions of training."""
        return pairs * log(self.first * self.trained / (2 * pi * turns)) / log(self.base)


class RotaryPositions(Rotation):
    """Rotates by the position: p_i = i"""

    def forward(self, x: Float[Tensor, "b n d"], **_: Mask) -> Float[Tensor, "b n d"]:
        return self._rotated(x, counted(x.shape[1], x, self.start))

    def extend(self, cache: BlockCache, x: Float[Tensor, "b n d"], **_: Mask) -> Float[Tensor, "b n d"]:
        return self._rotated(x, counted(x.shape[1], x, self.start + cache.start))


class RotaryPositionsAt(Rotation):
    """Rotates by positions that are an input, which may be fractions."""

    placeless = True

    def forward(
        self, x: Float[Tensor, "b n d"], positions: Float[Tensor, "b n 1"], **_: Mask
    ) -> Float[Tensor, "b n d"]:
        dtype = torch.promote_types(positions.dtype, torch.float32)
        return self._rotated(x, self.start + positions[..., 0].to(dtype))
