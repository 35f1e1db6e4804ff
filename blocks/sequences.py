"""Positions of sequences: reductions that ignore padding, selections, moves, and chunks."""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from archlang.backend.decode.block_cache import BlockCache
from archlang.backend.runtime.block import Mask, MaskM, MaskN, Weightless, real_only
from archlang.backend.runtime.graph_loops import is_exporting
from archlang.backend.runtime.scans import StackedChunks
from archlang.blocks.activations import reduced
from archlang.blocks.positions import counted


class First(Weightless):
    """y = x_0; zeros for a sample without positions"""

    def forward(self, x: Float[Tensor, "b n d"], *, mask_n: MaskN = None) -> Float[Tensor, "b d"]:
        if x.shape[1] == 0:
            return x.new_zeros(x.shape[0], x.shape[2])
        return x[:, 0] if mask_n is None else x[:, 0].masked_fill(~mask_n[:, :1], 0.0)


class Last(Weightless):
    """y = x_i, i the last real position; zeros for a sample without positions"""

    def forward(self, x: Float[Tensor, "b n d"], *, mask_n: MaskN = None) -> Float[Tensor, "b d"]:
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

    def forward(self, x: Float[Tensor, "b n d"], *, mask_n: MaskN = None) -> Float[Tensor, "b d"]:
        return real_only(x, mask_n).sum(1)


class Mean(Weightless):
    """y = Σ_i x_i / n over the n real positions; zeros for a sample without positions"""

    def forward(self, x: Float[Tensor, "b n d"], *, mask_n: MaskN = None) -> Float[Tensor, "b d"]:
        count = max(1, x.shape[1]) if mask_n is None else mask_n.sum(1, keepdim=True).clamp(min=1)
        return real_only(x, mask_n).sum(1) / count


class Max(Weightless):
    """y = max_i x_i over the real positions; zeros for a sample without positions"""

    def forward(self, x: Float[Tensor, "b n d"], *, mask_n: MaskN = None) -> Float[Tensor, "b d"]:
        return reduced(x, None if mask_n is None else mask_n[..., None], 1, torch.amax, -torch.inf)


class Min(Weightless):
    """y = min_i x_i over the real positions; zeros for a sample without positions"""

    def forward(self, x: Float[Tensor, "b n d"], *, mask_n: MaskN = None) -> Float[Tensor, "b d"]:
        return reduced(x, None if mask_n is None else mask_n[..., None], 1, torch.amin, torch.inf)


class Logsumexp(Weightless):
    """y = ln Σ_i exp(x_i) over the real positions; zeros for a sample without positions"""

    def forward(self, x: Float[Tensor, "b n d"], *, mask_n: MaskN = None) -> Float[Tensor, "b d"]:
        return reduced(x, None if mask_n is None else mask_n[..., None], 1, torch.logsumexp, -torch.inf)


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
        return cache.with_last(self.by, x)[:, : x.shape[1]]


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


class Groups(Weightless):
    """A block of groups of k adjacent positions."""

    k: int

    def whole(
        self, x: Float[Tensor, "b n d"], mask_n: MaskN, first: int = 0
    ) -> tuple[Float[Tensor, "b _m _w"], Bool[Tensor, "b _m"] | None]:
        """Returns the features of each whole group, from its position `first` on, and the mask of the groups."""
        b, n, d = x.shape
        if not is_exporting() or _is_always_whole(n, self.k):
            y = x[:, : n // self.k * self.k].reshape(b, n // self.k, self.k, d)[:, :, first:].flatten(2)
            return y, None if mask_n is None else mask_n[:, self.k - 1 :: self.k]
        # With two groups of padding: torch compiles a number of them below two as a constant.
        ends = self.k * torch.arange(1, n // self.k + 3, device=x.device)
        place = ends[:, None] + torch.arange(first - self.k, 0, device=x.device)
        count = n if mask_n is None else mask_n.sum(1, keepdim=True)
        return x[:, place.clamp(max=n - 1)].flatten(2), (ends <= count).expand(b, -1)


def _is_always_whole(n: int, k: int) -> bool:
    from torch.fx.experimental.symbolic_shapes import statically_known_true  # takes half a second

    return statically_known_true(n % k == 0)


class Patches(Groups):
    """y_j = [x_{kj}; …; x_{kj+k-1}], of whole groups

    Yu et al., "MEGABYTE: predicting million-byte sequences with multiscale transformers", 2023, section 2.2."""

    def forward(
        self, x: Float[Tensor, "b n d"], *, mask_n: MaskN = None
    ) -> tuple[Float[Tensor, "b _m _w"], Bool[Tensor, "b _m"] | None]:
        return self.whole(x, mask_n)


class Every(Groups):
    """y_j = x_{kj+k-1}, of whole groups"""

    def forward(
        self, x: Float[Tensor, "b n d"], *, mask_n: MaskN = None
    ) -> tuple[Float[Tensor, "b _m d"], Bool[Tensor, "b _m"] | None]:
        return self.whole(x, mask_n, self.k - 1)


class Interleave(Groups):
    """y_{ki+c} = the c-th of k groups of the features of x_i"""

    def forward(
        self, x: Float[Tensor, "b n d"], *, mask_n: MaskN = None
    ) -> tuple[Float[Tensor, "b _m _w"], Bool[Tensor, "b _m"] | None]:
        b, n, d = x.shape
        y = x.reshape(b, n * self.k, d // self.k)
        return y, None if mask_n is None else mask_n.repeat_interleave(self.k, 1)


class Hold(Groups):
    """y_i = x_{⌊(i + 1) / k⌋ - 1}, zeros where x has no such position"""

    def forward(
        self, x: Float[Tensor, "b n d"], like: Float[Tensor, "b m e"], *, mask_n: MaskN = None, **_: Mask
    ) -> Float[Tensor, "b m d"]:
        ended = torch.arange(1, like.shape[1] + 1, device=x.device) // self.k
        return states_at(real_only(x, mask_n), (ended - 1).expand(x.shape[0], -1))


class Convolve(nn.Conv1d):
    """y_i = b + Σ_a W_a x_{i + dilation (a - before)},    before = width - 1 if `causal`, else ⌊(width - 1) / 2⌋

    van den Oord et al., "WaveNet: a generative model for raw audio", 2016, section 2.1."""

    def __init__(
        self, *, out: int, width: int, dilation: int, stride: int, groups: int, causal: bool, bias: bool, d: int
    ) -> None:
        super().__init__(d, out, width, stride=stride, dilation=dilation, groups=groups, bias=bias)
        self.causal = causal
        self.reach = (width - 1) * dilation
        self.before = self.reach if causal else (width - 1) // 2 * dilation

    def forward(  # type: ignore[override]  # a block returns the mask of a length of its own
        self, x: Float[Tensor, "b n d"], *, mask_n: MaskN = None
    ) -> Float[Tensor, "b _m out"] | tuple[Float[Tensor, "b _m out"], Bool[Tensor, "b _m"] | None]:
        (stride,) = self.stride
        y = self._of_padded(real_only(x, mask_n), self.before, self.reach - self.before)
        first = stride - 1 if self.causal else 0
        return y if stride == 1 else (y, None if mask_n is None else mask_n[:, first::stride])

    def extend(self, cache: BlockCache, x: Float[Tensor, "b n d"], **_: Mask) -> Float[Tensor, "b n out"]:
        return self._of_padded(cache.with_last(self.reach, x), 0, 0)

    def _of_padded(self, x: Float[Tensor, "b n d"], before: int, after: int) -> Float[Tensor, "b _m out"]:
        (stride,) = self.stride
        # One result more, because torch convolves no empty sequence. The first end is that of a group.
        padded = F.pad(x, (0, 0, before - (stride - 1 if self.causal else 0), after + stride))
        return super().forward(padded.transpose(1, 2))[..., :-1].transpose(1, 2)


class Expand(Weightless):
    """y_0 = x"""

    def forward(self, x: Float[Tensor, "b d"]) -> Float[Tensor, "b 1 d"]:
        return x[:, None]


class Indices(Weightless):
    """y_i = i"""

    def forward(self, x: Float[Tensor, "b n d"], **_: Mask) -> Float[Tensor, "b n 1"]:
        return counted(x.shape[1], x).to(x.dtype)[:, None].expand(x.shape[0], -1, -1)


class Gather(Weightless):
    """y_i = x_{at_i}, at rounded to the nearest; zeros where the sample has no such position, and for at_i > i if
    `causal`"""

    causal: bool

    def forward(
        self, x: Float[Tensor, "b n d"], at: Float[Tensor, "b m 1"], *, mask_n: MaskN = None, **_: Mask
    ) -> Float[Tensor, "b m d"]:
        return self._states(x, at, 0, mask_n)

    def extend(
        self, cache: BlockCache, x: Float[Tensor, "b n d"], at: Float[Tensor, "b m 1"], *, mask_n: MaskN = None,
        **_: Mask,
    ) -> Float[Tensor, "b m d"]:  # fmt: skip
        return self._states(cache.append("x", x) if cache.grows[0] else x, at, cache.start, mask_n)

    def _states(self, x: Tensor, at: Tensor, start: int, mask_n: MaskN) -> Float[Tensor, "b m d"]:
        nearest = at.detach()[..., 0].round()
        inside = (nearest >= 0) & (nearest < x.shape[1])  # false for NaN
        if self.causal:
            inside &= nearest <= torch.arange(start, start + at.shape[1], device=x.device)
        return states_at(real_only(x, mask_n), nearest.masked_fill(~inside, -1.0).long())


class Transpose(Weightless):
    """y_ic = x_ci"""

    def forward(self, x: Float[Tensor, "b k d"]) -> Float[Tensor, "b d k"]:
        return x.transpose(1, 2)


class Cumulative(Weightless):
    """A reduction of the positions so far, which continues from its last result."""

    def forward(self, x: Float[Tensor, "b n d"], **_: Mask) -> Float[Tensor, "b n d"]:
        raise NotImplementedError

    def extend(self, cache: BlockCache, x: Float[Tensor, "b n d"], **_: Mask) -> Float[Tensor, "b n d"]:
        before = cache.tensors.get("last", x[:, :0])
        y = self.forward(torch.cat((before, x), 1))[:, before.shape[1] :]
        cache.tensors["last"] = y[:, -1:]
        return y


class CumulativeSum(Cumulative):
    """y_i = Σ_{j ≤ i} x_j"""

    def forward(self, x: Float[Tensor, "b n d"], **_: Mask) -> Float[Tensor, "b n d"]:
        return x.cumsum(1)


class CumulativeMax(Cumulative):
    """y_i = max_{j ≤ i} x_j"""

    def forward(self, x: Float[Tensor, "b n d"], **_: Mask) -> Float[Tensor, "b n d"]:
        return x.cummax(1).values


class CumulativeLogsumexp(Cumulative):
    """y_i = ln Σ_{j ≤ i} exp(x_j)"""

    def forward(self, x: Float[Tensor, "b n d"], **_: Mask) -> Float[Tensor, "b n d"]:
        return x.logcumsumexp(1)


class Chunks(Weightless):
    """Cuts sequences of padded length S into chunks of g positions, the last one shorter.

        fixed       g = size
        balanced    g = ceil(S / ceil(S / size))
        counted     g = ceil(S / count)

    "Investigating Recurrent Transformers with Dynamic Halt", Alg. 2; its torch.chunk is the balanced form. The fixed
    form is ours: it makes the result of a sample independent of the other samples of its batch."""

    size: int
    balanced: bool
    count: int

    def length(self, total: int) -> int:
        """Returns g for a padded length."""
        if self.count:
            return max(1, -(-total // self.count))
        if self.balanced and total:
            return -(-total // -(-total // self.size))
        return self.size

    def regime(self, total: int, x: Float[Tensor, "b n d"]) -> int:
        """Returns g, on which the cuts of a growing sequence depend."""
        return self.length(total)

    def forward(
        self, x: Float[Tensor, "b n d"], *, mask_n: MaskN = None
    ) -> list[tuple[Float[Tensor, "b _c d"], Bool[Tensor, "b _c"] | None]] | StackedChunks:
        length = self.length(x.shape[1])
        if is_exporting():
            return stacked_chunks(x, mask_n, length)
        parts = torch.split(x, length, dim=1)
        if mask_n is None and not x.shape[1]:  # a chunk that belongs to no sample
            mask_n = x.new_ones(x.shape[:2], dtype=torch.bool)
        if mask_n is None:
            return [(part, None) for part in parts]
        return list(zip(parts, torch.split(mask_n, length, dim=1), strict=True))


def stacked_chunks(x: Float[Tensor, "b n d"], mask_n: MaskN, length: int) -> StackedChunks:
    """Returns the chunks of a length, of which the last are padded: there are at least two, because torch compiles one
    as a constant."""
    n = x.shape[1]
    count = (n + length - 1) // length + 1
    # Gathered, because torch would branch on how much padding is needed.
    place = length * torch.arange(count, device=x.device)[:, None] + torch.arange(length, device=x.device)
    inside = place.clamp(max=n - 1)
    masks = (place < n)[:, None].expand(-1, x.shape[0], -1)
    if mask_n is not None:
        masks = masks & mask_n[:, inside].transpose(0, 1)
    return StackedChunks(x[:, inside].transpose(0, 1), masks, n)
