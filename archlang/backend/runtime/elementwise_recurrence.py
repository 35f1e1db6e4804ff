"""Recurrences whose states are affine in themselves, or the greater of a term and of themselves with another term
added, number by number, in chunks whose positions are computed at once.

    s_i = a_i s_{i-1} + c_i        s_i = max(a_i + s_{i-1}, c_i)

Inside a chunk that begins with s, s_i = p_i s + y_i with p_i = a_1 … a_i, or s_i = max(p_i + s, y_i) with the sums p_i.
Only the last of these runs from chunk to chunk: the n positions take 2 √n steps one after the other. Plain operations
of torch, with derivatives of any order."""

import operator
from collections.abc import Callable
from math import isqrt

import torch
from jaxtyping import Float
from torch import Tensor

from archlang.backend.runtime.stacking import holds

# Returns the next state of a factor, a term and a state.
_Advance = Callable[[Tensor, Tensor, Tensor], Tensor]


def elementwise_recurrence(
    a: Float[Tensor, "b n *d"], c: Float[Tensor, "b n *d"], state: Float[Tensor, "b *d"]
) -> Float[Tensor, "b n *d"]:
    """Returns s_1, …, s_n; `state` is s_0. If some |a| > 1, products of them could overflow where states do not: the
    positions are computed one after the other."""

    def advance(factor: Tensor, term: Tensor, state: Tensor) -> Tensor:
        return torch.addcmul(term, factor, state)

    if not holds(a.detach().abs() <= 1):
        return torch.stack(_in_order(a, c, state, advance)[1:], 1)
    return _at_once(a, c, state, operator.mul, advance, (1.0, 0.0))


def elementwise_maximum(
    a: Float[Tensor, "b n *d"], c: Float[Tensor, "b n *d"], state: Float[Tensor, "b *d"], takes_term: bool
) -> Float[Tensor, "b n *d"]:
    """Returns s_1, …, s_n; `state` is s_0. Where both are equal, the derivative is that of c_i with `takes_term`, else
    of the state."""

    def advance(shift: Tensor, term: Tensor, state: Tensor) -> Tensor:
        moved = shift + state
        return torch.where((term >= moved if takes_term else term > moved) | term.isnan(), term, moved)

    return _at_once(a, c, state, operator.add, advance, (0.0, -torch.inf))


def _at_once(
    a: Tensor,
    c: Tensor,
    state: Tensor,
    compose: Callable[[Tensor, Tensor], Tensor],
    advance: _Advance,
    neutral: tuple[float, float],
) -> Tensor:
    n = a.shape[1]
    if n < 8:
        return torch.stack(_in_order(a, c, state, advance)[1:], 1)
    size, padding = isqrt(n - 1) + 1, -n % (isqrt(n - 1) + 1)
    a, c = (
        torch.cat((part, part.new_full((part.shape[0], padding, *part.shape[2:]), filling)), 1).reshape(
            len(state), (part.shape[1] + padding) // size, size, *state.shape[1:]
        )
        for part, filling in zip((a, c), neutral, strict=True)
    )
    composed, terms = [a[:, :, 0]], [c[:, :, 0]]
    for factor, term in zip(a.unbind(2)[1:], c.unbind(2)[1:], strict=True):
        composed.append(compose(composed[-1], factor))
        terms.append(advance(factor, term, terms[-1]))
    starts = torch.stack(_in_order(composed[-1], terms[-1], state, advance)[:-1], 1)
    states = advance(torch.stack(composed, 2), torch.stack(terms, 2), starts[:, :, None])
    return states.flatten(1, 2)[:, :n]


def _in_order(
    a: Float[Tensor, "b n *d"], c: Float[Tensor, "b n *d"], state: Float[Tensor, "b *d"], advance: _Advance
) -> list[Tensor]:
    states = [state]
    for factor, term in zip(a.unbind(1), c.unbind(1), strict=True):
        states.append(advance(factor, term, states[-1]))
    return states
