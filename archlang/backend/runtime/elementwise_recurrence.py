"""Recurrences whose states are affine in themselves, number by number, in chunks whose positions are computed at once.

    s_i = a_i s_{i-1} + c_i

Inside a chunk that begins with s, s_i = p_i s + y_i with p_i = a_1 … a_i. Only the last of these runs from chunk to
chunk: the n positions take 2 √n steps one after the other. Plain operations of torch, with derivatives of any order."""

from math import isqrt

import torch
from jaxtyping import Float
from torch import Tensor

from archlang.backend.runtime.stacking import holds


def elementwise_recurrence(
    a: Float[Tensor, "b n *d"], c: Float[Tensor, "b n *d"], state: Float[Tensor, "b *d"]
) -> Float[Tensor, "b n *d"]:
    """Returns s_1, …, s_n; `state` is s_0. If some |a| > 1, products of them could overflow where states do not: the
    positions are computed one after the other."""
    n = a.shape[1]
    if n < 8 or not holds(a.detach().abs() <= 1):
        return torch.stack(_in_order(a, c, state)[1:], 1)
    size, batch = isqrt(n - 1) + 1, len(state)
    padding = -n % size
    a = torch.cat((a, a.new_ones(a.shape[0], padding, *a.shape[2:])), 1).reshape(batch, -1, size, *state.shape[1:])
    c = torch.cat((c, c.new_zeros(c.shape[0], padding, *c.shape[2:])), 1).reshape(batch, -1, size, *state.shape[1:])
    product, sums = [a[:, :, 0]], [c[:, :, 0]]
    for factor, term in zip(a.unbind(2)[1:], c.unbind(2)[1:], strict=True):
        product.append(product[-1] * factor)
        sums.append(torch.addcmul(term, factor, sums[-1]))
    starts = torch.stack(_in_order(product[-1], sums[-1], state)[:-1], 1)
    states = torch.addcmul(torch.stack(sums, 2), torch.stack(product, 2), starts[:, :, None])
    return states.flatten(1, 2)[:, :n]


def _in_order(a: Float[Tensor, "b n *d"], c: Float[Tensor, "b n *d"], state: Float[Tensor, "b *d"]) -> list[Tensor]:
    """Returns s_0, …, s_n."""
    states = [state]
    for factor, term in zip(a.unbind(1), c.unbind(1), strict=True):
        states.append(torch.addcmul(term, factor, states[-1]))
    return states
