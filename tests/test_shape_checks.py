"""In tests, types and shapes are checked at each call of a block and of the backend."""

from collections.abc import Callable
from dataclasses import dataclass

import jaxtyping
import pytest
import torch
from beartype.roar import BeartypeCallHintViolation
from jaxtyping import Float
from torch import Tensor

from archlang.blocks.feedforward import Linear
from archlang.blocks.pointer_unit import RelationalRead
from tests.shape_checks import checked


@checked
def product(left: Float[Tensor, "m n"], right: Float[Tensor, "n k"], *, flips: bool = False) -> Float[Tensor, "m k"]:
    return (left @ right).flip(0).T if flips else left @ right


@checked
@dataclass
class Pair:
    left: Float[Tensor, " n"]
    right: Float[Tensor, " n"]


def test_a_call_without_a_mistake_has_its_result() -> None:
    assert product(torch.ones(2, 3), torch.ones(3, 4)).shape == (2, 4)
    assert Pair(torch.ones(2), torch.zeros(2)).left.sum() == 2


ONES = torch.ones(3, 4)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        *[(lambda left=left: product(left, ONES), "left") for left in (torch.ones(3), torch.ones(2, 3).long(), None)],
        (lambda: product(torch.ones(2, 3), torch.ones(2, 4)), "right"),
        (lambda: Pair(torch.ones(2), torch.ones(3)), "right"),
        (lambda: product(torch.ones(2, 3), ONES, flips=True), "return"),
    ],
)
def test_ranks_types_and_sizes_of_arguments_and_results_are_checked(call: Callable[[], object], named: str) -> None:
    with pytest.raises(BeartypeCallHintViolation, match=named):
        call()


def test_without_the_checks_the_function_runs_alone() -> None:
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        assert product(torch.ones(2, 3), torch.ones(3, 4), flips=True).shape == (4, 2)
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)


def test_the_blocks_of_the_library_are_checked() -> None:
    with pytest.raises(BeartypeCallHintViolation):
        Linear(out=2, bias=True, init="torch", std=0.02, d=3)(torch.ones(4, 3, dtype=torch.int64))


def test_sizes_that_an_attribute_sets_are_checked() -> None:
    block = RelationalRead(hidden=4, reads=2, form="code", dropout=0.0, causal=False, k=3, d=5)
    arguments = torch.ones(1, 2, 3), torch.ones(1, 4, 5)
    assert block(*arguments).shape == (1, 2, 10)
    block.reads = 3
    with pytest.raises(jaxtyping.TypeCheckError):
        block(*arguments)
