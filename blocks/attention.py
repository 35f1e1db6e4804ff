"""Multi-head softmax attention."""

from functools import partial
from math import sqrt

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from archlang.backend.decode.block_cache import BlockCache
from archlang.backend.kernels.dropout import dropout, is_drawn_here
from archlang.backend.kernels.elementwise import tanh
from archlang.backend.kernels.masked_softmax import masked_softmax
from archlang.backend.kernels.softmax_attention import scaled_dot_product_attention
from archlang.backend.runtime.block import Mask, MaskM, MaskN, real_only
from archlang.backend.runtime.call_cache import cached_in_call
from archlang.backend.runtime.graph_loops import is_exporting
from archlang.backend.runtime.joined_linear import NO_PRODUCTS, Products, mapped
from archlang.backend.runtime.row_blocks import AxisSlice, RowRange
from archlang.backend.runtime.stacking import in_one_batch, is_large_on_cpu, is_plain
from archlang.blocks.positions import alibi_slopes, counted, filled, sinusoid

# The number of weights that are computed at a time. The allocator returns the memory of large tensors to the system; to
# get it again in each step takes as long as the products.
_MOST_WEIGHTS = 1 << 20
# With so many weights and fewer keys, torch's attention in 32 bits takes longer on a CPU than products and a softmax.
_LEAST_WEIGHTS = 1 << 13
_FEW_KEYS = 16
_FEW_KEYS_WITH_GRADIENTS = 32
# Windows are computed for so many queries at a time, at least.
_LEAST_QUERIES = 64
_NEAR_KEYS = AxisSlice(None, 2)
# Added to the mean square by which queries and keys are normalised, as in Qwen3 and Gemma 3.
_EPSILON = 1e-6


def split_heads(x: Float[Tensor, "b n hc"], heads: int) -> Float[Tensor, "b h n c"]:
    """Splits the channels into heads; the channels of a head are adjacent."""
    b, n, width = x.shape
    return x.reshape(b, n, heads, width // heads).transpose(1, 2)


def join_heads(x: Float[Tensor, "b h n c"]) -> Float[Tensor, "b n hc"]:
    """Concatenates the channels of all heads."""
    return x.transpose(1, 2).flatten(-2)


class KeyedAttention(nn.Module):
    """Attention with linear maps for keys and values, which are cached during decoding."""

    heads: int
    kv_heads: int = 0  # those of keys and values; 0 means `heads`
    key: nn.Linear
    value: nn.Linear

    def _heads_of(
        self, linear: nn.Linear, name: str, x: Float[Tensor, "b n d"], products: Products, mask: Tensor | None = None
    ) -> Float[Tensor, "b h n c"]:
        """Returns a linear map of x, or its product of this name, split into heads."""
        heads = self.heads if name == "query" else self.kv_heads or self.heads
        return split_heads(mapped(linear, name, x, products, mask), heads)

    def _keys_and_values(
        self, kv: Float[Tensor, "b m e"], mask_m: MaskM, products: Products, start: int
    ) -> tuple[Float[Tensor, "b h m c"], Float[Tensor, "b h m c"]]:
        key = self._heads_of(self.key, "key", kv, products, mask_m)
        return key, self._heads_of(self.value, "value", kv, products, mask_m)

    def _with_cached(
        self, cache: BlockCache, kv: Float[Tensor, "b k e"], mask_m: MaskM, products: Products
    ) -> tuple[Float[Tensor, "b h _m c"], Float[Tensor, "b h _m c"]]:
        if cache.grows[1] or not cache.start:
            new_mask = None if mask_m is None else mask_m[:, cache.start :]
            key, value = self._keys_and_values(kv, new_mask, products, cache.start)
            cache.append("key", key, 2)
            cache.append("value", value, 2)
        return cache.tensors["key"], cache.tensors["value"]


def initialise_fused(key: nn.Linear, value: nn.Linear) -> None:
    """Initialises two maps as one matrix, by Xavier."""
    width, e = key.weight.shape
    bound = sqrt(6 / (2 * width + e))
    nn.init.uniform_(key.weight, -bound, bound)
    nn.init.uniform_(value.weight, -bound, bound)


def visible(
    n: int, m: int, causal: bool, mask_m: MaskM, device: torch.device, start: int = 0, window: int = 0
) -> Bool[Tensor, "..."] | None:
    """Returns which of m keys each of n queries may attend to, or None if it is all keys: those at a distance below
    `window`, unless it is 0. The first query has the position `start`."""
    real = None if mask_m is None else mask_m[:, None, None, :]
    if not hides_keys(causal, m, start) and not hides_far_keys(window, n, m, start):
        return real

    def visible_keys() -> Tensor:
        near = near_keys(n, m, causal, device, start, window)
        return near if real is None else near & real

    return cached_in_call(("visible", n, m, causal, device, start, window), visible_keys, mask_m)


def near_keys(n: int, m: int, causal: bool, device: torch.device, start: int, window: int) -> Bool[Tensor, "n m"]:
    """Returns which keys are not after each query, if `causal`, and at a distance below `window`, unless it is 0."""
    near = torch.ones(n, m, dtype=torch.bool, device=device).tril(start if causal else start + window - 1)
    return near.triu(start - window + 1) if window else near


def hides_keys(causal: bool, m: int, start: int) -> bool:
    """Returns whether causal attention hides any of m keys from queries at the positions from `start`."""
    # An exported model has no number of keys. Under torch.compile a comparison of lengths is a symbol, and the kernels
    # take a bool: a branch makes one.
    if not is_exporting() and start + 1 >= m:
        return False
    return causal


def hides_far_keys(window: int, n: int, m: int, start: int) -> bool:
    """Returns whether any of m keys is `window` positions or more away from any of n queries from `start`; False if
    `window` is 0."""
    if not window or is_exporting():
        return window > 0
    return bool(start + n > window or m - start > window)


def softmax_with_sinks(
    x: Float[Tensor, "b h n m"], sinks: Float[Tensor, "#b h"], allowed: Bool[Tensor, "..."] | None
) -> Float[Tensor, "b h n m"]:
    """Returns exp(x_ij) / (exp(sink) + Σ_l exp(x_il)) over the allowed entries."""
    # A sink is a further key, whose weight is dropped.
    x = torch.cat((x, sinks[..., None, None].to(x.dtype).expand(*x.shape[:3], 1)), -1)
    read = None if allowed is None else F.pad(allowed, (0, 1), value=True)
    return masked_softmax(x, read, reuse=(True, True))[..., :-1]


def is_faster_plainly(query: Float[Tensor, "b h n c"], m: int) -> bool:
    """Returns whether attention to m keys takes less time by its weights than by torch's fused kernels, which are slow
    on a CPU for few keys."""
    if not is_large_on_cpu(query, query[..., 0].numel() * m, _LEAST_WEIGHTS):
        return False
    return query.dtype == torch.float32 and m < (_FEW_KEYS_WITH_GRADIENTS if query.requires_grad else _FEW_KEYS)


def turns(positions: Float[Tensor, " n"], c: int, base: float = 10000.0) -> Float[Tensor, "n k 2"]:
    """Returns cosine and sine of the angle p base^(-2i/c) for the pair of channels i at position p."""
    frequency = base ** (-torch.arange(0, c, 2, dtype=positions.dtype, device=positions.device) / c)
    angle = positions[:, None] * frequency
    return torch.stack((angle.cos(), angle.sin()), dim=-1)


def decay(positions: Float[Tensor, " n"], c: int, scale: float, floor: float) -> Float[Tensor, "n k"]:
    """ζ_i^(p / scale) for the pair of channels i at position p, ζ_i = (2i/c + floor) / (1 + floor)."""
    pairs = torch.arange(0, c, 2, dtype=positions.dtype, device=positions.device)
    zeta = (pairs / c + floor) / (1 + floor)
    return zeta ** (positions[:, None] / scale)


def rotate(x: Float[Tensor, "b h n c"], turn: Float[Tensor, "n k 2"]) -> Float[Tensor, "b h n c"]:
    """Multiplies the pair of channels (2i, 2i+1) by a turn as complex numbers: (x + iy) (cos + i sin)."""
    # Exported and compiled models cannot use complex numbers, which need one pass over x instead of eight.
    if x.device.type in ("cpu", "cuda") and not is_exporting() and not torch.compiler.is_compiling():
        return _rotate_complex(x, turn)
    cos, sin = turn.to(x.dtype).unbind(-1)
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, odd * cos + even * sin), dim=-1).flatten(-2)


def _rotate_complex(x: Float[Tensor, "b h n c"], turn: Float[Tensor, "n k 2"]) -> Float[Tensor, "b h n c"]:
    pairs = x.to(turn.dtype).view(*x.shape[:-1], x.shape[-1] // 2, 2)
    *outer, last = pairs.stride()
    if last != 1 or pairs.storage_offset() % 2 or any(stride % 2 for stride in outer):
        pairs = pairs.clone(memory_format=torch.contiguous_format)
    product = torch.view_as_complex(pairs) * torch.view_as_complex(turn)
    return torch.view_as_real(product).flatten(-2).to(x.dtype)


class Attention(KeyedAttention):
    """Multi-head softmax attention.

        A_ij = softmax_j(q_i · k_j / sqrt(c)),    y_i = Wo concat_heads(Σ_j A_ij v_j)

    q, k and v are linear in the inputs; c is the width of a head. With positions:
        absolute    sinusoids are added to q and kv before the projections
        rotary      q_i <- R(i θ) q_i and k_j <- R(j θ) k_j, R rotates channels in pairs, θ_i = 10000^(-2i/c)
        xpos        rotary, then q_i <- ζ^(i/512) q_i and k_j <- ζ^(-j/512) k_j, ζ_i = (2i/c + 0.4) / 1.4
        alibi       A_ij^h = softmax_j(q_i · k_j / sqrt(c) - s_h (i - j)), s_h = 2^(-8h/H) for h = 1, …, H

    Settings: the signature has their equations and sources. The logits are, in this order, scaled, capped, biased by
    alibi and masked; queries and keys are normalised before they are rotated.

    Vaswani et al., "Attention is all you need", 2017, section 3.2; Su et al., "RoFormer", 2021; Sun et al., "A
    length-extrapolatable Transformer", 2023; Press, Smith, Lewis, "Train short, test long", 2022. The decay of xpos is
    signed, as in Dynamic Halt: keys after the query are amplified. A query without keys weighs none: A_i = 0."""

    def __init__(
        self,
        *,
        heads: int,
        position: str,
        causal: bool,
        dropout: float,
        output_dropout: float,
        head_dim: int,
        causal_rule: str,
        padded: str,
        init: str,
        kv_heads: int,
        window: int,
        scale: float,
        softcap: float,
        qk_norm: bool,
        sinks: bool,
        bias: bool,
        gate: str,
        base: float,
        d: int,
        e: int,
        decay_scale: float = 512.0,
        decay_floor: float = 0.4,
    ) -> None:
        super().__init__()
        size = head_dim or d // heads
        self.query = nn.Linear(d, heads * size, bias=bias)
        self.key = nn.Linear(e, kv_heads * size, bias=bias)
        self.value = nn.Linear(e, kv_heads * size, bias=bias)
        self.output = nn.Linear(heads * size, d, bias=bias)
        self.gate = None if gate == "none" else nn.Linear(d, heads * (size if gate == "per_feature" else 1), bias=bias)
        self.query_norm = nn.RMSNorm(size, _EPSILON) if qk_norm else None
        self.key_norm = nn.RMSNorm(size, _EPSILON) if qk_norm else None
        self.sinks = nn.Parameter(torch.zeros(heads)) if sinks else None
        self.heads = heads
        self.kv_heads = kv_heads
        self.window = window
        self.scale = scale or None
        self.softcap = softcap
        self.position = position
        self.slopes = alibi_slopes(heads) if position == "alibi" else None
        self.causal = causal
        self.only_if_equal = causal_rule == "equal_lengths"
        self.zero_padded = padded == "zero"
        self.dropout = dropout
        self.output_dropout = output_dropout
        self.base = base
        self.decay_scale = decay_scale
        self.decay_floor = decay_floor
        self._initialise(init)

    def _initialise(self, init: str) -> None:
        projections = (self.query, self.key, self.value)
        if init in ("xavier", "scaled"):
            for projection in projections:
                nn.init.xavier_uniform_(projection.weight, sqrt(0.5) if init == "scaled" else 1.0)
            nn.init.xavier_uniform_(self.output.weight)
        elif init == "fused":
            nn.init.xavier_uniform_(self.query.weight)
            initialise_fused(self.key, self.value)
        if self.gate is not None and init != "torch":
            nn.init.xavier_uniform_(self.gate.weight)
        for linear in (*projections, self.output, self.gate):
            if linear is not None and linear.bias is not None and init != "torch":
                nn.init.zeros_(linear.bias)

    def _project(
        self, q: Float[Tensor, "b n d"], kv: Float[Tensor, "b m e"], mask_m: MaskM, products: Products = NO_PRODUCTS
    ) -> tuple[Float[Tensor, "b h n c"], Float[Tensor, "b g m c"], Float[Tensor, "b g m c"]]:
        # Only differences of positions matter; the powers of ζ are smallest around 0.
        middle = kv.shape[1] // 2
        return self._queries(q, 0, middle, products), *self._keys_and_values(kv, mask_m, products, 0, middle)

    def _queries(
        self, q: Float[Tensor, "b n d"], start: int, middle: int, products: Products
    ) -> Float[Tensor, "b h n c"]:
        """Returns the queries at the positions from `start`, rotated and scaled as if `middle` were position 0."""
        if self.position == "absolute":
            q = q + sinusoid(counted(q.shape[1], q, start), q.shape[2], self.base).to(q.dtype)
        query = self._heads_of(self.query, "query", q, products)
        return self._encoded(_normed(query, self.query_norm), start - middle, 1)

    def _keys_and_values(
        self, kv: Float[Tensor, "b m e"], mask_m: MaskM, products: Products, start: int, middle: int = 0
    ) -> tuple[Float[Tensor, "b g m c"], Float[Tensor, "b g m c"]]:
        if self.position == "absolute":
            kv = kv + sinusoid(counted(kv.shape[1], kv, start), kv.shape[2], self.base).to(kv.dtype)
        key, value = super()._keys_and_values(kv, mask_m, products, start)
        return self._encoded(_normed(key, self.key_norm), start - middle, -1), value

    def _encoded(self, x: Float[Tensor, "b h n c"], start: int, sign: int) -> Float[Tensor, "b h n c"]:
        """Rotates queries (sign 1) or keys (sign -1) at the positions from `start`; with xpos, it scales them too."""
        if self.position not in ("rotary", "xpos"):
            return x
        n, c = x.shape[2:]
        scaling = (sign, self.decay_scale, self.decay_floor) if self.position == "xpos" else None

        def of_positions() -> Tensor:
            positions = counted(n, x, start)
            turn = turns(positions, c, self.base)
            if scaling is None:
                return turn
            return turn * decay(sign * positions, c, self.decay_scale, self.decay_floor)[..., None]

        return rotate(x, cached_in_call(("turns", n, c, start, self.base, scaling, x.dtype, x.device), of_positions))

    def _is_causal(self, n: int, m: int) -> bool:
        # Under torch.compile a comparison of lengths is a symbol, and the kernels take a bool.
        if self.causal and self.only_if_equal and n != m:
            return False
        return self.causal

    def weights(
        self, q: Float[Tensor, "b n d"], kv: Float[Tensor, "b m e"], *, mask_m: MaskM = None
    ) -> Float[Tensor, "b h n m"]:
        """Returns A, without dropout."""
        query, key, _ = self._project(q, kv, mask_m)
        n, m = query.shape[2], key.shape[2]
        allowed = visible(n, m, self._is_causal(n, m), mask_m, q.device, 0, self.window)
        return self._weights(query, self._of_each_head(key), allowed)

    def _of_each_head(self, x: Float[Tensor, "b g m c"]) -> Float[Tensor, "b h m c"]:
        return x if self.kv_heads == self.heads else x.repeat_interleave(self.heads // self.kv_heads, 1)

    def _weights(
        self,
        query: Float[Tensor, "b h n c"],
        key: Float[Tensor, "b h m c"],
        allowed: Bool[Tensor, "..."] | None,
        start: int = 0,
        first_head: int = 0,
    ) -> Float[Tensor, "b h n m"]:
        """Returns A of the heads from `first_head`, without dropout, for queries whose first has the position
        `start`."""
        products = query @ key.transpose(-1, -2)
        logits = products / sqrt(query.shape[-1]) if self.scale is None else products * self.scale
        if self.softcap:
            logits = self.softcap * tanh(logits / self.softcap)
        if self.slopes is not None:
            slopes = self.slopes[first_head : first_head + query.shape[1]]
            logits = logits + self._bias(query, key.shape[2], start, slopes)
        if self.sinks is None:
            return masked_softmax(logits, allowed)
        return softmax_with_sinks(logits, self.sinks[None, first_head : first_head + query.shape[1]], allowed)

    def _bias(self, query: Float[Tensor, "b h n c"], m: int, start: int, slopes: list[float]) -> Float[Tensor, "h n m"]:
        """Returns what alibi adds to the logits of queries whose first has the position `start`."""
        distance = counted(query.shape[2], query, start)[:, None] - counted(m, query)
        return (-filled(slopes, query, distance.dtype)[:, None, None] * distance.abs()).to(query.dtype)

    def forward(
        self,
        q: Float[Tensor, "b n d"],
        kv: Float[Tensor, "b m e"],
        *,
        mask_n: MaskN = None,
        mask_m: MaskM = None,
        products: Products = NO_PRODUCTS,
    ) -> Float[Tensor, "b n d"]:
        query, key, value = self._project(q, kv, mask_m, products)
        n, m = q.shape[1], kv.shape[1]
        y = self._mixed(self._attend(query, key, value, self._is_causal(n, m), mask_m), q, products)
        if self.zero_padded:
            y = real_only(y, mask_n)
        return dropout(y, self.output_dropout, self.training)

    def regime(self, total: int, q: Float[Tensor, "b n d"], kv: Float[Tensor, "b m e"]) -> bool:
        """Returns whether later keys are masked when the queries grow to `total`."""
        return self._is_causal(total, kv.shape[1])

    def extend(
        self,
        cache: BlockCache,
        q: Float[Tensor, "b n d"],
        kv: Float[Tensor, "b k e"],
        *,
        mask_m: MaskM = None,
        products: Products = NO_PRODUCTS,
        **_: Mask,
    ) -> Float[Tensor, "b n d"]:
        start = cache.start
        key, value = self._with_cached(cache, kv, mask_m, products)
        first_key = 0
        if self.window and cache.grows[1]:
            # The cache ends with the newest key, and later queries see no other keys than its last ones.
            first_key = start + q.shape[1] - key.shape[2]
            for name, kept in (("key", key), ("value", value)):
                cache.tensors[name] = kept[:, :, max(0, kept.shape[2] - self.window + 1) :]
            mask_m = None if mask_m is None else mask_m[:, first_key:]
        causal = self._is_causal(start + q.shape[1], first_key + key.shape[2])
        heads = self._attend(self._queries(q, start, 0, products), key, value, causal, mask_m, start - first_key)
        return self._mixed(heads, q, products)

    def _mixed(
        self, heads: Float[Tensor, "b h n c"], q: Float[Tensor, "b n d"], products: Products
    ) -> Float[Tensor, "b n d"]:
        if self.gate is not None:
            heads = heads * split_heads(mapped(self.gate, "gate", q, products).sigmoid(), self.heads)
        y: Tensor = self.output(join_heads(heads))
        return y

    def _attend(
        self,
        query: Float[Tensor, "b h n c"],
        key: Float[Tensor, "b g m c"],
        value: Float[Tensor, "b g m c"],
        causal: bool,
        mask_m: MaskM,
        start: int = 0,
    ) -> Float[Tensor, "b h n c"]:
        n, m = query.shape[2], key.shape[2]
        causal = hides_keys(causal, m, start)
        if self.window and causal and is_plain() and start + n <= m and n > 2 * max(self.window, _LEAST_QUERIES):
            return self._attend_nearby(query, key, value, mask_m, start)
        rate = self.dropout if self.training else 0.0
        # On the CPU, torch's attention has no faster kernel for dropout.
        if (
            self.softcap
            or self.sinks is not None
            or (rate > 0 and is_drawn_here(query, query[..., 0].numel() * m))
            or is_faster_plainly(query, m)
        ):
            allowed = visible(n, m, causal, mask_m, query.device, start, self.window)
            return self._attend_by_weights(query, self._of_each_head(key), self._of_each_head(value), allowed, start)
        attend = partial(scaled_dot_product_attention, dropout_p=rate, scale=self.scale)
        is_local = hides_far_keys(self.window, n, m, start)
        if self.slopes is None and mask_m is None and not (causal and start) and not is_local:
            attend = partial(attend, is_causal=causal, enable_gqa=self.kv_heads < self.heads)
            heads: Tensor = in_one_batch(attend, query, key, value)
            return heads
        added, keyless = self._masks(query, m, causal, mask_m, start)
        # On a GPU, torch's only kernel that takes a mask has as many heads of keys as of queries.
        heads = in_one_batch(attend, query, self._of_each_head(key), self._of_each_head(value), added)
        return heads.masked_fill(keyless, 0.0)

    def _attend_nearby(
        self,
        query: Float[Tensor, "b h n c"],
        key: Float[Tensor, "b g m c"],
        value: Float[Tensor, "b g m c"],
        mask_m: MaskM,
        start: int,
    ) -> Float[Tensor, "b h n c"]:
        heads, size, end = [], max(self.window, _LEAST_QUERIES), start
        for queries in torch.split(query, size, 2):
            first, end = end, end + queries.shape[2]
            begin = max(0, first + 1 - self.window)
            near = RowRange(first, end, slice(begin, end))
            keys, key = _NEAR_KEYS.cut(key, near)
            values, value = _NEAR_KEYS.cut(value, near)
            mask = None if mask_m is None else mask_m[:, begin:end]
            heads.append(self._attend(queries, keys, values, True, mask, first - begin))
        return torch.cat(heads, 2)

    def _masks(
        self, query: Float[Tensor, "b h n c"], m: int, causal: bool, mask_m: MaskM, start: int
    ) -> tuple[Float[Tensor, "..."], Bool[Tensor, "..."]]:
        """Returns what is added to the logits, -inf for hidden keys, and which queries have no keys.

        Some kernels return NaN for a query without keys: none is hidden from it, and its result has to be masked."""
        b, _, n, _ = query.shape
        slopes, window = self.slopes, self.window

        def masks() -> tuple[Tensor, Tensor]:
            allowed = visible(n, m, causal, mask_m, query.device, start, window)
            if allowed is None:  # with alibi, where no key is hidden
                allowed = query.new_ones(1, m, dtype=torch.bool)
            keyless = ~allowed.any(-1, keepdim=True)
            bias = query.new_zeros(()) if slopes is None else self._bias(query, m, start, slopes)
            added = bias.masked_fill(~(allowed | keyless), -torch.inf)
            return added if added.dim() == 4 else added.expand(b, 1 if slopes is None else -1, -1, -1), keyless

        return cached_in_call(
            (
                "masks",
                causal,
                window,
                (n, m, start) if causal or slopes or window else m,  # one row of real keys serves any number of queries
                b,
                slopes and tuple(slopes),
                query.dtype,
                query.device,
            ),
            masks,
            mask_m,
        )

    def _attend_by_weights(
        self,
        query: Float[Tensor, "b h n c"],
        key: Float[Tensor, "b h m c"],
        value: Float[Tensor, "b h m c"],
        allowed: Bool[Tensor, "..."] | None,
        start: int,
        first_head: int = 0,
    ) -> Float[Tensor, "b h n c"]:
        b, h, n, _ = query.shape
        if is_large_on_cpu(query, b * h * n * key.shape[2], _MOST_WEIGHTS + 1) and b * h > 1:
            axis = 0 if b > 1 else 1
            queries, keys, values = (x.chunk(2, axis) for x in (query, key, value))
            # Masks of all samples have no axis for them.
            halves = (allowed, allowed) if axis or allowed is None or allowed.dim() == 2 else allowed.chunk(2)
            first_heads = (first_head, first_head + axis * queries[0].shape[1])
            parts = [
                self._attend_by_weights(q, k, v, half, start, first)
                for q, k, v, half, first in zip(queries, keys, values, halves, first_heads, strict=True)
            ]
            return torch.cat(parts, axis)
        weights = self._weights(query, key, allowed, start, first_head)
        return dropout(weights, self.dropout, self.training).to(value.dtype) @ value


def _normed(x: Float[Tensor, "b h n c"], norm: nn.RMSNorm | None) -> Float[Tensor, "b h n c"]:
    return x if norm is None else norm(x.to(norm.weight.dtype)).to(x.dtype)
