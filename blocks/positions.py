"""Position encodings."""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from archlang.backend.decode.block_cache import BlockCache
from archlang.backend.kernels.dropout import dropout
from archlang.backend.runtime.block import Mask, MaskN


def sinusoid(positions: Float[Tensor, " n"], d: int, base: float = 10000.0) -> Float[Tensor, "n d"]:
    """p[2c] = sin(i w_c) and p[2c+1] = cos(i w_c) with w_c = base^(-2c/d), for each position i, which may be
    negative."""
    frequency = base ** (-torch.arange(0, d, 2, dtype=positions.dtype, device=positions.device) / d)
    angle = positions[:, None] * frequency
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(-2)[:, :d]


def counted(n: int, like: Tensor, start: int = 0) -> Float[Tensor, " n"]:
    """Returns the positions start, start + 1, … on the device of `like`, at least in float32, as angles need."""
    dtype = torch.promote_types(like.dtype, torch.float32)
    return torch.arange(start, start + n, dtype=dtype, device=like.device)


def alibi_slopes(heads: int) -> list[float]:
    """Returns the slope of ALiBi for each head."""
    power = 1 << (heads.bit_length() - 1)
    first = [2 ** (-8 * (head + 1) / power) for head in range(power)]
    between = [2 ** (-8 * (head + 1) / (2 * power)) for head in range(0, 2 * power, 2)]
    return first + between[: heads - power]


class AbsolutePositions(nn.Module):
    """Adds a sinusoid of its position to each column.

        y_i = drop(x_i + s p_i),    p_i[2c] = sin(i w_c),    p_i[2c+1] = cos(i w_c),    w_c = 10000^(-2c/d)

    s is 1/sqrt(d) with position downscaling, else 1.

    Vaswani et al., "Attention is all you need", 2017, section 3.5; Devil, section 3.1."""

    def __init__(self, *, scaling: str, dropout: float, d: int, base: float = 10000.0) -> None:
        super().__init__()
        self.scale = d**-0.5 if scaling == "position_downscaling" else 1.0
        self.dropout = dropout
        self.base = base

    def forward(self, x: Float[Tensor, "b n d"], **_: Mask) -> Float[Tensor, "b n d"]:
        return self._placed(x, 0)

    def extend(self, cache: BlockCache, x: Float[Tensor, "b n d"], **_: Mask) -> Float[Tensor, "b n d"]:
        return self._placed(x, cache.start)

    def _placed(self, x: Float[Tensor, "b n d"], start: int) -> Float[Tensor, "b n d"]:
        places = sinusoid(counted(x.shape[1], x, start), x.shape[2], self.base).to(x.dtype)
        return dropout(x + self.scale * places, self.dropout, self.training)


class LearnedPositions(nn.Module):
    """Adds a learned vector of its position to each column, nothing after as many positions as there are vectors.

    Radford et al., "Language models are unsupervised multitask learners", 2019."""

    def __init__(self, *, most: int, init: str, d: int) -> None:
        super().__init__()
        self.weight = nn.Parameter((0.02 if init == "small" else 1.0) * torch.randn(most, d))

    def forward(self, x: Float[Tensor, "b n d"], **_: Mask) -> Float[Tensor, "b n d"]:
        return self._placed(x, 0)

    def extend(self, cache: BlockCache, x: Float[Tensor, "b n d"], **_: Mask) -> Float[Tensor, "b n d"]:
        return self._placed(x, cache.start)

    def _placed(self, x: Float[Tensor, "b n d"], start: int) -> Float[Tensor, "b n d"]:
        vectors = self.weight[start : start + x.shape[1]]
        return x + F.pad(vectors, (0, 0, 0, x.shape[1] - len(vectors)))


class StartEnd(nn.Module):
    """Inserts a learned START before the first position and a learned END after the last real position.

        y = [START; x_1; …; x_n; END]

    "Investigating Recurrent Transformers with Dynamic Halt", section 6. Both are drawn from N(0, 1), as in its program.
    Padding stays at the end."""

    def __init__(self, *, d: int) -> None:
        super().__init__()
        self.start = nn.Parameter(torch.randn(d))
        self.end = nn.Parameter(torch.randn(d))

    def forward(
        self, x: Float[Tensor, "b n d"], *, mask_n: MaskN = None
    ) -> tuple[Float[Tensor, "b n+2 d"], Bool[Tensor, "b n+2"] | None]:
        b, n, d = x.shape
        start = self.start.to(x.dtype).expand(b, 1, d)
        end = self.end.to(x.dtype).expand(b, 1, d)
        if mask_n is None:
            return torch.cat((start, x, end), dim=1), None
        place = torch.arange(n + 2, device=x.device)
        length = mask_n.sum(1, keepdim=True)
        y = torch.cat((start, x, end), dim=1)
        y = torch.where((place == length + 1)[..., None], end, y)
        return y, place < length + 2
