"""The weights of geometric attention in plain torch: what the fast forms equal, and where their second derivatives come
from."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor


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
    return torch.exp(F.logsigmoid(logits) + before.gather(-1, rank.expand_as(logits)))


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
