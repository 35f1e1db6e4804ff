"""Claims about `supervise = deep`: each training step takes one step of the loop, from the states of the last."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from archlang.backend.architecture import Architecture
from archlang.errors.edits import apply_edits
from archlang.plan.check import check_text
from archlang.plan.from_file import plan_recipe
from archlang.train.deep_supervision import DeepSupervision
from archlang.train.record.mistakes import RunWarning
from archlang.train.runs import training
from archlang.train.runs.training import train_together
from archlang.train.step import EagerStep
from tests.closeness import close
from tests.conftest import Compiled
from tests.train.runs.test_losses import losses
from tests.train.runs.test_training import assert_killed_equals_uninterrupted, contents
from tests.train.settings_of_a_run import settings_with

MODEL = """
model m[d = 4, turns = 3](x: tokens[n]) -> logits[n, classes] {
    let step = linear[d]
    let head = linear[classes]
    let halt = linear[1]
    e = embed[d](x)
    h = 0 * e
    answers = repeat turns {
        h <- tanh(step(detach(h)) + attention[1](e) + e)
        answer = head(h)
        q = halt(first(h))
        loss halting = softplus(q) - q * exact_match(answer)
        loss halted = greater(q)
        emit answer
    }
    return answers
}
"""
RECIPE = """
recipe r {
    task  sudoku[
        side = 4, train = 1..3, test = 4..5, puzzles = 20, train_size = 60, valid_size = 8, test_size = 8]
    model m
    train adamw[
        lr = 1e-2, batch = 8, steps = 12, every = 4, supervise = deep, halt = halted, explore = 0.3, ema = 0.5,
        loss = stablemax, losses.halting = 0.5]
}
"""
DEEP = settings_with(supervise="deep")
TOKENS = torch.tensor([[0, 1, 2, 0], [1, 1, 0, 0], [2, 0, 0, 0], [2, 1, 0, 1]])
LENGTHS = torch.tensor([4, 3, 1, 4])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "program.arch"
    path.write_text(MODEL + RECIPE, encoding="utf-8")
    return path


def call(module: Architecture, items: np.ndarray) -> torch.Tensor:
    """Calls a module with some rows of TOKENS, as wide as the longest."""
    lengths = LENGTHS[items]
    result: torch.Tensor = module(TOKENS[items][:, : int(lengths.max())], lengths=lengths)
    return result


def test_carried_steps_are_those_of_the_loop_although_the_width_of_the_batch_changes(compiled: Compiled) -> None:
    module = compiled(MODEL, vocab=3, classes=3).double()
    shorter = {turns: compiled(MODEL, vocab=3, classes=3, turns=turns).double() for turns in (1, 2, 3)}
    for other in shorter.values():
        other.load_state_dict(module.state_dict())
    deep = DeepSupervision(module, DEEP, seed=1, size=4)
    # The rows begin at different steps: the second one halts after its first step.
    offers = [[0, 2], [1, 1], [3, 3], [2, 2], [1, 1]]
    rows, taken = [[0, 2], [0, 1], [0, 1], [2, 1], [2, 1]], [[1, 1], [2, 1], [3, 2], [1, 3], [2, 1]]
    for number, offered in enumerate(offers):
        with deep.step(number, np.array(offered)) as items:
            assert items.tolist() == rows[number]
            result = call(module, items)
        for row, turns in enumerate(taken[number]):
            length = int(LENGTHS[items[row]])
            expected = call(shorter[turns], items)[row, :length]
            close(result[row, :length], expected)
        if number == 0:
            deep.restore({**deep.state(), "ended": [False, True]}, torch.device("cpu"))
    assert call(module, np.array([0])).allclose(call(shorter[3], np.array([0])), atol=1e-5)


def test_a_row_halts_where_the_loss_is_positive_unless_it_explores(compiled: Compiled) -> None:
    module = compiled(MODEL, vocab=3, classes=3)
    with torch.no_grad():
        module.get_parameter("halt.weight").zero_()
        module.get_parameter("halt.bias").fill_(1.0)
    for explore, kept in ((0.0, 0), (1.0, 4)):
        deep = DeepSupervision(module, settings_with(supervise="deep", halt="halted", explore=explore), seed=1, size=4)
        with deep.step(0, np.arange(4)) as items:
            call(module, items)
        with deep.step(1, np.zeros(4, dtype=np.int64)) as items:
            assert int((items == np.arange(4))[1:].sum()) == max(kept - 1, 0)
            call(module, items)


def test_a_killed_run_with_carried_states_resumes_bit_for_bit(file: Path, tmp_path: Path) -> None:
    assert_killed_equals_uninterrupted(plan_recipe(file), tmp_path, (EagerStep, "take", 11), (EagerStep, "take", 2))
    assert any(0 < share < 1 for share in losses(tmp_path / "killed", "halted"))


def test_seeds_with_carried_states_train_one_after_another(file: Path, tmp_path: Path) -> None:
    plans = [plan_recipe(file, sets={"seed": seed, "train.steps": "4"}) for seed in ("1", "2")]
    with pytest.warns(RunWarning, match="each seed carries the states of its own examples"):
        train_together(plans, [tmp_path / "first", tmp_path / "second"], device="cpu")
    training.train(plans[1], tmp_path / "alone", device="cpu")
    assert contents(tmp_path / "second") == contents(tmp_path / "alone")


def test_seeds_that_train_together_judge_the_answers_of_each(file: Path, tmp_path: Path) -> None:
    change = "supervise = deep, halt = halted, explore = 0.3, ema = 0.5,", "supervise = every,"
    file.write_text((MODEL + RECIPE).replace(*change), encoding="utf-8")
    plans = [plan_recipe(file, sets={"seed": seed, "train.steps": "4"}) for seed in ("1", "2")]
    train_together(plans, [tmp_path / "first", tmp_path / "second"], device="cpu")
    training.train(plans[1], tmp_path / "alone", device="cpu")
    together, alone = (losses(tmp_path / name, "halting") for name in ("second", "alone"))
    assert together == pytest.approx(alone, rel=1e-4)


@pytest.mark.parametrize(
    "change",
    [
        {"items": [0, 9]}, {"items": None}, {"steps": [1]}, {"steps": [0, 1]}, {"ended": [[True]]}, {"states": []},
        {"states": [torch.zeros(3, 2, 4)]}, {"states": [torch.zeros(2, 4)]},
    ],
)  # fmt: skip
def test_states_that_do_not_fit_are_refused(change: dict[str, Any], compiled: Compiled) -> None:
    module = compiled(MODEL, vocab=3, classes=3)
    deep = DeepSupervision(module, DEEP, seed=1, size=4)
    fresh = deep.state()
    deep.restore(fresh, torch.device("cpu"))
    with deep.step(0, np.array([0, 1])) as items:
        call(module, items)
    state = deep.state()
    deep.restore(state, torch.device("cpu"))
    for wrong in (None, {**state, **change}):
        with pytest.raises(ValueError, match="loop"):
            deep.restore(wrong, torch.device("cpu"))


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (("supervise = deep", "supervise = every"), "E0304"),
        (("halt = halted", "halt = stopped"), "E0617"),
        (("repeat turns", "stack turns"), "E0619"),
        (("repeat turns", "repeat turns drawn by uniform_steps[low = 1, high = 2]"), "E0619"),
        (("return answers", "return 1 * answers"), "E0619"),
        (
            (
                "answers = repeat turns {\n        h <- ",
                "z = 1.0\n    answers = repeat turns {\n        z <- z * 2\n        h <- z * ",
            ),
            "E0619",
        ),
        (("batch = 8", "batch = 8, micro = 2"), "E0304"),
        (("batch = 8", "batch = 8, batch_of = tokens"), "E0304"),
        (("halt = halted, ", ""), "E0304"),
    ],
)
def test_settings_that_do_not_fit_are_refused(change: tuple[str, str], code: str) -> None:
    assert check_text(MODEL + RECIPE) == ()
    assert [mistake.code for mistake in check_text((MODEL + RECIPE).replace(*change))] == [code]


def test_the_word_of_earlier_versions_is_corrected() -> None:
    (mistake,) = check_text((MODEL + RECIPE).replace("supervise = deep", "supervise = carried"))
    assert (mistake.code, mistake.remedy, mistake.is_safe) == ("E0304", "here it is called `deep`", True)
    assert check_text(apply_edits(mistake.span.source.text, mistake.edits)) == ()
