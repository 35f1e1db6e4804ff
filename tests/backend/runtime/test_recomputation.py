"""Claims about what backward computes again: the gradients are the same, and only arguments are kept."""

import pytest
import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from archlang.backend.runtime.recomputation import recomputed
from tests.closeness import close

CALLS: list[int] = []


def function(factor: float, x: Tensor, nothing: None, weight: Tensor) -> tuple[Tensor, Tensor]:
    CALLS.append(1)
    y = torch.softmax(factor * x @ weight, -1)
    return y.sin(), y @ weight


def sources() -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    x, weight = torch.randn(3, 4, dtype=torch.float64), torch.randn(4, 4, dtype=torch.float64)
    return x.requires_grad_(), weight.requires_grad_()


def loss(x: Tensor, weight: Tensor, again: bool) -> Tensor:
    first, second = recomputed(function, 0.5, x, None, weight) if again else function(0.5, x, None, weight)
    return (first * second).sum()


def test_gradients_are_those_of_what_is_kept_also_a_second_time() -> None:
    both = sources()
    expected = torch.autograd.grad(loss(*both, False), both)
    y = loss(*both, True)
    for _ in range(2):
        close(torch.autograd.grad(y, both, retain_graph=True), expected)


def test_second_derivatives_are_the_same() -> None:
    both, seconds = sources(), []
    for again in (True, False):
        firsts = torch.autograd.grad(loss(*both, again), both, create_graph=True)
        seconds.append(torch.autograd.grad(sum((first.square().sum() for first in firsts), torch.zeros(())), both))
    close(*seconds)


def test_the_arguments_alone_are_kept() -> None:
    x, weight = sources()
    kept: list[int] = []

    def keep(tensor: Tensor) -> Tensor:
        kept.append(tensor.data_ptr())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        recomputed(function, 0.5, x, None, weight)
    assert kept == [x.data_ptr(), weight.data_ptr()]


def test_nothing_after_the_last_saved_tensor_is_computed_again() -> None:
    after: list[int] = []

    def squared(x: Tensor) -> Tensor:
        y = x * x
        after.append(1)
        return y

    x, _ = sources()
    torch.autograd.grad(recomputed(squared, x).sum(), x)
    assert len(after) == 1


def test_without_gradients_nothing_is_kept() -> None:
    x, weight = sources()
    with torch.no_grad():
        result = recomputed(function, 0.5, x, None, weight)
    close(result, function(0.5, x, None, weight))


@pytest.mark.parametrize("is_inside", [True, False])
def test_types_under_autocast_are_those_of_the_forward_pass(is_inside: bool) -> None:
    x, weight = (each.detach().float().requires_grad_() for each in sources())
    gradients = []
    for again in (True, False):
        with torch.autocast("cpu", torch.bfloat16, enabled=is_inside):
            y = loss(x, weight, again)
        with torch.autocast("cpu", torch.bfloat16, enabled=not is_inside):
            gradients.append(torch.autograd.grad(y, (x, weight)))
    for first, second in zip(*gradients, strict=True):
        assert torch.equal(first, second)


def test_it_is_computed_again_inside_of_what_is_computed_again() -> None:
    both = sources()
    CALLS.clear()
    y = checkpoint(lambda x, weight: loss(x.tanh(), weight, True).exp(), *both, use_reentrant=False)
    gradients = torch.autograd.grad(y, both)
    x, weight = both
    close(gradients, torch.autograd.grad(loss(x.tanh(), weight, False).exp(), both))
    assert len(CALLS) <= 4


def test_an_error_of_the_function_is_raised() -> None:
    x, _ = sources()
    with pytest.raises(ZeroDivisionError):
        recomputed(lambda x: x / (1 // 0), x)
