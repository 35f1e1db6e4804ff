"""The weights of geometric attention from queries and keys: the plain form, and one with few passes over the scores of
few keys.

The fast form equals `plain_weights`, which computes its second derivatives."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from archlang.backend.kernels.elementwise import exp
from archlang.backend.runtime.call_cache import cached_in_call
from archlang.backend.runtime.stacking import in_one_batch, needs_plain_form, plain_gradients

# The number of keys up to which the fast form is faster; its work grows with the third power of the number.
_SHORT = 64


def nearest_match(logits: Float[Tensor, "*b n m"], offset: int = 0) -> Float[Tensor, "*b n m"]:
    """Returns the weights A_ij = P_ij Π_k (1 - P_ik) over the keys k nearer to i than j, P = σ(logits).

    Query i has the position i + offset; at equal distance the key to the right is nearer. A masked key has the logit
    -inf, and then no effect: ln(1 - P) is exactly 0.

    The product is a sum of logarithms in the order of nearness, one cumulative sum per query. NDR's program subtracts
    two cumulative sums in the order of position, which loses precision for large sums."""
    n, m = logits.shape[-2:]
    place = torch.arange(offset, offset + n, device=logits.device)[:, None]
    key = torch.arange(m, device=logits.device)
    order = (2 * (key - place).abs() + (key < place)).argsort(-1)
    rank = order.argsort(-1)
    left = F.logsigmoid(-logits).gather(-1, order.expand_as(logits))  # ln(1 - P), the nearest key first
    before = F.pad(left, (1, 0))[..., :-1].cumsum(-1)
    return exp(F.logsigmoid(logits) + before.gather(-1, rank.expand_as(logits)))


def plain_weights(
    query: Float[Tensor, "b h n c"],
    key: Float[Tensor, "b h m c"],
    sides: Float[Tensor, "b n _s"],
    mask_m: Bool[Tensor, "b m"] | None = None,
    offset: int = 0,
    causal: bool = False,
) -> Float[Tensor, "b h n m"]:
    """Returns the weights of the logits q · k + s. Query i has the position i + offset.

    `sides` has s for keys to the left of all heads, then s for keys to the right of all heads."""
    place = torch.arange(offset, offset + query.shape[2], device=query.device)[:, None]
    key_place = torch.arange(key.shape[2], device=query.device)
    left, right = sides.transpose(1, 2)[..., None].chunk(2, dim=1)
    logits = query @ key.transpose(-1, -2) + torch.where(key_place > place, right, left)
    hidden = key_place >= place if causal else key_place == place
    if mask_m is not None:
        hidden = hidden | ~mask_m[:, None, None, :]
    # Cumulative sums need at least single precision.
    wide = torch.promote_types(logits.dtype, torch.float32)
    return nearest_match(logits.to(wide).masked_fill(hidden, -torch.inf), offset)


def match_weights(
    query: Float[Tensor, "b h n c"],
    key: Float[Tensor, "b h m c"],
    sides: Float[Tensor, "b n _s"],
    mask_m: Bool[Tensor, "b m"] | None = None,
    offset: int = 0,
    causal: bool = False,
) -> Float[Tensor, "b h n m"]:
    """Returns `plain_weights` of the same arguments by the faster form."""
    # torch.compile traces the plain form, and transforms differentiate it.
    is_plain = torch.compiler.is_compiling() or needs_plain_form()
    if is_plain or key.shape[2] > _SHORT or query.device.type not in ("cpu", "cuda"):
        return plain_weights(query, key, sides, mask_m, offset, causal)
    # The sums need at least single precision.
    wide = torch.promote_types(query.dtype, torch.float32)

    def of_batch(query: Tensor, key: Tensor, sides: Tensor, mask: Tensor | None = None) -> Tensor:
        with torch.autocast(query.device.type, enabled=False):
            wider = (tensor.to(wide) for tensor in (query, key, sides))
            weights: Tensor = _OfFewKeys.apply(*wider, mask, offset, causal)  # type: ignore[no-untyped-call]
        return weights

    weights: Tensor = in_one_batch(of_batch, query, key, sides, *(() if mask_m is None else (mask_m,)))
    return weights


class _OfFewKeys(torch.autograd.Function):
    """Computes the sums over nearer keys as products with matrices of zeros and ones, one for each position of a
    query."""

    @staticmethod
    def forward(
        ctx: Any,  # torch's context
        query: Float[Tensor, "b h n c"],
        key: Float[Tensor, "b h m c"],
        sides: Float[Tensor, "b n _s"],
        mask_m: Bool[Tensor, "b m"] | None,
        offset: int,
        causal: bool,
    ) -> Float[Tensor, "b h n m"]:
        b, h, n, _ = query.shape
        m = key.shape[2]
        of = n, m, offset, causal, query.dtype, query.device
        # Not in a cache of the process: a CUDA graph would read what the cache has dropped.
        places = cached_in_call((_places, *of), lambda: _places(*of))
        q, k = query.flatten(0, 1), key.flatten(0, 1)
        left, right = (side.flatten(0, 1) for side in sides.transpose(1, 2)[..., None].chunk(2, dim=1))
        logits = torch.where(places.ahead, right, left).baddbmm_(q, k.transpose(1, 2))
        hidden = places.unseen if mask_m is None else places.unseen | ~mask_m[:, None, None, :]
        logits.view(b, h, n, m).masked_fill_(hidden, -torch.inf)
        closed = F.softplus(logits, threshold=40.0)  # -ln(1 - P)
        log = logits.sub_(closed)  # ln P
        open_ = exp(log)
        weights = exp(log.sub_(_map_at_each_position(closed, places.nearer)))
        ctx.save_for_backward(weights, open_, query, key, sides, mask_m)
        ctx.offset, ctx.causal, ctx.places = offset, causal, places
        return weights.view(b, h, n, m)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:  # Any: as above
        weights, open_, query, key, sides, mask_m = ctx.saved_tensors
        if torch.is_grad_enabled():
            plain = partial(plain_weights, mask_m=mask_m, offset=ctx.offset, causal=ctx.causal)
            gradients = plain_gradients(plain, (query, key, sides), ctx.needs_input_grad[:3], (gradient,))
            return *gradients, None, None, None
        q, k = query.flatten(0, 1), key.flatten(0, 1)
        places: _Places = ctx.places
        b, h, n, m = gradient.shape
        own = weights * gradient.reshape(weights.shape)
        # The logit of a key moves the weights of the key and of all farther keys.
        closing = _map_at_each_position(own, places.nearer.transpose(1, 2)).add_(own).mul_(open_)
        by_logit = own.sub_(closing)
        by_side = _map_at_each_position(by_logit, places.sides).view(b, h, n, 2)
        return (
            torch.bmm(by_logit, k).view(b, h, n, k.shape[-1]),
            torch.bmm(by_logit.transpose(1, 2), q).view(b, h, m, q.shape[-1]),
            by_side.permute(0, 2, 3, 1).reshape(b, n, 2 * h),
            None,
            None,
            None,
        )


def _map_at_each_position(values: Float[Tensor, "k n m"], maps: Float[Tensor, "n m _l"]) -> Float[Tensor, "k n _l"]:
    return torch.bmm(values.transpose(0, 1), maps).transpose(0, 1)


@dataclass(frozen=True, eq=False)
class _Places:
    """Values that depend on the positions of queries and keys only."""

    ahead: Bool[Tensor, "n m"]
    """the key is to the right of the query"""
    unseen: Bool[Tensor, "n m"]
    """the key is at the position of the query, or to the right of it if the block is causal"""
    nearer: Float[Tensor, "n m m"]
    """a matrix for each query: 1 at (k, j) if the key k is nearer than j, or at equal distance and to the right"""
    sides: Float[Tensor, "n m 2"]
    """a matrix for each query: 1 at (k, 1) if the key k is to the right, else 1 at (k, 0)"""


def _places(n: int, m: int, offset: int, causal: bool, dtype: torch.dtype, device: torch.device) -> _Places:
    place = torch.arange(offset, offset + n, device=device)[:, None]
    key = torch.arange(m, device=device)
    ahead = key > place
    rank = 2 * (key - place).abs() + (key < place)
    return _Places(
        ahead,
        key >= place if causal else key == place,
        (rank[:, :, None] < rank[:, None, :]).to(dtype),
        torch.stack([~ahead, ahead], -1).to(dtype),
    )
