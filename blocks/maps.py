"""Maps: values for each pair of a query, which is a row, and a key, which is a column."""

from collections.abc import Callable
from functools import partial
from math import sqrt

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.attention.flex_attention import BlockMask, create_block_mask

from archlang.backend.kernels.elementwise import NO_REUSE, Reuse, added, linear, scaled, tanh
from archlang.backend.kernels.masked_softmax import causal_softmax, masked_softmax
from archlang.backend.kernels.softmax_attention import scaled_dot_product_attention
from archlang.backend.runtime.block import Mask, MaskM, MaskN, Weightless, real_only
from archlang.backend.runtime.call_cache import cached_in_call
from archlang.backend.runtime.graph_loops import is_exporting
from archlang.backend.runtime.row_blocks import Pair
from archlang.backend.runtime.stacking import holds, is_large_on_cpu, is_plain
from archlang.blocks.activations import largest, reduced
from archlang.blocks.attention import (
    hides_far_keys,
    hides_keys,
    is_faster_plainly,
    join_heads,
    softmax_with_sinks,
    split_heads,
    visible,
)
from archlang.blocks.positions import alibi_slopes, filled

# For fewer places, to check whether they are integers takes as long as to interpolate.
_MANY_PLACES = 1 << 14
# The diagonals of so many rows are added at once: they fit into a processor's cache.
_ROWS_OF_SUM = 128


def heads_first(x: Float[Tensor, "b n m h"]) -> Float[Tensor, "b h n m"]:
    """Returns the map of each head. In memory, maps are laid out so, and the rows of a head are contiguous."""
    return x.permute(0, 3, 1, 2)


def heads_last(x: Float[Tensor, "b h n m"]) -> Float[Tensor, "b n m h"]:
    return x.permute(0, 2, 3, 1)


def allowed_keys(
    x: Float[Tensor, "b h n m"], causal: bool, mask_m: MaskM, first_row: int = 0, window: int = 0
) -> Bool[Tensor, "..."] | None:
    """Returns the entries whose column a row may read, as of `visible`; the first row is that of `first_row`."""
    return visible(x.shape[2], x.shape[3], causal, mask_m, x.device, first_row, window)


def lower(x: Float[Tensor, "b h n m"], diagonal: int, reuse: Reuse) -> Float[Tensor, "b h n m"]:
    """Returns x with 0 after a diagonal."""

    def compute(x: Tensor, out: Tensor | None) -> Tensor:
        return x.tril(diagonal) if out is None else out.tril_(diagonal)

    return linear(x, compute, compute, reuse=reuse)


def only(
    x: Float[Tensor, "b h n m"], causal: bool, mask_m: MaskM, first_row: int, reuse: Reuse = NO_REUSE
) -> Float[Tensor, "b h n m"]:
    """Returns x with 0 at all other entries than the allowed ones."""
    if hides_keys(causal, x.shape[3], first_row):
        x = lower(x, first_row, reuse)
    return x if mask_m is None else x.masked_fill(~mask_m[:, None, None], 0.0)


class Scores(Weightless):
    """y_ij^h = q_i^h · k_j^g / sqrt(d / heads), for the g-th of fewer heads of keys, which adjacent heads share

    With `scale`, that is the factor; with `softcap`, softcap tanh(y_ij / softcap)."""

    derivative_reads = "arguments"
    heads: int
    scale: float
    softcap: float
    d: int
    e: int

    @property
    def key_heads(self) -> int:
        return self.e * self.heads // self.d

    def forward(
        self, q: Float[Tensor, "b n d"], k: Float[Tensor, "b m e"], *, first_row: int = 0, **_: Mask
    ) -> Float[Tensor, "b n m h"]:
        query, key = split_heads(q, self.heads), split_heads(k, self.key_heads)
        query = query * self.scale if self.scale else query / sqrt(query.shape[-1])
        if query.shape[2] == 1 and key.stride(0) not in (0, key.shape[1] * key.stride(1)):
            # The product of matrices would copy all keys for a single row, unless samples lie together as in a cache,
            # or share them.
            products = (query * shared(key, self.heads)).sum(-1)[:, :, None]
        else:
            products = of_groups(query, key.transpose(-1, -2))
        if self.softcap:
            inner = scaled(products, 1 / self.softcap, reuse=(True, True))
            products = self.softcap * tanh(inner, reuse=(False, True))
        return heads_last(products)

    def at_pair(self, pair: Pair, *_: Tensor, **masks: Mask) -> Tensor:
        return self.softcap * torch.tanh(pair.product / self.softcap) if self.softcap else pair.product


def of_groups(x: Float[Tensor, "b h n c"], y: Float[Tensor, "b g c m"]) -> Float[Tensor, "b h n m"]:
    """Returns the products of the matrices of heads, adjacent ones of which share a second matrix."""
    (b, h, n, c), g = x.shape, y.shape[1]
    if h == g or is_exporting():  # with symbols as sizes, torch cannot tell whether it must copy
        return x @ shared(y, h)
    return (x.reshape(b, g, h // g * n, c) @ y).reshape(b, h, n, y.shape[3])


def shared(x: Float[Tensor, "b g m c"], heads: int) -> Float[Tensor, "b _h m c"]:
    """Returns keys or values of each of the heads, adjacent ones of which share them; of one head, they broadcast."""
    return x if x.shape[1] in (1, heads) else x.repeat_interleave(heads // x.shape[1], 1)


class OuterSum(Weightless):
    """y_ij = a_i + b_j"""

    derivative_reads = "nothing"

    def forward(
        self, a: Float[Tensor, "b n h"], b: Float[Tensor, "b m h"], *, first_row: int = 0, **_: Mask
    ) -> Float[Tensor, "b n m h"]:
        # Of each head, the numbers of the columns are contiguous, as the sums are.
        return heads_last(a.transpose(1, 2)[..., None] + b.transpose(1, 2).contiguous()[:, :, None])

    def at_pair(self, pair: Pair, a: Float[Tensor, "b n h"], b: Float[Tensor, "b m h"], **_: Mask) -> Tensor:
        y: Tensor = pair.of(a[:, :, None]) + pair.of(b[:, None])
        return y


class KeySoftmax(Weightless):
    """A softmax over keys"""

    causal: bool
    window = 0

    def is_near(self, query: Tensor, key: Tensor) -> Tensor:
        """Returns whether queries read keys, by their positions."""
        near = key <= query if self.causal else key >= 0
        return near & ((query - key).abs() < self.window) if self.window else near

    def at_pair(self, pair: Pair, x: Tensor, *, mask_m: MaskM = None, **_: Mask) -> Tensor:
        """Returns the score, -inf for a key that is not read."""
        read = self.is_near(pair.query, pair.key)
        return torch.where(read if mask_m is None else read & mask_m[pair.sample, pair.key], x, -torch.inf)

    def blocks(self, n: int, m: int, device: torch.device) -> BlockMask:
        """Returns which blocks of queries read which blocks of keys."""
        key = ("blocks", n, m, self.causal, self.window, device)
        return cached_in_call(
            key, lambda: create_block_mask(lambda _b, _h, q, k: self.is_near(q, k), None, None, n, m, device)
        )


class SoftmaxKeys(KeySoftmax):
    """y_ij = exp(x_ij) / Σ_l exp(x_il), over real columns, over l ≤ i if `causal`, and over |i - l| < `window`"""

    derivative_reads = "result"
    lower_if = "causal"
    causal: bool
    window: int

    def forward(
        self,
        x: Float[Tensor, "b n m h"],
        *,
        first_row: int = 0,
        reuse: Reuse = NO_REUSE,
        mask_m: MaskM = None,
        **_: Mask,
    ) -> Float[Tensor, "b n m h"]:
        x = heads_first(x)
        n, m = x.shape[2:]
        if (
            mask_m is None
            and hides_keys(self.causal, m, first_row)
            and not hides_far_keys(self.window, n, m, first_row)
        ):
            return heads_last(causal_softmax(x, first_row, reuse))
        allowed = allowed_keys(x, self.causal, mask_m, first_row, self.window)
        return heads_last(masked_softmax(x, allowed, reuse=reuse))


class SinkSoftmaxKeys(Weightless):
    """y_ij = exp(x_ij) / (exp(sink) + Σ_l exp(x_il)), over the columns of `SoftmaxKeys`"""

    derivative_reads = "result"
    lower_if = "causal"
    causal: bool
    window: int

    def forward(
        self,
        x: Float[Tensor, "b n m h"],
        sinks: Float[Tensor, "b h"],
        *,
        first_row: int = 0,
        mask_m: MaskM = None,
        **_: Mask,
    ) -> Float[Tensor, "b n m h"]:
        x = heads_first(x)
        return heads_last(softmax_with_sinks(x, sinks, allowed_keys(x, self.causal, mask_m, first_row, self.window)))


class MaskedSoftmaxKeys(KeySoftmax):
    """y_ij = g_ij exp(x_ij) / Σ_l g_il exp(x_il),    g_ij = 1 where keep_ij > 0, else 0"""

    derivative_reads = "result"
    lower_if = "causal"
    causal: bool

    def at_pair(self, pair: Pair, x: Tensor, keep: Tensor, *, mask_m: MaskM = None, **_: Mask) -> Tensor:  # type: ignore[override]  # another block
        return torch.where(keep > 0, super().at_pair(pair, x, mask_m=mask_m), -torch.inf)

    def forward(
        self,
        x: Float[Tensor, "b n m h"],
        keep: Float[Tensor, "b n m k"],
        *,
        first_row: int = 0,
        reuse: Reuse = NO_REUSE,
        mask_m: MaskM = None,
        **_: Mask,
    ) -> Float[Tensor, "b n m h"]:
        x, kept = heads_first(x), heads_first(keep) > 0
        allowed = allowed_keys(x, self.causal, mask_m, first_row)
        return heads_last(masked_softmax(x, kept if allowed is None else kept & allowed, reuse=reuse))


class SoftmaxQueries(Weightless):
    """y_ij = exp(x_ij) / Σ_l exp(x_lj), over real rows"""

    def forward(self, x: Float[Tensor, "b n m h"], *, mask_n: MaskN = None, **_: Mask) -> Float[Tensor, "b n m h"]:
        rows = masked_softmax(x.permute(0, 3, 2, 1), None if mask_n is None else mask_n[:, None, None])
        return rows.permute(0, 3, 2, 1)


class Weigh(Weightless):
    """y_i = concat_h(Σ_j a_ij^h v_j^g), over real positions, and over j ≤ i if `causal`; `times` adjacent heads share
    the values of one"""

    derivative_reads = "arguments"
    fuses = (Scores, SoftmaxKeys)
    flexes = (Scores, KeySoftmax)

    causal: bool
    times: int
    h: int

    def flexed(
        self,
        attend: Callable[..., Tensor],
        scores: Scores,
        softmax: KeySoftmax,
        q: Float[Tensor, "b n d"],
        k: Float[Tensor, "b m e"],
        v: Float[Tensor, "b m _f"],
        *,
        mask_m: MaskM = None,
        **_: Mask,
    ) -> Float[Tensor, "b n _y"] | None:
        """Returns what this block computes of a softmax of the scores that `attend` changes, which is torch's
        `flex_attention`; None if it reads fewer keys than the softmax."""
        if self.causal and not softmax.causal:
            return None
        query, key = split_heads(q, scores.heads), split_heads(k, scores.key_heads)
        value = shared(split_heads(real_only(v, mask_m), self.h // self.times), self.h).expand(-1, self.h, -1, -1)
        query, key = query.expand(-1, self.h, -1, -1), shared(key, self.h).expand(-1, self.h, -1, -1)
        mask = softmax.blocks(query.shape[2], key.shape[2], q.device)
        return join_heads(attend(query, key, value, block_mask=mask, scale=scores.scale or None))

    def is_fused(self, scores: Scores, softmax: SoftmaxKeys) -> bool:
        """Returns whether `fused` computes these blocks without a map."""
        return not scores.softcap and (softmax.causal or not self.causal)

    def fused(
        self,
        scores: Scores,
        softmax: SoftmaxKeys,
        q: Float[Tensor, "b n d"],
        k: Float[Tensor, "b m e"],
        v: Float[Tensor, "b m _f"],
        bias: Float[Tensor, "b n m _h"] | None,
        *,
        first_row: int,
        mask_m: MaskM = None,
        **_: Mask,
    ) -> Float[Tensor, "b n _y"]:
        """Returns what this block computes of the softmax of the scores, to which `bias` is added."""
        query, key = split_heads(q, scores.heads), split_heads(k, scores.key_heads)
        n, m = query.shape[2], key.shape[2]

        def plainly() -> Tensor:
            x = scores(q, k)
            x = x if bias is None else added(x, bias, reuse=(True, False))
            a = softmax(x, first_row=first_row, mask_m=mask_m, reuse=(True, True))
            return self.forward(a, v, first_row=first_row, is_lower=softmax.causal, mask_m=mask_m)

        # On a CPU, torch's only kernel with a derivative of the bias holds the map, and searches it for -inf. Without
        # derivatives, products and a softmax take less time than the kernel with a bias.
        is_plain_bias = bias is not None and not bias.is_cuda and (bias.requires_grad or not query.requires_grad)
        if is_faster_plainly(query, m) or is_plain_bias:
            return plainly()
        value = split_heads(real_only(v, mask_m), self.h // self.times)
        causal = hides_keys(softmax.causal, m, first_row)
        is_local = hides_far_keys(softmax.window, n, m, first_row)
        is_whole = bias is None and mask_m is None and not (causal and first_row) and not is_local
        # On a GPU, torch's only kernel that takes a mask has as many heads of keys as of queries.
        if not (is_whole and key.shape[1] == value.shape[1]):
            key, value = (shared(each, self.h).expand(-1, self.h, -1, -1) for each in (key, value))
        query, is_shared = query.expand(-1, self.h, -1, -1), key.shape[1] < self.h
        attend = partial(
            scaled_dot_product_attention, query, key, value, scale=scores.scale or None, enable_gqa=is_shared
        )
        if is_whole:
            return join_heads(attend(is_causal=causal))
        allowed = visible(n, m, causal, mask_m, q.device, first_row, softmax.window)
        addend = None if bias is None else heads_first(bias).to(query.dtype).expand(-1, self.h, -1, -1)
        if allowed is None:
            return join_heads(attend(addend))
        if torch.compiler.is_compiling() and not q.is_cuda:  # it could not check the result
            return plainly()
        # Some kernels return NaN for a query without keys: none is hidden from it, and its result is zero.
        keyless = ~allowed.any(-1, keepdim=True)
        read = allowed | keyless
        heads = attend(read if addend is None else addend.masked_fill(~read, -torch.inf))
        # The kernel adds the mask: what is not finite reaches queries from which it is hidden.
        if not heads.is_cuda and not holds(heads.detach().isfinite()):
            return plainly()
        return join_heads(heads.masked_fill(keyless, 0.0))

    def weights(
        self,
        a: Float[Tensor, "b n m h"],
        v: Float[Tensor, "b m d"],
        *,
        first_row: int = 0,
        is_lower: bool = False,
        mask_m: MaskM = None,
    ) -> Float[Tensor, "b h n m"]:
        """Returns a at the positions that are read; with `is_lower`, it is 0 after the diagonal."""
        return only(heads_first(a), self.causal and not is_lower, mask_m, first_row)

    def forward(
        self,
        a: Float[Tensor, "b n m h"],
        v: Float[Tensor, "b m d"],
        *,
        first_row: int = 0,
        is_lower: bool = False,
        mask_m: MaskM = None,
        **_: Mask,
    ) -> Float[Tensor, "b n _y"]:
        weights = self.weights(a, v, first_row=first_row, is_lower=is_lower, mask_m=mask_m)
        value = split_heads(real_only(v, mask_m), self.h // self.times)
        return join_heads(of_groups(weights.to(v.dtype), value))


class LowerTriangle(Weightless):
    """y_ij = x_ij if j ≤ i + diagonal, else 0"""

    derivative_reads = "nothing"
    diagonal: int

    def forward(
        self, x: Float[Tensor, "b n m h"], *, first_row: int = 0, reuse: Reuse = NO_REUSE, **_: Mask
    ) -> Float[Tensor, "b n m h"]:
        return heads_last(lower(heads_first(x), first_row + self.diagonal, reuse))

    def at_pair(self, pair: Pair, x: Tensor, **_: Mask) -> Tensor:
        return torch.where(pair.key <= pair.query + self.diagonal, x, 0.0)


class TransposeMap(Weightless):
    """y_ij = x_ji"""

    def forward(self, x: Float[Tensor, "b n m h"], **_: Mask) -> Float[Tensor, "b m n h"]:
        return x.transpose(1, 2)


class SumKeys(Weightless):
    """y_i = Σ_j x_ij, over real columns, and over j ≤ i if `causal`"""

    causal: bool

    def forward(
        self, x: Float[Tensor, "b n m h"], *, first_row: int = 0, mask_m: MaskM = None, **_: Mask
    ) -> Float[Tensor, "b n h"]:
        return only(heads_first(x), self.causal, mask_m, first_row).sum(-1).transpose(1, 2)


class MaxKeys(Weightless):
    """y_i = max_j x_ij, over real columns, and over j ≤ i if `causal`; 0 for a row without columns"""

    causal: bool
    reduce: Callable[[Tensor, int], Tensor] = staticmethod(torch.amax)

    def forward(
        self, x: Float[Tensor, "b n m h"], *, first_row: int = 0, mask_m: MaskM = None, **_: Mask
    ) -> Float[Tensor, "b n h"]:
        x = heads_first(x)
        allowed = allowed_keys(x, self.causal, mask_m, first_row)
        return reduced(x, allowed, -1, self.reduce, -torch.inf).transpose(1, 2)


class LogsumexpKeys(MaxKeys):
    """y_i = ln Σ_j exp(x_ij), over the columns of `MaxKeys`"""

    reduce = staticmethod(torch.logsumexp)


class CumulativeSumKeys(Weightless):
    """y_ij = Σ_{l ≤ j} x_il over real columns, or over l ≥ j if `backward`, without l = j if `exclusive`, with l ≤ i if
    `causal`"""

    derivative_reads = "nothing"
    backward: bool
    exclusive: bool
    causal: bool

    def forward(
        self,
        x: Float[Tensor, "b n m h"],
        *,
        first_row: int = 0,
        reuse: Reuse = NO_REUSE,
        mask_m: MaskM = None,
        **_: Mask,
    ) -> Float[Tensor, "b n m h"]:
        x = only(heads_first(x), self.causal, mask_m, first_row, reuse)
        sums = partial(sums_so_far, backward=self.backward, exclusive=self.exclusive)
        transposed = partial(sums_so_far, backward=not self.backward, exclusive=self.exclusive)
        return heads_last(linear(x, sums, transposed, reuse=(False, reuse[1])))


def sums_so_far(
    x: Float[Tensor, "b h n m"], out: Tensor | None, backward: bool, exclusive: bool
) -> Float[Tensor, "b h n m"]:
    """Returns the sums of the entries of each row up to each, or from it on, perhaps without it; those from the first
    on may be written to `out`."""
    if backward:
        x, out = x.flip(-1), None
    y = x.cumsum(-1) if out is None else torch.cumsum(x, -1, out=out)
    if exclusive and y.shape[-1]:
        # Shifted, not y - x, which is inexact where x is large.
        y = F.pad(y, (1, -1))
    return y.flip(-1) if backward else y


class ConvolveMap(nn.Module):
    """y_ij^h = Σ_{a, b < width} w_ab^h x_{i-a, j-b}^h,    x = 0 before the first position

    Golovneva et al., "Multi-token attention", 2025, section 3.1, with keys up to j only."""

    def __init__(self, *, width: int, h: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(h, width, width))
        with torch.no_grad():
            self.weight[:, 0, 0] = 1.0

    def forward(self, x: Float[Tensor, "b n m h"], **_: Mask) -> Float[Tensor, "b n m h"]:
        before = self.weight.shape[-1] - 1
        # One row and column more, because torch convolves no empty map.
        padded = F.pad(heads_first(x), (before, 1, before, 1))
        kernel = self.weight.flip(1, 2)[:, None].to(x.dtype)  # torch correlates
        return heads_last(F.conv2d(padded, kernel, groups=x.shape[3])[..., :-1, :-1])


class TopKKeys(Weightless):
    """y_ij = 1 if x_ij is among the k largest of its row, else 0; over real columns, and over j ≤ i if `causal`"""

    lower_if = "causal"
    k: int
    causal: bool

    def forward(
        self, x: Float[Tensor, "b n m h"], *, first_row: int = 0, mask_m: MaskM = None, **_: Mask
    ) -> Float[Tensor, "b n m h"]:
        x = heads_first(x.detach())
        return heads_last(largest(x, allowed_keys(x, self.causal, mask_m, first_row), self.k, 3).to(x.dtype))


class Distances(Weightless):
    """y_ij = i - j"""

    def forward(
        self, q: Float[Tensor, "b n d"], k: Float[Tensor, "b m e"], *, first_row: int = 0, **_: Mask
    ) -> Float[Tensor, "b n m 1"]:
        return backward_distances(q, k, first_row).to(q.dtype).expand(q.shape[0], -1, -1)[..., None]

    def at_pair(self, pair: Pair, *_: Tensor, **masks: Mask) -> Tensor:
        return (pair.query - pair.key).to(pair.product.dtype)


class AlibiBias(Weightless):
    """y_ij^h = -s_h |i - j|

    Press, Smith, Lewis, "Train short, test long", ICLR 2022, section 3; the slopes for any number of heads are those
    of its program."""

    heads: int

    def forward(
        self, q: Float[Tensor, "b n d"], k: Float[Tensor, "b m e"], *, first_row: int = 0, **_: Mask
    ) -> Float[Tensor, "b n m h"]:
        bias = -filled(alibi_slopes(self.heads), q, q.dtype)[:, None, None] * backward_distances(q, k, first_row).abs()
        return heads_last(bias.expand(q.shape[0], -1, -1, -1))

    def at_pair(self, pair: Pair, *_: Tensor, **masks: Mask) -> Tensor:
        power = 1 << (self.heads.bit_length() - 1)
        place = torch.where(pair.head < power, pair.head + 1.0, pair.head - power + 0.5)  # of `alibi_slopes`
        return -torch.exp2(-8.0 * place / power).to(pair.product.dtype) * (pair.query - pair.key).abs()


def constant_diagonals(line: Float[Tensor, "h _l"], out: Tensor | None, rows: int) -> Float[Tensor, "h n m"]:
    """Returns y_ij = line[n - 1 - i + j], for n + m + 1 numbers of a line."""
    width = line.shape[1] - 1
    # A row is the one before it, moved by a column: so are rows of n + m of a line of one more, repeated without a gap.
    lines = line.roll(1 - rows, 1)[:, None].expand(-1, rows, -1).flatten(1)
    return lines[:, : rows * width].view(len(line), rows, width)[..., : width - rows]


def sums_of_diagonals(y: Float[Tensor, "h n m"], out: Tensor | None = None) -> Float[Tensor, "h _l"]:
    """Returns the transpose of `constant_diagonals`."""
    h, n, m = y.shape
    sums = y.new_zeros(h, n + m + 1, dtype=torch.promote_types(y.dtype, torch.float32))
    for first in range(0, n, _ROWS_OF_SUM):
        part = y[:, first : first + _ROWS_OF_SUM]
        r = part.shape[1]
        length = r + m - 1
        # Rows of one number less, read as lines: a diagonal becomes a column.
        lines = y.new_zeros(h, r, length)
        lines.as_strided(part.shape, (r * length, max(0, length - 1), 1), r - 1).copy_(part)
        sums[:, n - first - r : n - first + m - 1] += lines.sum(1, dtype=sums.dtype)
    return sums.to(y.dtype)


class RelativeBias(nn.Module):
    """y_ij^h = b_h[min(max(i - j, -span), span)]

    Shaw, Uszkoreit, Vaswani, "Self-attention with relative position representations", 2018, for scalars, as in T5."""

    def __init__(self, *, heads: int, span: int, d: int, e: int) -> None:
        super().__init__()
        self.span = span
        self.bias = nn.Parameter(torch.zeros(2 * span + 1, heads))

    def forward(
        self, q: Float[Tensor, "b n d"], k: Float[Tensor, "b m e"], *, first_row: int = 0, **_: Mask
    ) -> Float[Tensor, "b n m h"]:
        n, m = q.shape[1], k.shape[1]
        if is_exporting():  # ONNX has no views whose sizes are sums of lengths
            places = backward_distances(q, k, first_row).clamp(-self.span, self.span) + self.span
            return self.bias.to(q.dtype)[places].expand(q.shape[0], -1, -1, -1)
        distances = first_row + n - 1 - torch.arange(n + m + 1, device=q.device)
        line = self.bias.to(q.dtype).index_select(0, distances.clamp(-self.span, self.span) + self.span).T
        rows = linear(line, partial(constant_diagonals, rows=n), sums_of_diagonals)
        return heads_last(rows.expand(q.shape[0], -1, -1, -1))

    def at_pair(self, pair: Pair, *_: Tensor, **masks: Mask) -> Tensor:
        distance = (pair.query - pair.key).clamp(-self.span, self.span)
        bias: Tensor = self.bias[distance + self.span, pair.head]
        return bias


class Interpolate(Weightless):
    """y_ij = (1 - w) t_i[⌊p⌋] + w t_i[⌈p⌉],    p = min(max(p_ij, 0), k - 1),    w = p - ⌊p⌋; 0 if k = 0

    Golovneva, Wang, Weston, Sukhbaatar, "Contextual position encoding", 2024, section 4."""

    derivative_reads = "arguments"

    def forward(
        self,
        t: Float[Tensor, "b n k h"],
        p: Float[Tensor, "b n m h"],
        *,
        first_row: int = 0,
        mask_k: Bool[Tensor, "b k"] | None = None,
        **_: Mask,
    ) -> Float[Tensor, "b n m h"]:
        t, p = heads_first(t), heads_first(p)
        if is_plain() and not p.stride(1):  # one map of places that heads share
            p = p[:, :1]
        far = 0
        if mask_k is None:
            last = max(0, t.shape[3] - 1)
            if type(p) is Tensor and is_large_on_cpu(p, p.numel(), _MANY_PLACES):
                # The first columns, if all rows are at their last place there, as are contextual positions of far keys.
                far = int((p.detach().amin((0, 1, 2)) >= last).int().cumprod(0).sum())
            place = p[..., far:].clamp(0, last)
        else:
            t = t.masked_fill(~mask_k[:, None, None], 0.0)
            place = p.clamp(min=0.0).minimum((mask_k.sum(1) - 1).clamp(min=0)[:, None, None, None].to(p.dtype))
        if not t.shape[3]:
            return heads_last((p * 0.0).expand(-1, t.shape[1], -1, -1).clone())
        known = place.detach().nan_to_num()  # the result is NaN at a place that is NaN
        index = known.long()
        part = place - index
        values = t.gather(3, index.expand(-1, t.shape[1], -1, -1))
        is_large = is_large_on_cpu(place, place.numel(), _MANY_PLACES) and not place.requires_grad
        if not (is_large and holds(part == 0)):
            after = t.gather(3, known.ceil().long().expand(-1, t.shape[1], -1, -1))
            values = torch.lerp(values, after, part.to(values.dtype))
        return heads_last(torch.cat((t[..., -1:].expand(-1, -1, -1, far), values), -1) if far else values)


def backward_distances(q: Float[Tensor, "b n d"], k: Float[Tensor, "b m e"], first_row: int) -> Tensor:
    """Returns i - j for each query i, of which the first is `first_row`, and key j, as integers [n m]."""
    return torch.arange(first_row, first_row + q.shape[1], device=q.device)[:, None] - torch.arange(
        k.shape[1], device=q.device
    )
