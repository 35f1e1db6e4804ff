"""In tests, types and shapes are checked at each call of a block and of the backend."""

from dataclasses import dataclass

import jaxtyping
import pytest
import torch
from beartype.roar import BeartypeCallHintViolation
from jaxtyping import Float
from torch import Tensor

from archlang.blocks.linear import Linear
from archlang.blocks.relational_read import RelationalRead
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


def test_an_argument_of_another_rank_or_type_is_refused() -> None:
    for left in (torch.ones(3), torch.ones(2, 3, dtype=torch.int64), None):
        with pytest.raises(BeartypeCallHintViolation, match="left"):
            product(left, torch.ones(3, 4))  # type: ignore[arg-type] # what is tested


def test_arguments_whose_sizes_disagree_are_refused() -> None:
    with pytest.raises(BeartypeCallHintViolation, match="right"):
        product(torch.ones(2, 3), torch.ones(2, 4))
    with pytest.raises(BeartypeCallHintViolation, match="right"):
        Pair(torch.ones(2), torch.ones(3))


def test_a_result_whose_sizes_are_those_of_no_argument_is_refused() -> None:
    with pytest.raises(BeartypeCallHintViolation, match="return"):
        product(torch.ones(2, 3), torch.ones(3, 4), flips=True)


def test_without_the_checks_the_function_runs_alone() -> None:
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        assert product(torch.ones(2, 3), torch.ones(3, 4), flips=True).shape == (4, 2)
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)


def test_the_blocks_of_the_library_are_checked() -> None:
    with pytest.raises(BeartypeCallHintViolation):
        Linear(out=2, bias=True, init="torch", d=3)(torch.ones(4, 3, dtype=torch.int64))


def test_sizes_that_an_attribute_sets_are_checked() -> None:
    block = RelationalRead(hidden=4, reads=2, form="code", dropout=0.0, causal=False, k=3, d=5)
    arguments = torch.ones(1, 2, 3), torch.ones(1, 4, 5)
    assert block(*arguments).shape == (1, 2, 10)
    block.reads = 3
    with pytest.raises(jaxtyping.TypeCheckError):
        block(*arguments)
