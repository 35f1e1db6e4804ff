"""Sign SGD moves the rows that a batch has read, and the optimizer moves the other weights."""

from pathlib import Path

import pytest
import torch
from torch import nn

from archlang.compile import build
from archlang.diagnostics import ProgramError
from archlang.plan.from_file import plan_recipe
from archlang.runs import evaluation, training
from archlang.train.optimizers import SignSGD, is_capturable, is_stackable, make_optimizer
from archlang.train.step import EagerStep
from tests.closeness import close
from tests.runs.test_training import contents, train_and_die

PROGRAM = """
model m[d = 4](x: tokens[n]) -> logits[n, classes] {
    let table = embed[d]
    let head = linear[classes]
    return head(table(x))
}

recipe r {
    task  sudoku[
        side = 4, train = 1..3, test = 4..5, puzzles = 20, train_size = 60, valid_size = 8, test_size = 8]
    model m
    train adamw[
        lr = 1e-2, batch = 8, steps = 12, every = 4, clip = 1.0, schedule = warmup, warmup = 4, sign_sgd = [table],
        sign_lr = 0.5, sign_decay = 0.1]
}
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    file = tmp_path / "program.arch"
    file.write_text(PROGRAM, encoding="utf-8")
    return file


def test_a_dense_weight_moves_by_the_signs_of_its_gradient() -> None:
    weight = nn.Parameter(torch.tensor([1.0, 2.0, 3.0]))
    weight.grad = torch.tensor([5.0, -0.1, 0.0])
    SignSGD([weight], lr=0.5, weight_decay=0.2).step()
    close(weight.detach(), torch.tensor([0.9 - 0.5, 1.8 + 0.5, 2.7]))


def test_the_optimizer_of_a_recipe_moves_the_rows_of_the_batch_by_signs_and_the_rest_itself(program: Path) -> None:
    plan = plan_recipe(program)
    module = build(plan.graph)
    table, head = module.get_parameter("table.weight"), module.get_parameter("head.weight")
    before, head_before = table.detach().clone(), head.detach().clone()
    optimizer = make_optimizer(plan.train, module)
    assert [group["lr"] for group in optimizer.param_groups] == [0.01, 0.5]
    module(torch.tensor([[0, 3, 3]])).square().sum().backward()
    optimizer.step()
    torch.testing.assert_close(table[[1, 2, 4]], before[[1, 2, 4]], rtol=0, atol=0)
    moved = table.detach()[[0, 3]] - (1 - 0.5 * 0.1) * before[[0, 3]]
    close(moved.abs(), torch.full((2, 4), 0.5))
    assert bool((head != head_before).any())
    assert not is_stackable(plan.train)
    assert not is_capturable(plan.train)


def test_the_rate_follows_the_schedule_and_a_killed_run_resumes_bit_for_bit(program: Path, tmp_path: Path) -> None:
    def trained(folder: Path) -> evaluation.Result:
        return training.train(plan_recipe(program), folder, device="cpu")

    trained(tmp_path / "uninterrupted")
    train_and_die(trained, tmp_path / "killed", EagerStep, "take", 7)
    trained(tmp_path / "killed")
    assert contents(tmp_path / "killed") == contents(tmp_path / "uninterrupted")


def test_an_optimizer_that_moves_all_weights_is_refused(program: Path) -> None:
    text = PROGRAM.replace("adamw", "schedule_free").replace("clip = 1.0, ", "")
    program.write_text(text, encoding="utf-8")
    with pytest.raises(ProgramError, match="sign_sgd"):
        plan_recipe(program)
    own = 'extern optimizer mine[lr: float = 0.1]\n    with training\n    python "mine:Own"\n'
    program.write_text(own + PROGRAM.replace("adamw", "mine"), encoding="utf-8")
    with pytest.raises(ProgramError, match="moves every weight"):
        plan_recipe(program)


def test_one_cycle_moves_the_rate_of_signs_and_the_beta_of_the_others(program: Path, tmp_path: Path) -> None:
    text = PROGRAM.replace("schedule = warmup", "schedule = onecycle")
    program.write_text(text, encoding="utf-8")
    outcome = training.train(plan_recipe(program), tmp_path / "run", device="cpu")
    assert outcome is not None
