"""Claims about the kernel of geometric attention: it equals the plain form in double precision, at odd lengths, with
and without padding, in both directions and in one. Without a GPU it runs in Triton's interpreter."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from archlang.backend.kernels.nearest_match import nearest_match
from archlang.blocks.attention import split_heads
from tests.blocks.test_geometric_attention import plain as plain_block

pytest.importorskip("triton", reason="triton is not installed; it comes with torch for CUDA")
from archlang.backend.kernels.geometric import geometric_attention

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def plain(
    q: Tensor, k: Tensor, v: Tensor, left: Tensor, right: Tensor, mask: Tensor | None, causal: bool, offset: int
) -> tuple[Tensor, Tensor]:
    n, m = q.shape[2], k.shape[2]
    place, key = torch.arange(offset, offset + n)[:, None], torch.arange(m)
    logits = q @ k.transpose(-1, -2) + torch.where(key > place, right[..., None], left[..., None])
    hidden = key >= place if causal else key == place
    if mask is not None:
        hidden = hidden | ~mask[:, None, None]
    weights = nearest_match(logits.masked_fill(hidden, -torch.inf), offset)
    return weights @ v, weights.sum(-1)


def drawn(n: int, m: int, c: int, strength: float = 2.0) -> list[Tensor]:
    torch.manual_seed(n + m + c)
    q, k, v = (torch.randn(2, 2, size, c, dtype=torch.float64) for size in (n, m, m))
    left, right = (torch.randn(2, 2, n, dtype=torch.float64) for _ in range(2))
    return [q * strength / c**0.5, k, v, left, right]


def both(
    inputs: list[Tensor], mask: Tensor | None, causal: bool, offset: int, dtype: torch.dtype
) -> list[tuple[Tensor, Tensor]]:
    """Returns pairs of results and gradients of the plain form in float64 and of the kernel, for equal inputs."""
    rounded = [tensor.to(dtype) if index < 3 else tensor.float() for index, tensor in enumerate(inputs)]
    exact = [tensor.double().requires_grad_() for tensor in rounded]
    mine = [tensor.to(DEVICE).requires_grad_() for tensor in rounded]
    probes = [torch.randn(*inputs[0].shape[:3], inputs[2].shape[-1]), torch.randn(inputs[0].shape[:3])]
    q, k, v, left, right = exact
    expected = plain(q, k, v, left, right, mask, causal, offset)
    q, k, v, left, right = mine
    seen = None if mask is None else mask.to(DEVICE)
    actual = geometric_attention(q, k, v, left, right, seen, causal=causal, offset=offset)
    torch.autograd.backward(expected, [probe.double() for probe in probes])
    torch.autograd.backward(actual, [probe.to(DEVICE) for probe in probes])
    pairs = list(zip(expected, actual, strict=True))
    for their, our in zip(exact, mine, strict=True):
        assert their.grad is not None
        assert our.grad is not None
        pairs.append((their.grad, our.grad))
    return [(their.detach().nan_to_num(), our.detach().double().cpu()) for their, our in pairs]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("n", "c"), [(1, 16), (2, 16), (5, 40), (31, 16), (33, 64), (66, 16), (35, 128)])
def test_the_kernel_equals_the_plain_form(n: int, c: int, causal: bool) -> None:
    for expected, actual in both(drawn(n, n, c), None, causal, 0, torch.float32):
        torch.testing.assert_close(actual, expected, atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("causal", [False, True])
def test_padded_keys_are_ignored_in_ragged_batches(causal: bool) -> None:
    mask = torch.arange(35) < torch.tensor([35, 17])[:, None]
    for expected, actual in both(drawn(35, 35, 16), mask, causal, 0, torch.float32):
        torch.testing.assert_close(actual, expected, atol=1e-4, rtol=1e-5)


@pytest.mark.parametrize("causal", [False, True])
def test_second_derivatives_are_those_of_the_plain_form(causal: bool) -> None:
    mask = torch.arange(9) < torch.tensor([9, 4])[:, None]
    exact = [tensor.float().double().requires_grad_() for tensor in drawn(9, 9, 16)]
    mine = [tensor.detach().float().to(DEVICE).requires_grad_() for tensor in exact]

    def penalty_gradients(inputs: list[Tensor], results: tuple[Tensor, Tensor]) -> tuple[Tensor, ...]:
        loss = sum(result.square().sum() for result in results)
        assert isinstance(loss, Tensor)
        first = torch.autograd.grad(loss, inputs, create_graph=True)
        return torch.autograd.grad(torch.stack([gradient.square().sum() for gradient in first]).sum(), inputs)

    q, k, v, left, right = exact
    expected = penalty_gradients(exact, plain(q, k, v, left, right, mask, causal, 0))
    q, k, v, left, right = mine
    actual = penalty_gradients(mine, geometric_attention(q, k, v, left, right, mask.to(DEVICE), causal=causal))
    for our, their in zip(actual, expected, strict=True):
        torch.testing.assert_close(our.double().cpu(), their, atol=1e-3, rtol=1e-4)


def test_queries_may_have_positions_after_the_keys() -> None:
    for expected, actual in both(drawn(7, 50, 16), None, False, 40, torch.float32):
        torch.testing.assert_close(actual, expected, atol=1e-4, rtol=1e-5)


def test_large_logits_end_the_loop_early_with_equal_results() -> None:
    for expected, actual in both(drawn(66, 66, 16, strength=40.0), None, False, 0, torch.float32):
        torch.testing.assert_close(actual, expected, atol=2e-3, rtol=1e-4)


@pytest.mark.parametrize(
    "dtype",
    [
        torch.float16,
        # The interpreter reads its bits as integers.
        pytest.param(torch.bfloat16, marks=[pytest.mark.gpu, pytest.mark.skipif(DEVICE == "cpu", reason="no GPU")]),
    ],
)
def test_half_precision_inputs_are_computed_in_single_precision(dtype: torch.dtype) -> None:
    expected, actual = both(drawn(40, 40, 32), None, False, 0, dtype)[0]
    assert (actual - expected).abs().max() < 0.03


def test_weights_sum_to_at_most_one() -> None:
    q, k, v, left, right = (tensor.float().to(DEVICE) for tensor in drawn(40, 40, 16))
    _, total = geometric_attention(q, k, v, left, right)
    assert float(total.max()) <= 1 + 1e-6


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_the_block_computes_the_same_by_the_kernel(normalised: bool, causal: bool) -> None:
    torch.manual_seed(0)
    block = plain_block(normalised=normalised, causal=causal, d=32, e=32).to(DEVICE)
    x = torch.randn(2, 37, 32, device=DEVICE, requires_grad=True)
    mask = torch.arange(37, device=DEVICE) < torch.tensor([37, 20], device=DEVICE)[:, None]
    value = split_heads(block.value(x), 2)
    leaves = [x, *(parameter for name, parameter in block.named_parameters() if name != "output.weight")]
    forms = block.by_kernel(x, x, value, mask), block.weights(x, x, mask_m=mask) @ value
    probe = torch.randn(forms[0].shape, device=DEVICE)
    torch.testing.assert_close(forms[0], forms[1], atol=1e-5, rtol=1e-5)
    ours, theirs = (
        torch.autograd.grad((form * probe).sum(), leaves, retain_graph=True, allow_unused=True, materialize_grads=True)
        for form in forms
    )
    for our, their in zip(ours, theirs, strict=True):
        torch.testing.assert_close(our, their, atol=1e-3, rtol=1e-4)
