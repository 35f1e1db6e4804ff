"""The form for few keys against the plain form: weights, gradients and precision."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from archlang.backend.kernels.nearest_match import match_weights, nearest_match
from tests.closeness import same_gradients


def of_logits(logits: Tensor, **more: Any) -> Tensor:
    """The weights of logits [b, h, n, m]: keys are the identity, so the products are the logits."""
    b, h, n, m = logits.shape
    own = torch.eye(m, dtype=logits.dtype).expand(b, h, m, m)
    return match_weights(logits, own, logits.new_zeros(b, n, 2 * h), **more)


def hide(logits: Tensor, causal: bool = False, mask: Tensor | None = None, offset: int = 0) -> Tensor:
    """Returns logits of -inf for hidden keys, as the plain form takes them."""
    n, m = logits.shape[-2:]
    query, key = torch.arange(offset, offset + n)[:, None], torch.arange(m)
    hidden = key >= query if causal else key == query
    if mask is not None:
        hidden = hidden | ~mask[:, None, None]
    return logits.masked_fill(hidden, -torch.inf)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("n", [1, 2, 3, 8, 33])
def test_weights_and_gradients_are_those_of_the_plain_form(n: int, causal: bool) -> None:
    mask = torch.arange(n) < torch.tensor([n, max(1, n - 2)])[:, None]
    logits = (4 * torch.randn(2, 3, n, n, dtype=torch.float64)).requires_grad_()
    fast, plain = of_logits(logits, causal=causal, mask_m=mask), nearest_match(hide(logits, causal, mask))
    same_gradients(fast, plain, [logits])
    torch.testing.assert_close(fast, plain, atol=1e-12, rtol=0)


def test_gradients_of_queries_keys_and_sides_are_those_of_the_plain_form() -> None:
    b, h, n, c = 2, 3, 9, 4
    leaves = [torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in ((b, h, n, c),) * 2]
    leaves.append(torch.randn(b, n, 2 * h, dtype=torch.float64, requires_grad=True))
    query, key, sides = leaves
    left, right = sides.transpose(1, 2)[..., None].chunk(2, dim=1)
    place = torch.arange(n)
    plain = nearest_match(hide(query @ key.transpose(-1, -2) + torch.where(place > place[:, None], right, left)))
    same_gradients(match_weights(query, key, sides), plain, leaves)


@pytest.mark.parametrize("causal", [False, True])
def test_second_derivatives_are_those_of_numerical_differences(causal: bool) -> None:
    mask = torch.tensor([[True] * 4, [True, True, False, False]])
    query, key = (torch.randn(2, 1, 4, 2, dtype=torch.float64, requires_grad=True) for _ in range(2))
    sides = torch.randn(2, 4, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(
        lambda query, key, sides: match_weights(query, key, sides, mask, causal=causal), (query, key, sides)
    )


def test_extreme_logits_keep_their_precision() -> None:
    logits = 50 * torch.randn(4, 5, 40, 40)
    assert (of_logits(logits).double() - nearest_match(hide(logits.double()))).abs().max() < 1e-5


def test_a_hidden_key_has_the_weight_zero() -> None:
    weights = of_logits(30 * torch.randn(1, 2, 12, 12), causal=True)
    assert torch.equal(weights, weights.tril(-1))


def test_a_query_may_have_a_position_after_the_keys() -> None:
    logits = torch.randn(1, 2, 3, 9, dtype=torch.float64)
    weights = of_logits(logits, offset=5)
    torch.testing.assert_close(weights, nearest_match(hide(logits, offset=5), 5), atol=1e-14, rtol=0)
