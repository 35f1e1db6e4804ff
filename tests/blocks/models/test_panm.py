"""The library's pointer memories with every encoder, in both forms, and as the last layer of a Transformer."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from archlang.backend.architecture import Architecture
from tests.blocks.models.batches import noisy
from tests.conftest import Compiled
from tests.shipped_models import load_page

Make = Callable[..., Architecture]
PROGRAM = """
use archlang.models.panm

model program[network: symbol = bigru, form: symbol = code, controller: symbol = gru, reads = 1, pointers = 2](
    source: tokens[n], target: tokens[t]) -> logits[t, vocab] {
    blank = zeros[3](target)
    x = one_hot(source)
    y = recurrent_panm[8, 4, pointers, reads, network, form, controller, width = 6](x, blank)
    return linear[vocab](y)
}
"""


@pytest.fixture
def program(compiled: Compiled) -> Make:
    return lambda **statics: noisy(compiled(PROGRAM, vocab=6, **statics))


def shipped(model: str, **statics: Any) -> Architecture:  # Any: statics of any kind
    return noisy(load_page("panm", model, vocab=6, **statics))


def items() -> tuple[Tensor, Tensor]:
    return torch.randint(0, 6, (3, 7)), torch.randint(0, 6, (3, 5))


def test_a_decoder_without_feedback_ignores_its_target(program: Make) -> None:
    module, (source, target) = program(), items()
    assert module(source, target).equal(module(source, (target + 1) % 6))


def test_addresses_are_random_in_training_and_fixed_in_evaluation() -> None:
    module = shipped("panm_lstm", hidden=8, width=6)
    source, target = items()
    assert module(source, target).equal(module(source, target))
    module.train()
    assert module(source, target).ne(module(source, target)).any()


def test_addresses_of_the_program_are_random_in_evaluation_too() -> None:
    module = shipped("panm_bigru", hidden=8)
    source, target = items()
    assert module(source, target).ne(module(source, target)).any()


def test_mode_two_may_have_several_reads_or_none(program: Make) -> None:
    sizes = {}
    for reads in (0, 1, 2):
        module = program(reads=reads)
        sizes[reads] = module.get_parameter("linear.weight").shape[1]
        assert any("relational_read" in name for name in module.state_dict()) is (reads > 0)
    # Two pointers and a state, each of width 8, and 8 for every read.
    assert sizes == {0: 24, 1: 32, 2: 40}
