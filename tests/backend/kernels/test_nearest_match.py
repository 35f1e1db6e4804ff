"""The forms for a CPU against the plain form: weights, gradients, precision and memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor

from archlang.backend.kernels import nearest_match as kernel
from archlang.backend.kernels.plain_geometric import nearest_match
from tests.closeness import same_gradients

Form = Callable[..., Tensor]
weights_of_long, weights_of_short = (partial(kernel.by_form, form) for form in (kernel._OfLong, kernel._OfShort))


def of_logits(form: Form, logits: Tensor, **more: object) -> Tensor:
    """Applies a form to logits [b, h, n, m]: keys are the identity, so the products are the logits."""
    b, h, n, m = logits.shape
    own = torch.eye(m, dtype=logits.dtype).expand(b, h, m, m)
    return form(logits, own, logits.new_zeros(b, n, 2 * h), **more)


def hide(logits: Tensor, causal: bool = False, mask: Tensor | None = None, offset: int = 0) -> Tensor:
    """Returns logits of -inf for hidden keys, as the plain form takes them."""
    n, m = logits.shape[-2:]
    query, key = torch.arange(offset, offset + n)[:, None], torch.arange(m)
    hidden = key >= query if causal else key == query
    if mask is not None:
        hidden = hidden | ~mask[:, None, None]
    return logits.masked_fill(hidden, -torch.inf)


@pytest.mark.parametrize("form", [weights_of_long, weights_of_short])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("n", [1, 2, 3, 8, 33])
def test_weights_and_gradients_are_those_of_the_plain_form(n: int, causal: bool, form: Form) -> None:
    mask = torch.arange(n) < torch.tensor([n, max(1, n - 2)])[:, None]
    logits = (4 * torch.randn(2, 3, n, n, dtype=torch.float64)).requires_grad_()
    fast, plain = of_logits(form, logits, causal=causal, mask_m=mask), nearest_match(hide(logits, causal, mask))
    same_gradients(fast, plain, [logits])
    torch.testing.assert_close(fast, plain, atol=1e-12, rtol=0)


@pytest.mark.parametrize("form", [weights_of_long, weights_of_short])
def test_gradients_of_queries_keys_and_sides_are_those_of_the_plain_form(form: Form) -> None:
    b, h, n, c = 2, 3, 9, 4
    leaves = [torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in ((b, h, n, c),) * 2]
    leaves.append(torch.randn(b, n, 2 * h, dtype=torch.float64, requires_grad=True))
    query, key, sides = leaves
    left, right = sides.transpose(1, 2)[..., None].chunk(2, dim=1)
    place = torch.arange(n)
    plain = nearest_match(hide(query @ key.transpose(-1, -2) + torch.where(place > place[:, None], right, left)))
    same_gradients(form(query, key, sides), plain, leaves)


@pytest.mark.parametrize("form", [weights_of_long, weights_of_short])
@pytest.mark.parametrize("causal", [False, True])
def test_second_derivatives_are_those_of_numerical_differences(form: Form, causal: bool) -> None:
    mask = torch.tensor([[True] * 4, [True, True, False, False]])
    query, key = (torch.randn(2, 1, 4, 2, dtype=torch.float64, requires_grad=True) for _ in range(2))
    sides = torch.randn(2, 4, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(
        lambda query, key, sides: form(query, key, sides, mask, causal=causal), (query, key, sides)
    )


def test_rows_are_computed_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    logits = torch.randn(2, 2, 11, 11, dtype=torch.float64, requires_grad=True)
    at_once = of_logits(weights_of_long, logits)
    monkeypatch.setattr(kernel, "_part", lambda n: 40)
    in_parts = of_logits(weights_of_long, logits)
    same_gradients(in_parts, at_once, [logits], tolerance=1e-12)


@pytest.mark.parametrize(
    ("form", "shape", "bound"),
    [(weights_of_long, (1, 2, 512, 512), 1e-6), (weights_of_short, (4, 5, 40, 40), 1e-5)],
    ids=["many keys", "few keys"],
)
def test_extreme_logits_keep_their_precision(form: Form, shape: tuple[int, ...], bound: float) -> None:
    logits = 50 * torch.randn(shape)
    assert (of_logits(form, logits).double() - nearest_match(hide(logits.double()))).abs().max() < bound


def test_weights_of_many_keys_have_no_denormal_numbers() -> None:
    weights = of_logits(weights_of_long, torch.randn(1, 1, 512, 512))
    assert weights[weights != 0].min() > torch.finfo(torch.float32).tiny


def test_a_hidden_key_has_the_weight_zero() -> None:
    for form in (weights_of_long, weights_of_short):
        weights = of_logits(form, 30 * torch.randn(1, 2, 12, 12), causal=True)
        assert torch.equal(weights, weights.tril(-1))


def test_a_query_may_have_a_position_after_the_keys() -> None:
    logits = torch.randn(1, 2, 3, 9, dtype=torch.float64)
    weights = of_logits(weights_of_short, logits, offset=5)
    torch.testing.assert_close(weights, nearest_match(hide(logits, offset=5), 5), atol=1e-14, rtol=0)


def test_many_keys_save_two_matrices_for_backward() -> None:
    b, h, n, c = 1, 2, 600, 4
    query, key = (torch.randn(b, h, n, c, requires_grad=True) for _ in range(2))
    saved: dict[int, int] = {}
    with torch.autograd.graph.saved_tensors_hooks(
        lambda tensor: saved.setdefault(tensor.untyped_storage().data_ptr(), tensor.untyped_storage().nbytes()),
        lambda size: size,
    ):
        weights_of_long(query, key, torch.zeros(b, n, 2 * h))
    assert sum(saved.values()) < 2.2 * 4 * b * h * n * n
