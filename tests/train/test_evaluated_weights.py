"""Runs evaluate and save an average of their weights, and go on training the weights themselves."""

from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from torch import nn

from archlang.plan.from_file import plan_recipe
from archlang.train.evaluated_weights import EvaluatedWeights
from archlang.train.record.checkpoint import Checkpoints
from archlang.train.record.mistakes import RunWarning
from archlang.train.runs import evaluation, training
from tests.closeness import close
from tests.tiny_run import TINY, StopAfter, latest_weights
from tests.train.runs.test_training import contents, losses

AVERAGED = {
    "ema": "adamw[lr = 1e-2, ema = 0.8, batch = 8, steps = 12, every = 4]",
    "schedule_free": "schedule_free[lr = 1e-2, weight_decay = 0.01, batch = 8, steps = 12, every = 4]",
}
OTHERS = {
    "muon": "muon[lr = 1e-2, clip = 1.0, batch = 8, steps = 12, every = 4, schedule = wsd]",
    "lion": "lion[lr = 1e-3, batch = 8, steps = 12, every = 4, ema = 0.5]",
}
TRAININGS = {**AVERAGED, **OTHERS}


def train(
    root: Path, written: str, name: str, sets: Mapping[str, str] | None = None, asks: int = 10**9
) -> evaluation.Result:
    """Trains the tiny recipe with another optimizer. Stops it after a number of checks."""
    (root / "tiny.arch").write_text(
        TINY.replace(TINY[TINY.index("adamw") : TINY.index("    claim")], written + "\n", 1)
    )
    plan = plan_recipe(root / "tiny.arch", sets=sets or {})
    return training.train(plan, root / name, device="cpu", stop=StopAfter(asks))


def test_the_average_is_exponential_and_begins_with_the_first_step() -> None:
    module = nn.Linear(1, 1, bias=False)
    evaluated = EvaluatedWeights(module, torch.optim.SGD(module.parameters()), 0.9)
    with evaluated.placed():
        pass  # before the first step they are the weights themselves
    for value in (2.0, 3.0, 5.0):
        nn.init.constant_(module.weight, value)
        evaluated.update()
    with evaluated.placed():
        assert module.weight.item() == pytest.approx(0.9 * (0.9 * 2 + 0.1 * 3) + 0.1 * 5)
    assert module.weight.item() == 5.0


@pytest.mark.parametrize(
    ("name", "asks"),
    [
        pytest.param(name, asks, marks=() if name in AVERAGED and asks == 10 else pytest.mark.slow)
        for name in TRAININGS
        for asks in (0, 10, 17)
    ],
)
def test_a_stopped_run_resumes_as_if_it_had_not_been_stopped(name: str, asks: int, tmp_path: Path) -> None:
    train(tmp_path, TRAININGS[name], "whole")
    assert train(tmp_path, TRAININGS[name], "stopped", asks=asks).stopped
    train(tmp_path, TRAININGS[name], "stopped")
    whole, stopped = contents(tmp_path / "whole"), contents(tmp_path / "stopped")
    assert {file: stopped[file] for file in whole} == whole


@pytest.mark.parametrize("name", [pytest.param("ema", marks=pytest.mark.slow), "schedule_free"])
def test_more_evaluations_do_not_change_training(name: str, tmp_path: Path) -> None:
    train(tmp_path, AVERAGED[name], "few")
    train(tmp_path, AVERAGED[name], "many", {"train.every": "1"})
    assert losses(tmp_path / "few") == losses(tmp_path / "many")


def test_an_average_does_not_change_training_and_is_what_is_saved_and_evaluated(tmp_path: Path) -> None:
    outcome = train(tmp_path, AVERAGED["ema"], "averaged")
    train(tmp_path, AVERAGED["ema"], "plain", {"train.ema": "0.0"})
    assert losses(tmp_path / "averaged") == losses(tmp_path / "plain")
    averaged = Checkpoints(tmp_path / "averaged" / "checkpoints").latest()
    assert averaged is not None
    assert averaged.state.trained is not None
    torch.testing.assert_close(averaged.state.trained, latest_weights(tmp_path / "plain"), rtol=0, atol=0)
    assert any((averaged.weights[name] != value).any() for name, value in averaged.state.trained.items())
    assert evaluation.evaluate_run(tmp_path / "averaged", device="cpu").splits == outcome.splits


def test_a_schedule_free_run_evaluates_the_average_of_its_optimizer(tmp_path: Path) -> None:
    outcome = train(tmp_path, AVERAGED["schedule_free"], "run")
    checkpoint = Checkpoints(tmp_path / "run" / "checkpoints").latest()
    assert checkpoint is not None
    assert checkpoint.state.trained is not None
    fast = [moments["z"] for moments in checkpoint.state.optimizer["state"].values()]
    trained = list(checkpoint.state.trained.values())
    average = [checkpoint.weights[name] for name in checkpoint.state.trained]
    for y, x, z in zip(trained, average, fast, strict=True):
        close(y, 0.1 * z + 0.9 * x)
    assert evaluation.evaluate_run(tmp_path / "run", device="cpu").splits == outcome.splits


def test_a_checkpoint_without_the_trained_weights_is_refused(tmp_path: Path) -> None:
    module = nn.Linear(2, 1)
    evaluated = EvaluatedWeights(module, torch.optim.SGD(module.parameters()), 0.9)
    with pytest.raises(ValueError, match="does not hold the trained weights"):
        evaluated.restore(None, 1)
    with pytest.raises(ValueError, match="does not hold the trained weights"):
        evaluated.restore({"weight": torch.zeros(1, 2)}, 1)
    with pytest.raises(ValueError, match="the trained weight weight does not fit"):
        evaluated.restore({"weight": torch.zeros(2), "bias": torch.zeros(1)}, 1)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "is_together"), [("lion", True), ("muon", False)])
def test_seeds_train_together_if_the_optimizer_treats_each_number_alone(
    name: str, is_together: bool, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    seeds = {seed: {"seed": seed, "model.steps": "1"} for seed in ("1", "2")}
    for seed, sets in seeds.items():
        train(tmp_path, TRAININGS[name], f"solo{seed}", sets)
    plans = [plan_recipe(tmp_path / "tiny.arch", sets=sets) for sets in seeds.values()]
    training.train_together(plans, [tmp_path / f"seed{seed}" for seed in seeds], device="cpu")
    messages = [str(warning.message) for warning in recwarn if warning.category is RunWarning]
    assert any("the optimizer `muon` needs the weights of each seed alone" in text for text in messages) != is_together
    if not is_together:
        for seed in seeds:
            assert contents(tmp_path / f"seed{seed}") == contents(tmp_path / f"solo{seed}")
