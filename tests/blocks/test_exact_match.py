"""`exact_match` reads the targets of a batch in training, and nothing else does."""

import numpy as np
import torch
from torch import Tensor, nn
from torch.export import Dim

from archlang.blocks.halting import ExactMatch
from archlang.plan.check import check_text
from archlang.tasks.kit.split import TargetForm
from archlang.train.data import Batch, DeviceSplit
from archlang.train.loss import exact_matches, training_loss
from tests.conftest import Compiled
from tests.train.settings_of_a_run import SETTINGS
from tests.train.test_score import CPU, POSITIONS

MODEL = """
model m(x: tokens[n]) -> logits[n, classes] {
    answer = embed[classes](x)
    loss right = exact_match(answer)
    return answer
}
"""
RECIPE = """
recipe r {
    task  sudoku[side = 4, train = 1..3, test = 4..5]
    model m
    train adamw[steps = 10]
}
"""


def test_the_loss_of_a_batch_is_its_share_of_right_samples(compiled: Compiled) -> None:
    module = compiled(MODEL, vocab=3, classes=3).train()
    batch = DeviceSplit(POSITIONS, CPU).batch(np.array([0, 1]))
    with torch.no_grad():
        module.get_parameter("embed.weight").copy_(torch.eye(3))
    # Both samples have the scored symbol 1 right; the first has 2 in place of 0.
    training_loss(module, batch, module, SETTINGS)
    assert module.sample_losses["right"].tolist() == [0, 1]
    module(*batch.fields.values(), lengths=batch.lengths["x"])
    assert module.sample_losses["right"].tolist() == [0, 0]


def test_each_form_of_answers_has_its_right_samples() -> None:
    items, yes = torch.arange(2), torch.ones(2, 3, dtype=torch.bool)
    classes = Batch(items, {}, {}, torch.tensor([1, 0]), None)
    assert exact_matches(torch.tensor([[0.0, 1.0], [0.0, 1.0]]), classes).tolist() == [True, False]
    sets = Batch(items, {}, {}, torch.tensor([[[1.0, 0.0]], [[1.0, 1.0]]]), yes[:, :1], TargetForm.SETS)
    assert exact_matches(torch.tensor([[[2.0, -1.0]], [[2.0, -1.0]]]), sets).tolist() == [True, False]
    spans = Batch(items, {}, {}, torch.tensor([[0, 1], [1, 2]]), yes, TargetForm.SPANS)
    begin_and_end = torch.tensor([[[5.0, 0.0], [0.0, 5.0], [0.0, 0.0]]]).expand(2, 3, 2)
    assert exact_matches(begin_and_end, spans).tolist() == [True, False]
    unscored = Batch(items, {}, {}, torch.tensor([[0], [0]]), torch.tensor([[True], [False]]), TargetForm.POSITIONS)
    assert exact_matches(torch.tensor([[[0.0, 1.0]], [[0.0, 1.0]]]), unscored).tolist() == [False, True]


def test_the_block_can_be_traced_for_any_number_of_samples() -> None:
    class WithLoss(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.block = ExactMatch(d=3)

        def forward(self, x: Tensor) -> Tensor:
            result: Tensor = x + self.block(x)[:, None]
            return result

    program = torch.export.export(WithLoss(), (torch.zeros(2, 4, 3),), dynamic_shapes={"x": {0: Dim("batch")}})
    assert program.module()(torch.ones(5, 4, 3)).shape == (5, 4, 3)


def test_a_result_that_depends_on_targets_is_refused() -> None:
    assert check_text(MODEL + RECIPE) == ()
    leaking = MODEL.replace("return answer", "return answer * (1 + exact_match(answer))")
    assert [mistake.code for mistake in check_text(leaking + RECIPE)] == ["E0511"]
    in_a_loop = """
        h = answer
        repeat 2 { h <- h * exact_match(h) }
        return h
    """
    assert [mistake.code for mistake in check_text(MODEL.replace("return answer", in_a_loop) + RECIPE)] == ["E0511"]
