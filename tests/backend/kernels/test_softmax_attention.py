"""Softmax attention: torch's results, by its fused kernels, and the derivatives that those do not have."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from archlang.backend.kernels import softmax_attention
from archlang.backend.kernels.softmax_attention import DerivativeError, scaled_dot_product_attention

MASK = torch.tensor([[True] * 4, [True, True, False, False]])[:, None, None]
OPTIONS: list[tuple[Tensor | None, bool]] = [(None, False), (None, True), (MASK, False)]


def inputs() -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    query, key, value = (torch.randn(2, 1, 4, 2, dtype=torch.float64, requires_grad=True) for _ in range(3))
    return query, key, value


@pytest.mark.parametrize(("mask", "causal"), OPTIONS)
def test_results_and_gradients_are_those_of_the_fused_kernel(mask: Tensor | None, causal: bool) -> None:
    leaves = inputs()
    ours, theirs = (
        attend(*leaves, attn_mask=mask, is_causal=causal)
        for attend in (scaled_dot_product_attention, F.scaled_dot_product_attention)
    )
    assert theirs.grad_fn is not None
    assert theirs.grad_fn.name().startswith("ScaledDotProduct")
    assert torch.equal(ours, theirs)
    for our, their in zip(*(torch.autograd.grad(result.sum(), leaves) for result in (ours, theirs)), strict=True):
        assert torch.equal(our, their)


@pytest.mark.parametrize(("mask", "causal"), OPTIONS)
def test_second_derivatives_are_those_of_numerical_differences(mask: Tensor | None, causal: bool) -> None:
    query, key, value = inputs()
    # Two heads of queries for one of keys.
    leaves = torch.cat((query, 2 * query), 1).detach().requires_grad_(), key, value
    assert torch.autograd.gradgradcheck(
        lambda query, key, value: scaled_dot_product_attention(
            query, key, value, mask, is_causal=causal, scale=0.3, enable_gqa=True
        ),
        leaves,
    )


def test_forward_mode_derivatives_are_those_of_numerical_differences() -> None:
    assert torch.autograd.gradcheck(scaled_dot_product_attention, inputs(), check_forward_ad=True)


def test_a_hessian_of_torch_func_is_that_of_numerical_differences() -> None:
    query, key, value = (leaf.detach()[:1, :, :2] for leaf in inputs())

    def loss(query: Tensor) -> Tensor:
        return scaled_dot_product_attention(query, key, value).square().sum()

    hessian = torch.func.hessian(loss)(query).reshape(4, 4)
    step = 1e-5 * torch.eye(4, dtype=torch.float64).view(4, *query.shape)
    gradient = torch.func.grad(loss)
    differences = [(gradient(query + change) - gradient(query - change)).flatten() / 2e-5 for change in step]
    torch.testing.assert_close(hessian, torch.stack(differences), atol=1e-8, rtol=0)


def test_without_gradients_nothing_is_saved() -> None:
    with torch.no_grad():
        assert scaled_dot_product_attention(*inputs()).grad_fn is None


def test_a_second_derivative_of_fused_dropout_is_an_error_with_a_remedy() -> None:
    query, key, value = inputs()
    # On the CPU, torch has no fused kernel with dropout.
    attend = F.scaled_dot_product_attention
    result = softmax_attention._Fused.apply(query + key + value, query, key, value, None, attend, 0.5)  # type: ignore[no-untyped-call]
    torch.autograd.grad(result.sum(), query, retain_graph=True)
    with pytest.raises(DerivativeError, match=r"dropout.*SDPBackend\.MATH"):
        torch.autograd.grad(result.sum(), query, create_graph=True)
