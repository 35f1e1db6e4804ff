"""The largest features, and the two gradients of their choice."""

import pytest
import torch

from archlang.blocks.activations import TopK, TopKPositions


def test_the_hard_choice_has_no_gradient() -> None:
    x = torch.randn(2, 4, requires_grad=True)
    assert not TopK(k=2, straight_through=False, d=4)(x).requires_grad


def test_the_straight_through_gradient_is_that_of_the_result() -> None:
    x = torch.randn(2, 4, requires_grad=True)
    weight = torch.randn(2, 4)
    (gradient,) = torch.autograd.grad((TopK(k=2, straight_through=True, d=4)(x) * weight).sum(), x)
    assert gradient.equal(weight)


@pytest.mark.parametrize("d", [3, 64])
@pytest.mark.parametrize("straight_through", [False, True])
def test_the_k_largest_features_are_1_and_of_equal_ones_the_first(d: int, straight_through: bool) -> None:
    x = torch.randint(0, 4, (50, d)).float()
    expected = torch.zeros_like(x)
    for row, chosen in zip(x.tolist(), expected, strict=True):
        for c in sorted(range(d), key=lambda c: (-row[c], c))[:2]:
            chosen[c] = 1
    assert TopK(k=2, straight_through=straight_through, d=d)(x).equal(expected)


def test_the_k_largest_positions_are_chosen_among_the_real_ones() -> None:
    x = torch.randint(0, 4, (3, 5, 2)).float()
    lengths = [5, 3, 1]
    mask = torch.arange(5) < torch.tensor(lengths)[:, None]
    y = TopKPositions(k=2, d=2)(x, mask_n=mask)
    for b, length in enumerate(lengths):
        for c in range(2):
            order = sorted(range(length), key=lambda i: -float(x[b, i, c]))
            assert y[b, :, c].tolist() == [float(i in order[:2]) for i in range(5)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("scale", [1e-20, 1, 1e20])
def test_numbers_that_differ_by_rounding_are_equal(dtype: torch.dtype, scale: float) -> None:
    step = torch.finfo(dtype).eps
    x = scale * torch.tensor([[0.5, 1, 1 + 4 * step, 1 - 4 * step, 1 + 100 * step, -1]], dtype=dtype)
    chosen = [TopK(k=k, straight_through=False, d=6)(x)[0].nonzero().flatten().tolist() for k in range(1, 7)]
    assert chosen == [[4], [1, 4], [1, 2, 4], [1, 2, 3, 4], [0, 1, 2, 3, 4], [0, 1, 2, 3, 4, 5]]


def test_half_precision_is_compared_exactly() -> None:
    x = torch.tensor([[1, 1 + torch.finfo(torch.bfloat16).eps]], dtype=torch.bfloat16)
    assert TopK(k=1, straight_through=False, d=2)(x).tolist() == [[0, 1]]


def test_infinite_numbers_are_chosen_by_their_order() -> None:
    x = torch.tensor([[-torch.inf, 2.0, torch.inf, 3.0]])
    chosen = [TopK(k=k, straight_through=False, d=4)(x)[0].nonzero().flatten().tolist() for k in range(1, 5)]
    assert chosen == [[2], [2, 3], [1, 2, 3], [0, 1, 2, 3]]
