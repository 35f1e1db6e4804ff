"""The softmax over allowed entries, attention by it, and gradients that are differentiated again."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from archlang.backend.kernels import masked_softmax as module
from archlang.backend.kernels import softmax_attention
from archlang.backend.kernels.masked_softmax import causal_softmax, masked_softmax
from archlang.backend.kernels.softmax_attention import DerivativeError, scaled_dot_product_attention
from archlang.backend.runtime.stacking import plain_gradients
from tests.closeness import close, same_gradients

NO_GPU = not torch.cuda.is_available()
CAUSAL = torch.ones(4, 4, dtype=torch.bool).tril()
LENGTHS = torch.tensor([[True] * 4, [True, True, False, False]])[:, None, None]
WITHOUT_KEYS = torch.tensor([True, False])[:, None, None, None].expand(2, 1, 1, 4)
MASKS = {"causal": CAUSAL, "lengths": LENGTHS, "both": CAUSAL & LENGTHS, "a sample without keys": WITHOUT_KEYS}


@pytest.fixture(params=MASKS)
def allowed(request: pytest.FixtureRequest) -> Tensor:
    return MASKS[request.param]


def scores(dtype: torch.dtype = torch.float64) -> Tensor:
    torch.manual_seed(0)
    return torch.randn(2, 3, 4, 4, dtype=dtype, requires_grad=True)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_weights_and_gradients_are_those_of_the_plain_form_bit_for_bit(allowed: Tensor, dtype: torch.dtype) -> None:
    logits = scores(dtype)
    weights, plain = masked_softmax(logits, allowed), module._plainly(logits, ~allowed, -1)
    assert plain.grad_fn is not None
    assert weights.grad_fn is not None
    assert plain.grad_fn.name() != weights.grad_fn.name()
    same_gradients(weights, plain, [logits], tolerance=0)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("reuse", [(False, False), (True, True)])
def test_weights_by_bits_are_those_of_the_plain_form_also_beside_what_is_not_finite(
    allowed: Tensor, dtype: torch.dtype, reuse: tuple[bool, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LEAST_FOR_BITS", 1)
    logits = scores(dtype)
    for hidden, lowest in ((0.0, 0.0), (torch.nan, 0.0), (torch.inf, -torch.inf)):
        with torch.no_grad():
            logits.masked_fill_(~allowed, hidden)[0, 0, 0, 0] += lowest
        plain, weights = (module._plainly(logits, ~allowed, -1), masked_softmax(logits * 1, allowed, reuse=reuse))
        same_gradients(weights, plain, [logits], tolerance=0)
    with torch.autocast("cpu", torch.bfloat16):
        same_gradients(
            masked_softmax(logits * 1, allowed), module._plainly(logits, ~allowed, -1), [logits], tolerance=0
        )


def test_weights_are_the_exponentials_of_allowed_scores_over_their_sum(allowed: Tensor) -> None:
    logits = scores().detach()
    exponentials = logits.exp() * allowed
    expected = exponentials / exponentials.sum(-1, keepdim=True).clamp(min=1e-300)
    torch.testing.assert_close(masked_softmax(logits, allowed), expected, atol=1e-12, rtol=0)


def test_derivatives_are_those_of_numerical_differences(allowed: Tensor) -> None:
    assert torch.autograd.gradcheck(lambda logits: masked_softmax(logits, allowed), scores(), check_forward_ad=True)
    assert torch.autograd.gradgradcheck(lambda logits: masked_softmax(logits, allowed), scores())


def test_transforms_of_torch_func_compute_the_plain_form(allowed: Tensor) -> None:
    logits = scores().detach()

    def loss(values: Tensor) -> Tensor:
        return masked_softmax(values, allowed).square().sum()

    expected = torch.autograd.grad(loss(logits.requires_grad_()), logits)[0]
    close(torch.func.grad(loss)(logits.detach()), expected)


@pytest.mark.parametrize(
    "device", ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, pytest.mark.skipif(NO_GPU, reason="no GPU")])]
)
def test_types_under_autocast_are_those_of_the_plain_form(device: str) -> None:
    logits, allowed = scores(torch.bfloat16).detach().to(device).requires_grad_(), CAUSAL.to(device)
    with torch.autocast(device, torch.bfloat16):
        weights, plain = masked_softmax(logits, allowed), module._plainly(logits, ~allowed, -1)
    same_gradients(weights, plain, [logits], tolerance=0)


@pytest.mark.parametrize("first_row", [-1, 0, 7, 20])
@pytest.mark.parametrize("columns", [24, 9])
def test_the_softmax_of_rows_up_to_the_diagonal_is_that_with_a_mask(first_row: int, columns: int) -> None:
    logits = torch.randn(2, 64, columns, dtype=torch.float64, requires_grad=True)
    logits.data[:, :, -1] = torch.nan if first_row < 0 else 0
    allowed = torch.ones(64, columns, dtype=torch.bool).tril(first_row)[:3]
    rows = logits[:, :3]
    same_gradients(causal_softmax(rows, first_row), module._plainly(rows, ~allowed, -1), [logits], tolerance=0)


@pytest.mark.parametrize("axis", [1, 2])
def test_a_softmax_over_another_axis_is_that_of_the_transpose(axis: int) -> None:
    logits = torch.randn(2, 4, 4, 4, requires_grad=True)
    expected = masked_softmax(logits.transpose(axis, -1), CAUSAL).transpose(axis, -1)
    weights = masked_softmax(logits, CAUSAL.expand_as(logits).transpose(axis, -1), axis)
    same_gradients(weights, expected, [logits], tolerance=1e-6)


def test_a_softmax_over_all_keys_is_torch_s() -> None:
    logits = scores()
    assert torch.equal(masked_softmax(logits, None), logits.softmax(-1))


@pytest.mark.parametrize("length", [1, 3, 11, 15, 16, 17])
@pytest.mark.parametrize("is_masked", [False, True])
def test_short_rows_have_the_weights_and_gradients_of_longer_ones(length: int, is_masked: bool) -> None:
    torch.manual_seed(0)
    logits = torch.randn(128, 3, length, length, requires_grad=True)
    allowed = torch.ones(length, length, dtype=torch.bool).tril(-1) if is_masked else None
    assert module._has_short_rows(logits, -1) == (length in (11, 15))
    weights = masked_softmax(logits, allowed)
    in_double = logits.detach().double().requires_grad_()
    expected = masked_softmax(in_double, allowed)
    torch.testing.assert_close(weights.double(), expected, atol=1e-6, rtol=1e-6)
    if is_masked:
        assert not weights[..., 0, :].any()
    gradient = torch.randn_like(weights)
    (ours,) = torch.autograd.grad(weights, logits, gradient)
    (theirs,) = torch.autograd.grad(expected, in_double, gradient.double())
    torch.testing.assert_close(ours.double(), theirs, atol=1e-6, rtol=1e-6)


def test_short_rows_have_second_derivatives() -> None:
    torch.manual_seed(0)
    logits = torch.randn(64, 4, 4, requires_grad=True)
    results = []
    for values in (logits, logits.detach().double().requires_grad_()):
        (first,) = torch.autograd.grad(masked_softmax(values, CAUSAL).square().sum(), values, create_graph=True)
        (second,) = torch.autograd.grad(first.square().sum(), values)
        results.append(second.double())
    torch.testing.assert_close(*results, atol=1e-5, rtol=1e-5)


def test_a_short_row_of_equal_or_infinite_scores_is_torch_s() -> None:
    least = torch.finfo(torch.float32).min
    for scores_of_row in ([0.0] * 5, [-torch.inf, 1.0, -torch.inf, 2.0, 0.0], [least] * 5):
        logits = torch.tensor(scores_of_row).expand(512, 5)
        assert module._has_short_rows(logits, -1)
        torch.testing.assert_close(masked_softmax(logits, None), logits.softmax(-1), atol=1e-7, rtol=0)


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
    same_gradients(ours, theirs, leaves, tolerance=0)


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


def test_required_gradients_alone_are_computed_and_a_tensor_that_is_two_inputs_has_two() -> None:
    x, y = torch.randn(3, requires_grad=True), torch.randn(3)
    for other, needed, expected in ((x, (True, True), (x, x)), (y, (True, False), (y, None))):
        gradients = plain_gradients(torch.mul, (x, other), needed, (torch.ones(3),))
        for gradient, right in zip(gradients, expected, strict=True):
            assert gradient is right or torch.equal(gradient, right)  # type: ignore[arg-type]  # None is None


def test_an_input_that_a_result_does_not_depend_on_has_the_gradient_zero() -> None:
    x, y = (torch.randn(3, requires_grad=True) for _ in range(2))

    def first(x: Tensor, y: Tensor) -> Tensor:
        return 2 * x

    _, zero = plain_gradients(first, (x, y), (True, True), (torch.ones(3),))
    assert zero is not None
    assert torch.equal(zero, torch.zeros(3))
