"""The update of a table by sign SGD against the arrays of the authors' program."""

from pathlib import Path

import pytest
import torch

import archlang
from archlang.plan.from_file import plan_recipe
from archlang.train.optimizers import make_optimizer
from tests.goldens.golden import Golden, close

PROGRAM = """
model table[d: int](x: tokens[n]) -> logits[n, d] {
    let puzzles = embed[d]
    return puzzles(x)
}

recipe trial {
    task  sudoku[side = 4, train = 2..3, test = 4..5]
    model table[d = 4]
    train adamw[steps = 1, sign_sgd = [puzzles], sign_lr = LR, sign_decay = DECAY]
}
"""


@pytest.mark.goldens("modern", "trm_puzzle_signsgd")
def test_the_rows_of_a_batch_move(golden: Golden, tmp_path: Path) -> None:
    program = tmp_path / "program.arch"
    rate, decay = (float(golden.arrays[f"cfg.{name}"]) for name in ("lr", "weight_decay"))
    program.write_text(PROGRAM.replace("LR", repr(rate)).replace("DECAY", repr(decay)), encoding="utf-8")
    rows, d = golden["in.weights"].shape
    module = archlang.load(program, "table", vocab=rows, d=d).to(golden.dtype)
    weight = module.get_parameter("puzzles.weight")
    with torch.no_grad():
        weight.copy_(golden["in.weights"])
    optimizer = make_optimizer(plan_recipe(program).train, module)
    module(golden["in.ids"].long()[:, None])[:, 0].backward(golden["in.row_grads"])
    optimizer.step()
    close(golden, weight, "out.weights", 1e-6)
