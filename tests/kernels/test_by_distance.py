"""The selection of scores by distance: the plain form's scores and derivatives."""

import pytest
import torch
from torch import Tensor

from archlang.kernels import by_distance as module
from archlang.kernels.by_distance import by_distance

SIZES = [(1, 1), (1, 4), (4, 1), (3, 5), (5, 3), (4, 4)]
EARLIER = [(n, m) for n, m in SIZES if m <= n]


def scores(n: int, r: int) -> Tensor:
    torch.manual_seed(0)
    return torch.randn(2, 3, n, r, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize(("n", "m"), SIZES)
def test_every_pair_gets_the_score_of_its_distance(n: int, m: int) -> None:
    distances = torch.arange(1 - n, m + 1).expand(1, 1, n, n + m)
    assert by_distance(distances.double(), m)[0, 0].tolist() == [[j - i for j in range(m)] for i in range(n)]


@pytest.mark.parametrize(("n", "m"), EARLIER)
def test_scores_that_end_at_the_distance_0_suffice_for_earlier_keys(n: int, m: int) -> None:
    distances = torch.arange(1 - n, 1).expand(1, 1, n, n)
    for select in (by_distance, module._plainly):
        selected = select(distances.double(), m)[0, 0]
        assert selected.shape == (n, m)
        assert all(selected[i, j] == j - i for i in range(n) for j in range(min(i + 1, m)))


@pytest.mark.parametrize(("n", "m"), SIZES)
def test_scores_and_gradients_are_those_of_the_plain_form_bit_for_bit(n: int, m: int) -> None:
    of_distances = scores(n, n + m)
    selected, plain = by_distance(of_distances, m), module._plainly(of_distances, m)
    assert torch.equal(selected, plain)
    gradient = torch.randn_like(selected)
    ours, plainly = (torch.autograd.grad(result, of_distances, gradient)[0] for result in (selected, plain))
    assert torch.equal(ours, plainly)


@pytest.mark.parametrize(("n", "m"), EARLIER)
def test_gradients_of_earlier_keys_are_those_of_the_plain_form_bit_for_bit(n: int, m: int) -> None:
    of_distances = scores(n, n)
    gradient = torch.randn(2, 3, n, m, dtype=torch.float64).tril()
    ours, plainly = (
        torch.autograd.grad(select(of_distances, m), of_distances, gradient)[0]
        for select in (by_distance, module._plainly)
    )
    assert torch.equal(ours, plainly)


@pytest.mark.parametrize(("n", "m"), SIZES)
def test_first_and_second_derivatives_are_those_of_numerical_differences(n: int, m: int) -> None:
    assert torch.autograd.gradcheck(lambda values: by_distance(values, m).square(), scores(n, n + m))
    assert torch.autograd.gradgradcheck(lambda values: by_distance(values, m).square(), scores(n, n + m))


@pytest.mark.parametrize(("n", "m"), EARLIER)
def test_derivatives_for_earlier_keys_are_those_of_numerical_differences(n: int, m: int) -> None:
    earlier = torch.ones(n, m, dtype=torch.float64).tril()
    assert torch.autograd.gradcheck(lambda values: by_distance(values, m).square() * earlier, scores(n, n))
    assert torch.autograd.gradgradcheck(lambda values: by_distance(values, m).square() * earlier, scores(n, n))


def test_scores_may_be_a_part_of_others_or_transposed() -> None:
    wide = torch.randn(2, 4, 9, dtype=torch.float64)
    for of_distances in (wide[..., 1:8], torch.randn(7, 4, 2, dtype=torch.float64).transpose(0, 2)):
        assert torch.equal(by_distance(of_distances, 3), module._plainly(of_distances, 3))


@pytest.mark.parametrize(("n", "m"), [(0, 3), (3, 0), (0, 0)])
def test_without_queries_or_keys_there_are_no_scores(n: int, m: int) -> None:
    of_distances = scores(n, n + m)
    selected = by_distance(of_distances, m)
    assert selected.shape == (2, 3, n, m)
    (gradient,) = torch.autograd.grad(selected.sum(), of_distances, create_graph=True)
    assert not gradient.any()


def test_transforms_of_torch_func_compute_the_plain_form() -> None:
    of_distances = scores(3, 5).detach()
    expected = torch.stack([by_distance(sample, 2) for sample in of_distances])
    assert torch.equal(torch.vmap(lambda sample: by_distance(sample, 2))(of_distances), expected)
