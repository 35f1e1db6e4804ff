"""Multi-head softmax attention."""

from functools import partial
from math import sqrt

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from archlang.backend.decode.block_cache import BlockCache
from archlang.backend.runtime.call_cache import cached_in_call
from archlang.backend.runtime.graph_loops import is_exporting
from archlang.backend.runtime.joined_linear import NO_PRODUCTS, Products, mapped
from archlang.backend.runtime.padded_division import Mask
from archlang.backend.runtime.stacking import in_one_batch
from archlang.blocks.positions import alibi_slopes, counted, sinusoid
from archlang.kernels.dropout import dropout, is_drawn_here
from archlang.kernels.masked_softmax import masked_softmax
from archlang.kernels.processor import is_large_on_cpu
from archlang.kernels.softmax_attention import scaled_dot_product_attention

# The number of weights that are computed at a time. The allocator returns the memory of large tensors to the system; to
# get it again in each step takes as long as the products.
_MOST_WEIGHTS = 1 << 20
# With so many weights and fewer keys, torch's attention in 32 bits takes longer on a CPU than products and a softmax.
_LEAST_WEIGHTS = 1 << 13
_FEW_KEYS = 16
_FEW_KEYS_WITH_GRADIENTS = 32


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
    key: nn.Linear
    value: nn.Linear

    def _heads_of(
        self, linear: nn.Linear, name: str, x: Float[Tensor, "b n d"], products: Products, mask: Tensor | None = None
    ) -> Float[Tensor, "b h n c"]:
        """Returns a linear map of x, or its product of this name, split into heads."""
        return split_heads(mapped(linear, name, x, products, mask), self.heads)

    def _keys_and_values(
        self, kv: Float[Tensor, "b m e"], mask_m: Bool[Tensor, "b m"] | None, products: Products, start: int
    ) -> tuple[Float[Tensor, "b h m c"], Float[Tensor, "b h m c"]]:
        """Returns keys and values at the positions from `start`."""
        key = self._heads_of(self.key, "key", kv, products, mask_m)
        return key, self._heads_of(self.value, "value", kv, products, mask_m)

    def _cached(
        self, cache: BlockCache, kv: Float[Tensor, "b k e"], mask_m: Bool[Tensor, "b m"] | None, products: Products
    ) -> tuple[Float[Tensor, "b h m c"], Float[Tensor, "b h m c"]]:
        """Returns the keys and values of all positions; `kv` has the new ones if it grows."""
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
    n: int, m: int, causal: bool, mask_m: Bool[Tensor, "b m"] | None, device: torch.device, start: int = 0
) -> Bool[Tensor, "..."] | None:
    """Returns which of m keys each of n queries may attend to, or None if it is all keys. The first query has the
    position `start`."""
    real = None if mask_m is None else mask_m[:, None, None, :]
    if not hides_keys(causal, m, start):
        return real

    def visible_keys() -> Tensor:
        earlier = torch.ones(n, m, dtype=torch.bool, device=device).tril(start)
        return earlier if real is None else earlier & real

    return cached_in_call(("visible", n, m, device, start), visible_keys, mask_m)


def hides_keys(causal: bool, m: int, start: int) -> bool:
    """Returns whether causal attention hides any of m keys from queries at the positions from `start`."""
    # An exported model has no number of keys. Under torch.compile a comparison of lengths is a symbol, and the kernels
    # take a bool: a branch makes one.
    if not is_exporting() and start + 1 >= m:
        return False
    return causal


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

    q, k and v are linear in the inputs, without biases; c is the width of a head. With positions:
        absolute    sinusoids are added to q and kv before the projections
        rotary      q_i <- R(i θ) q_i and k_j <- R(j θ) k_j, R rotates channels in pairs, θ_i = 10000^(-2i/c)
        xpos        rotary, then q_i <- ζ^(i/512) q_i and k_j <- ζ^(-j/512) k_j, ζ_i = (2i/c + 0.4) / 1.4
        alibi       A_ij^h = softmax_j(q_i · k_j / sqrt(c) - s_h (i - j)), s_h = 2^(-8h/H) for h = 1, …, H

    Vaswani et al., "Attention is all you need", 2017, section 3.2; Su et al., "RoFormer", 2021; Sun et al., "A
    length-extrapolatable Transformer", 2023; Press, Smith, Lewis, "Train short, test long", 2022. The decay of xpos is
    signed, as in Dynamic Halt: keys after the query are amplified. A query without keys has the result zero."""

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
        d: int,
        e: int,
        base: float = 10000.0,
        decay_scale: float = 512.0,
        decay_floor: float = 0.4,
    ) -> None:
        super().__init__()
        width = heads * (head_dim or d // heads)
        self.query = nn.Linear(d, width, bias=False)
        self.key = nn.Linear(e, width, bias=False)
        self.value = nn.Linear(e, width, bias=False)
        self.output = nn.Linear(width, d, bias=False)
        self.heads = heads
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

    def _project(
        self,
        q: Float[Tensor, "b n d"],
        kv: Float[Tensor, "b m e"],
        mask_m: Bool[Tensor, "b m"] | None,
        products: Products = NO_PRODUCTS,
    ) -> tuple[Float[Tensor, "b h n c"], Float[Tensor, "b h m c"], Float[Tensor, "b h m c"]]:
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
        return self._encoded(query, start - middle, 1)

    def _keys_and_values(
        self,
        kv: Float[Tensor, "b m e"],
        mask_m: Bool[Tensor, "b m"] | None,
        products: Products,
        start: int,
        middle: int = 0,
    ) -> tuple[Float[Tensor, "b h m c"], Float[Tensor, "b h m c"]]:
        if self.position == "absolute":
            kv = kv + sinusoid(counted(kv.shape[1], kv, start), kv.shape[2], self.base).to(kv.dtype)
        key, value = super()._keys_and_values(kv, mask_m, products, start)
        return self._encoded(key, start - middle, -1), value

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
        self, q: Float[Tensor, "b n d"], kv: Float[Tensor, "b m e"], *, mask_m: Bool[Tensor, "b m"] | None = None
    ) -> Float[Tensor, "b h n m"]:
        """Returns A, without dropout."""
        query, key, _ = self._project(q, kv, mask_m)
        n, m = query.shape[2], key.shape[2]
        return masked_softmax(
            self._logits(query, key, self.slopes), visible(n, m, self._is_causal(n, m), mask_m, q.device)
        )

    def _logits(
        self, query: Float[Tensor, "b h n c"], key: Float[Tensor, "b h m c"], slopes: list[float] | None, start: int = 0
    ) -> Float[Tensor, "b h n m"]:
        logits = query @ key.transpose(-1, -2) / sqrt(query.shape[-1])
        return logits if slopes is None else logits + self._bias(query, key.shape[2], start, slopes)

    def _bias(self, query: Float[Tensor, "b h n c"], m: int, start: int, slopes: list[float]) -> Float[Tensor, "h n m"]:
        """Returns what alibi adds to the logits of queries whose first has the position `start`."""
        distance = counted(query.shape[2], query, start)[:, None] - counted(m, query)
        slope = torch.tensor(slopes, dtype=distance.dtype, device=query.device)
        return (-slope[:, None, None] * distance.abs()).to(query.dtype)

    def forward(
        self,
        q: Float[Tensor, "b n d"],
        kv: Float[Tensor, "b m e"],
        *,
        mask_n: Bool[Tensor, "b n"] | None = None,
        mask_m: Bool[Tensor, "b m"] | None = None,
        products: Products = NO_PRODUCTS,
    ) -> Float[Tensor, "b n d"]:
        query, key, value = self._project(q, kv, mask_m, products)
        n, m = q.shape[1], kv.shape[1]
        y = self._attend(query, key, value, self._is_causal(n, m), mask_m)
        if self.zero_padded and mask_n is not None:
            y = y.masked_fill(~mask_n[..., None], 0.0)
        return dropout(y, self.output_dropout, self.training)

    def regime(self, total: int, q: Float[Tensor, "b n d"], kv: Float[Tensor, "b m e"]) -> bool:
        """Returns whether later keys are masked when the queries grow to `total`."""
        return self._is_causal(total, kv.shape[1])

    def extend(
        self,
        cache: BlockCache,
        q: Float[Tensor, "b n d"],
        kv: Float[Tensor, "b m e"],
        *,
        mask_m: Bool[Tensor, "b m"] | None = None,
        products: Products = NO_PRODUCTS,
        **_: Mask,
    ) -> Float[Tensor, "b n d"]:
        start = cache.start
        key, value = self._cached(cache, kv, mask_m, products)
        causal = self._is_causal(start + q.shape[1], key.shape[2])
        return self._attend(self._queries(q, start, 0, products), key, value, causal, mask_m, start)

    def _attend(
        self,
        query: Float[Tensor, "b h n c"],
        key: Float[Tensor, "b h m c"],
        value: Float[Tensor, "b h m c"],
        causal: bool,
        mask_m: Bool[Tensor, "b m"] | None,
        start: int = 0,
    ) -> Float[Tensor, "b n d"]:
        m = key.shape[2]
        causal = hides_keys(causal, m, start)
        rate = self.dropout if self.training else 0.0
        if (rate > 0 and is_drawn_here(query, query[..., 0].numel() * m)) or is_faster_plainly(query, m):
            # On the CPU, torch's attention has no faster kernel for dropout.
            allowed = visible(query.shape[2], m, causal, mask_m, query.device, start)
            heads = self._attend_by_weights(query, key, value, self.slopes, allowed, start)
        elif self.slopes is None and mask_m is None and not (causal and start):
            attend = partial(scaled_dot_product_attention, dropout_p=rate, is_causal=causal)
            heads = in_one_batch(attend, query, key, value)
        else:
            added, keyless = self._masks(query, m, causal, mask_m, start)
            attend = partial(scaled_dot_product_attention, dropout_p=rate)
            heads = in_one_batch(attend, query, key, value, added).masked_fill(keyless, 0.0)
        y: Tensor = self.output(join_heads(heads))
        return y

    def _masks(
        self, query: Float[Tensor, "b h n c"], m: int, causal: bool, mask_m: Bool[Tensor, "b m"] | None, start: int
    ) -> tuple[Float[Tensor, "..."], Bool[Tensor, "..."]]:
        """Returns what is added to the logits, -inf for hidden keys, and which queries have no keys.

        Some kernels return NaN for a query without keys: none is hidden from it, and its result has to be masked."""
        n, slopes = query.shape[2], self.slopes

        def masks() -> tuple[Tensor, Tensor]:
            allowed = visible(n, m, causal, mask_m, query.device, start)
            if allowed is None:  # with alibi, where no key is hidden
                allowed = query.new_ones(1, m, dtype=torch.bool)
            keyless = ~allowed.any(-1, keepdim=True)
            bias = query.new_zeros(()) if slopes is None else self._bias(query, m, start, slopes)
            added = bias.masked_fill(~(allowed | keyless), -torch.inf)
            return added if slopes is None else added.expand(query.shape[0], -1, -1, -1), keyless

        return cached_in_call(
            (
                "masks",
                causal,
                (n, m, start) if causal or slopes else m,
                slopes and (query.shape[0], *slopes),
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
        slopes: list[float] | None,
        allowed: Bool[Tensor, "..."] | None,
        start: int,
    ) -> Float[Tensor, "b h n c"]:
        """Returns the heads, whose weights are computed for some samples or heads at a time."""
        b, h, n, _ = query.shape
        m = key.shape[2]
        if b * h * n * m > _MOST_WEIGHTS and b * h > 1:
            axis = 0 if b > 1 else 1
            queries, keys, values = (x.chunk(2, axis) for x in (query, key, value))
            # Masks of all samples have no axis for them.
            halves = (allowed, allowed) if axis or allowed is None or allowed.dim() == 2 else allowed.chunk(2)
            first = len(queries[0][0])
            of_heads = (slopes, slopes) if slopes is None or not axis else (slopes[:first], slopes[first:])
            parts = [
                self._attend_by_weights(q, k, v, own, half, start)
                for q, k, v, own, half in zip(queries, keys, values, of_heads, halves, strict=True)
            ]
            return torch.cat(parts, axis)
        logits = self._logits(query, key, slopes, start)
        weights = masked_softmax(logits, allowed)
        return dropout(weights, self.dropout, self.training).to(value.dtype) @ value
