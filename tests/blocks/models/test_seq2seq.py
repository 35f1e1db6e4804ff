"""The library's encoder-decoders: depth, a shared table and dropout."""

from typing import Any

import pytest
import torch
from torch import Tensor

from archlang.backend.architecture import Architecture
from archlang.blocks.embed import Embed
from archlang.blocks.positions import AbsolutePositions
from tests.blocks.models.batches import noisy
from tests.shipped_models import load_page


def seq2seq(**statics: Any) -> Architecture:  # Any: statics of any kind
    small = {"d": 16, "heads": 2, "ff": 24, "layers": 2, "words": 7, "vocab": 5, **statics}
    return noisy(load_page("seq2seq", "seq2seq", **small))


def items() -> tuple[Tensor, Tensor]:
    return torch.randint(0, 7, (3, 6)), torch.randint(0, 5, (3, 5))


def test_a_universal_model_may_be_deeper_than_in_training() -> None:
    shallow, deep = seq2seq(universal=True), seq2seq(universal=True, layers=7)
    deep.load_state_dict(shallow.state_dict())
    source, target = items()
    assert deep(source, target).ne(shallow(source, target)).any()
    assert set(seq2seq(layers=3).state_dict()) > set(seq2seq(layers=2).state_dict())


def test_the_table_of_the_target_scores_the_answer() -> None:
    module, (source, target) = seq2seq(relative=True), items()
    target %= 4  # the last token is never an input, so its row only scores
    before = module(source, target)
    module.get_parameter("table.weight").data[4] += 1.0
    after = module(source, target)
    assert after[..., :4].equal(before[..., :4])
    assert after[..., 4].ne(before[..., 4]).all()


@pytest.mark.parametrize("relative", [False, True])
def test_only_absolute_models_have_dropout_on_embeddings(relative: bool) -> None:
    parts = list(seq2seq(relative=relative, dropout=0.3).children())
    placed = [part.dropout for part in parts if isinstance(part, AbsolutePositions)]
    assert placed == ([] if relative else [0.3, 0.3])
    assert [part.dropout for part in parts if isinstance(part, Embed)] == [0.0, 0.0]
