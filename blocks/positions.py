"""Position encodings."""

from collections.abc import Sequence
from functools import cached_property
from math import ceil, floor, log, pi

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Shaped
from torch import Tensor, nn

from archlang.backend.decode.block_cache import BlockCache
from archlang.backend.kernels.dropout import dropout
from archlang.backend.runtime.block import Mask, MaskN, Weightless
from archlang.backend.runtime.call_cache import cached_in_call
from archlang.backend.runtime.graph_loops import is_exporting


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


def filled(numbers: Sequence[float | bool], like: Tensor, dtype: torch.dtype) -> Shaped[Tensor, " k"]:
    """Returns numbers on the device of another tensor. They are filled in there: a CUDA graph holds no copy from the
    host."""
    return torch.stack([torch.full((), number, dtype=dtype, device=like.device) for number in numbers])


class _Placed(nn.Module):
    """A sequence whose positions are encoded by their indices."""

    def forward(self, x: Float[Tensor, "b n d"], **_: Mask) -> Float[Tensor, "b n d"]:
        return self._placed(x, 0)

    def extend(self, cache: BlockCache, x: Float[Tensor, "b n d"], **_: Mask) -> Float[Tensor, "b n d"]:
        return self._placed(x, cache.start)

    def _placed(self, x: Float[Tensor, "b n d"], start: int) -> Float[Tensor, "b n d"]:
        raise NotImplementedError


class AbsolutePositions(_Placed):
    """Adds a sinusoid of its position to each column.

        y_i = drop(x_i + s p_i),    p_i[2c] = sin(i w_c),    p_i[2c+1] = cos(i w_c),    w_c = 10000^(-2c/d)

    s is 1/sqrt(d) with position downscaling, else 1.

    Vaswani et al., "Attention is all you need", 2017, section 3.5; Devil, section 3.1."""

    def __init__(self, *, scaling: str, dropout: float, d: int, base: float = 10000.0) -> None:
        super().__init__()
        self.scale = d**-0.5 if scaling == "position_downscaling" else 1.0
        self.dropout = dropout
        self.base = base

    def _placed(self, x: Float[Tensor, "b n d"], start: int) -> Float[Tensor, "b n d"]:
        places = sinusoid(counted(x.shape[1], x, start), x.shape[2], self.base).to(x.dtype)
        return dropout(x + self.scale * places, self.dropout, self.training)


class LearnedPositions(_Placed):
    """Adds a learned vector of its position to each column, nothing after as many positions as there are vectors.

    Radford et al., "Language models are unsupervised multitask learners", 2019."""

    def __init__(self, *, most: int, init: str, d: int) -> None:
        super().__init__()
        self.weight = nn.Parameter((0.02 if init == "small" else 1.0) * torch.randn(most, d))

    def _placed(self, x: Float[Tensor, "b n d"], start: int) -> Float[Tensor, "b n d"]:
        n = x.shape[1]
        if is_exporting():  # whether there are fewer vectors than positions is then not known
            return x + F.pad(self.weight, (0, 0, 0, start + n))[start : start + n]
        vectors = self.weight[start : start + n]
        return x + F.pad(vectors, (0, 0, 0, n - len(vectors)))


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


# The settings of the angles of a rotation.
_TURNS = ("start", "first", "base", "scaling", "factor", "trained", "slow", "fast", "rounded")


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

    @property
    def _half(self) -> int:
        return (self.rotated or self.d // self.heads) // 2

    def _turns(self, places: Float[Tensor, "*b n"], dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Returns w cos(a) for both features of a pair at each place, and their -w sin(a) and w sin(a), [*b n 1 r]."""
        frequency = self._frequency(torch.arange(self._half, dtype=places.dtype, device=places.device))
        angle = (places[..., None] * frequency)[..., None, :]
        cos, sin = angle.cos().to(dtype), angle.sin().to(dtype)
        if self.scaling == "yarn":
            gain = 0.1 * log(self.factor) + 1
            cos, sin = gain * cos, gain * sin
        pairs = (cos, cos), (-sin, sin)
        first, second = (torch.stack(pair, -1 if self.interleaved else -2).flatten(-2) for pair in pairs)
        return first, second

    def _rotated(self, x: Float[Tensor, "b n d"], cos: Tensor, sin: Tensor) -> Float[Tensor, "b n d"]:
        heads = x.reshape(*x.shape[:2], self.heads, self.d // self.heads)
        turned, rest = torch.split(heads, [2 * self._half, heads.shape[3] - 2 * self._half], 3)
        if self.interleaved:
            swapped = turned.reshape(*turned.shape[:3], self._half, 2).flip(4).flatten(3)
        else:
            swapped = turned.roll(self._half, 3)
        y = turned * cos + swapped * sin
        return (torch.cat((y, rest), 3) if rest.shape[3] else y).flatten(2)

    def _frequency(self, pair: Float[Tensor, " k"]) -> Float[Tensor, " k"]:
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


class RotaryPositions(Rotation, _Placed):
    """Rotates by the position: p_i = i"""

    def _placed(self, x: Float[Tensor, "b n d"], start: int) -> Float[Tensor, "b n d"]:
        first = self.start + start
        return self._rotated(
            x,
            *cached_in_call(
                (*self._kind, first, x.shape[1], x.dtype, x.device),
                lambda: self._turns(counted(x.shape[1], x, first), x.dtype),
            ),
        )

    @cached_property
    def _kind(self) -> tuple[object, ...]:
        """Returns what the angles depend on; queries and keys of all layers turn alike, for any number of heads."""
        return ("turns", self._half, *(value for name, value in vars(self).items() if name in _TURNS))


class RotaryPositionsAt(Rotation):
    """Rotates by positions that are an input, which may be fractions."""

    placeless = True

    def forward(
        self, x: Float[Tensor, "b n d"], positions: Float[Tensor, "b n 1"], **_: Mask
    ) -> Float[Tensor, "b n d"]:
        dtype = torch.promote_types(positions.dtype, torch.float32)
        return self._rotated(x, *self._turns(self.start + positions[..., 0].to(dtype), x.dtype))
