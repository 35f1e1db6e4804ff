"""Maps: values for each pair of a query, which is a row, and a key, which is a column."""

from math import sqrt

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from archlang.blocks.attention import join_heads, split_heads


def allowed_keys(
    x: Float[Tensor, "b n m h"], causal: bool, mask_m: Bool[Tensor, "b m"] | None
) -> Bool[Tensor, "..."] | None:
    """Returns the entries whose column is real and, if `causal`, not after their row; None if all are."""
    allowed = None if mask_m is None else mask_m[:, None, :, None]
    if not causal:
        return allowed
    n, m = x.shape[1:3]
    earlier = torch.ones(n, m, dtype=torch.bool, device=x.device).tril()[..., None]
    return earlier if allowed is None else earlier & allowed


def only(x: Float[Tensor, "b n m h"], allowed: Bool[Tensor, "..."] | None) -> Float[Tensor, "b n m h"]:
    """Returns x with 0 at all other entries than the allowed ones."""
    return x if allowed is None else x.masked_fill(~allowed, 0.0)


def softmax_over(x: Float[Tensor, "b n m h"], allowed: Bool[Tensor, "..."] | None, axis: int) -> Tensor:
    """Returns the softmax over the allowed entries; the others, and lines without allowed entries, are 0."""
    if allowed is None:
        return x.softmax(axis)
    # The least number, not -inf: a line without allowed entries would have NaN.
    return x.masked_fill(~allowed, torch.finfo(x.dtype).min).softmax(axis).masked_fill(~allowed, 0.0)


def slopes(heads: int) -> list[float]:
    """Returns the slope of ALiBi for each head."""
    power = 1 << (heads.bit_length() - 1)
    first = [2 ** (-8 * (head + 1) / power) for head in range(power)]
    between = [2 ** (-8 * (head + 1) / (2 * power)) for head in range(0, 2 * power, 2)]
    return first + between[: heads - power]


class Scores(nn.Module):
    """y_ij^h = q_i^h · k_j^h / sqrt(d / heads)"""

    def __init__(self, *, heads: int, d: int) -> None:
        super().__init__()
        self.heads = heads

    def forward(
        self,
        q: Float[Tensor, "b n d"],
        k: Float[Tensor, "b m d"],
        *,
        mask_n: Bool[Tensor, "b n"] | None = None,
        mask_m: Bool[Tensor, "b m"] | None = None,
    ) -> Float[Tensor, "b n m h"]:
        query, key = split_heads(q, self.heads), split_heads(k, self.heads)
        products = query / sqrt(query.shape[-1]) @ key.transpose(-1, -2)
        return products.permute(0, 2, 3, 1)


class OuterSum(nn.Module):
    """y_ij = a_i + b_j"""

    def __init__(self, *, h: int) -> None:
        super().__init__()

    def forward(
        self,
        a: Float[Tensor, "b n h"],
        b: Float[Tensor, "b m h"],
        *,
        mask_n: Bool[Tensor, "b n"] | None = None,
        mask_m: Bool[Tensor, "b m"] | None = None,
    ) -> Float[Tensor, "b n m h"]:
        return a[:, :, None] + b[:, None]


class SoftmaxKeys(nn.Module):
    """y_ij = exp(x_ij) / Σ_l exp(x_il), over real columns, and over l ≤ i if `causal`"""

    def __init__(self, *, causal: bool, h: int) -> None:
        super().__init__()
        self.causal = causal

    def forward(
        self,
        x: Float[Tensor, "b n m h"],
        *,
        mask_n: Bool[Tensor, "b n"] | None = None,
        mask_m: Bool[Tensor, "b m"] | None = None,
    ) -> Float[Tensor, "b n m h"]:
        return softmax_over(x, allowed_keys(x, self.causal, mask_m), 2)


class MaskedSoftmaxKeys(nn.Module):
    """y_ij = g_ij exp(x_ij) / Σ_l g_il exp(x_il),    g_ij = 1 where keep_ij > 0, else 0"""

    def __init__(self, *, causal: bool, h: int, k: int) -> None:
        super().__init__()
        self.causal = causal

    def forward(
        self,
        x: Float[Tensor, "b n m h"],
        keep: Float[Tensor, "b n m k"],
        *,
        mask_n: Bool[Tensor, "b n"] | None = None,
        mask_m: Bool[Tensor, "b m"] | None = None,
    ) -> Float[Tensor, "b n m h"]:
        allowed = allowed_keys(x, self.causal, mask_m)
        return softmax_over(x, keep > 0 if allowed is None else (keep > 0) & allowed, 2)


class SoftmaxQueries(nn.Module):
    """y_ij = exp(x_ij) / Σ_l exp(x_lj), over real rows"""

    def __init__(self, *, h: int) -> None:
        super().__init__()

    def forward(
        self,
        x: Float[Tensor, "b n m h"],
        *,
        mask_n: Bool[Tensor, "b n"] | None = None,
        mask_m: Bool[Tensor, "b m"] | None = None,
    ) -> Float[Tensor, "b n m h"]:
        return softmax_over(x, None if mask_n is None else mask_n[:, :, None, None], 1)


class Weigh(nn.Module):
    """y_i = concat_h(Σ_j a_ij^h v_j^h), over real positions, and over j ≤ i if `causal`"""

    def __init__(self, *, causal: bool, h: int, d: int) -> None:
        super().__init__()
        self.causal = causal

    def forward(
        self,
        a: Float[Tensor, "b n m h"],
        v: Float[Tensor, "b m d"],
        *,
        mask_n: Bool[Tensor, "b n"] | None = None,
        mask_m: Bool[Tensor, "b m"] | None = None,
    ) -> Float[Tensor, "b n d"]:
        weights = only(a, allowed_keys(a, self.causal, mask_m)).permute(0, 3, 1, 2)
        return join_heads(weights.to(v.dtype) @ split_heads(v, a.shape[3]))


class LowerTriangle(nn.Module):
    """y_ij = x_ij if j ≤ i + diagonal, else 0"""

    def __init__(self, *, diagonal: int, h: int) -> None:
        super().__init__()
        self.diagonal = diagonal

    def forward(
        self,
        x: Float[Tensor, "b n m h"],
        *,
        mask_n: Bool[Tensor, "b n"] | None = None,
        mask_m: Bool[Tensor, "b m"] | None = None,
    ) -> Float[Tensor, "b n m h"]:
        n, m = x.shape[1:3]
        return only(x, torch.ones(n, m, dtype=torch.bool, device=x.device).tril(self.diagonal)[..., None])


class TransposeMap(nn.Module):
    """y_ij = x_ji"""

    def __init__(self, *, h: int) -> None:
        super().__init__()

    def forward(
        self,
        x: Float[Tensor, "b n m h"],
        *,
        mask_n: Bool[Tensor, "b n"] | None = None,
        mask_m: Bool[Tensor, "b m"] | None = None,
    ) -> Float[Tensor, "b m n h"]:
        return x.transpose(1, 2)


class SumKeys(nn.Module):
    """y_i = Σ_j x_ij, over real columns, and over j ≤ i if `causal`"""

    def __init__(self, *, causal: bool, h: int) -> None:
        super().__init__()
        self.causal = causal

    def forward(
        self,
        x: Float[Tensor, "b n m h"],
        *,
        mask_n: Bool[Tensor, "b n"] | None = None,
        mask_m: Bool[Tensor, "b m"] | None = None,
    ) -> Float[Tensor, "b n h"]:
        return only(x, allowed_keys(x, self.causal, mask_m)).sum(2)


class CumulativeSumKeys(nn.Module):
    """y_ij = Σ_{l ≤ j} x_il, or over l ≥ j if `backward`, without l = j if `exclusive`; over real columns"""

    def __init__(self, *, backward: bool, exclusive: bool, h: int) -> None:
        super().__init__()
        self.backward = backward
        self.exclusive = exclusive

    def forward(
        self,
        x: Float[Tensor, "b n m h"],
        *,
        mask_n: Bool[Tensor, "b n"] | None = None,
        mask_m: Bool[Tensor, "b m"] | None = None,
    ) -> Float[Tensor, "b n m h"]:
        x = only(x, allowed_keys(x, False, mask_m))
        if self.exclusive:
            # Shifted, not y - x, which is inexact where x is large.
            x = F.pad(x, (0, 0, 0, 1))[:, :, 1:] if self.backward else F.pad(x, (0, 0, 1, 0))[:, :, :-1]
        return x.flip(2).cumsum(2).flip(2) if self.backward else x.cumsum(2)


class ConvolveMap(nn.Module):
    """y_ij^h = Σ_{a, b < width} w_ab^h x_{i-a, j-b}^h,    x = 0 before the first position

    Golovneva et al., "Multi-token attention", 2025, section 3.1, with keys up to j only."""

    def __init__(self, *, width: int, h: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(h, width, width))
        with torch.no_grad():
            self.weight[:, 0, 0] = 1.0

    def forward(
        self,
        x: Float[Tensor, "b n m h"],
        *,
        mask_n: Bool[Tensor, "b n"] | None = None,
        mask_m: Bool[Tensor, "b m"] | None = None,
    ) -> Float[Tensor, "b n m h"]:
        before = self.weight.shape[-1] - 1
        # One row and column more, because torch convolves no empty map.
        padded = F.pad(x.permute(0, 3, 1, 2), (before, 1, before, 1))
        kernel = self.weight.flip(1, 2)[:, None].to(x.dtype)  # torch correlates
        return F.conv2d(padded, kernel, groups=x.shape[3])[..., :-1, :-1].permute(0, 2, 3, 1)


class TopKKeys(nn.Module):
    """y_ij = 1 if x_ij is among the k largest of its row, else 0; over real columns, and over j ≤ i if `causal`

    Of equal entries, the first are chosen. They are counted, because ONNX has no stable sort."""

    def __init__(self, *, k: int, causal: bool, h: int) -> None:
        super().__init__()
        self.k = k
        self.causal = causal

    def forward(
        self,
        x: Float[Tensor, "b n m h"],
        *,
        mask_n: Bool[Tensor, "b n"] | None = None,
        mask_m: Bool[Tensor, "b m"] | None = None,
    ) -> Float[Tensor, "b n m h"]:
        values, allowed = x.detach(), allowed_keys(x, self.causal, mask_m)
        if allowed is None:
            allowed = torch.ones_like(values, dtype=torch.bool)
        values = values.masked_fill(~allowed, -torch.inf)
        # With k columns of padding, every row has a k-th largest entry.
        smallest_chosen = F.pad(values, (0, 0, 0, self.k), value=-torch.inf).sort(2, descending=True).values
        smallest_chosen = smallest_chosen[:, :, self.k - 1 : self.k]
        larger, equal = values > smallest_chosen, (values == smallest_chosen) & allowed
        remaining = self.k - larger.long().sum(2, keepdim=True)
        return (larger | (equal & (equal.long().cumsum(2) <= remaining))).to(x.dtype)


class Distances(nn.Module):
    """y_ij = i - j"""

    def __init__(self, *, d: int, e: int) -> None:
        super().__init__()

    def forward(
        self,
        q: Float[Tensor, "b n d"],
        k: Float[Tensor, "b m e"],
        *,
        mask_n: Bool[Tensor, "b n"] | None = None,
        mask_m: Bool[Tensor, "b m"] | None = None,
    ) -> Float[Tensor, "b n m 1"]:
        return backward_distances(q, k).to(q.dtype).expand(len(q), -1, -1)[..., None]


class AlibiBias(nn.Module):
    """y_ij^h = -s_h |i - j|

    Press, Smith, Lewis, "Train short, test long", ICLR 2022, section 3; the slopes for any number of heads are those
    of its program."""

    def __init__(self, *, heads: int, d: int, e: int) -> None:
        super().__init__()
        self.slopes = slopes(heads)

    def forward(
        self,
        q: Float[Tensor, "b n d"],
        k: Float[Tensor, "b m e"],
        *,
        mask_n: Bool[Tensor, "b n"] | None = None,
        mask_m: Bool[Tensor, "b m"] | None = None,
    ) -> Float[Tensor, "b n m h"]:
        distance = backward_distances(q, k).abs()[..., None]
        bias = -torch.tensor(self.slopes, dtype=q.dtype, device=q.device) * distance
        return bias.expand(len(q), -1, -1, -1)


class RelativeBias(nn.Module):
    """y_ij^h = b_h[min(max(i - j, -span), span)]

    Shaw, Uszkoreit, Vaswani, "Self-attention with relative position representations", 2018, for scalars, as in T5."""

    def __init__(self, *, heads: int, span: int, d: int, e: int) -> None:
        super().__init__()
        self.span = span
        self.bias = nn.Parameter(torch.zeros(2 * span + 1, heads))

    def forward(
        self,
        q: Float[Tensor, "b n d"],
        k: Float[Tensor, "b m e"],
        *,
        mask_n: Bool[Tensor, "b n"] | None = None,
        mask_m: Bool[Tensor, "b m"] | None = None,
    ) -> Float[Tensor, "b n m h"]:
        places = backward_distances(q, k).clamp(-self.span, self.span) + self.span
        return self.bias.to(q.dtype)[places].expand(len(q), -1, -1, -1)


class Interpolate(nn.Module):
    """y_ij^h = (1 - w) t_i^h[⌊p⌋] + w t_i^h[⌈p⌉],    p = min(max(p_ij^h, 0), k - 1),    w = p - ⌊p⌋"""

    def __init__(self, *, e: int, h: int) -> None:
        super().__init__()
        self.entries = e // h

    def forward(
        self,
        t: Float[Tensor, "b n e"],
        p: Float[Tensor, "b n m h"],
        *,
        mask_n: Bool[Tensor, "b n"] | None = None,
        mask_m: Bool[Tensor, "b m"] | None = None,
    ) -> Float[Tensor, "b n m h"]:
        place = p.clamp(0, self.entries - 1).transpose(2, 3)
        table = t.unflatten(2, (p.shape[3], self.entries))
        below, above = place.detach().floor(), place.detach().ceil()
        part = place - below
        lower, upper = table.gather(3, below.long()), table.gather(3, above.long())
        return ((1 - part) * lower + part * upper).transpose(2, 3)


def backward_distances(q: Float[Tensor, "b n d"], k: Float[Tensor, "b m e"]) -> Tensor:
    """Returns i - j for each query i and key j, as integers [n m]."""
    return torch.arange(q.shape[1], device=q.device)[:, None] - torch.arange(k.shape[1], device=q.device)
