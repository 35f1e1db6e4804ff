"""A model that cannot be trained in the free memory is refused before anything is written."""

from pathlib import Path

import pytest
import torch

from archlang.graph.summary import summarize
from archlang.plan.from_file import plan_recipe
from archlang.record.mistakes import RunMachineError
from archlang.runs import training
from archlang.runs.training import require_memory
from tests.tiny_run import Train

WEIGHTS = """
model wide(x: tokens[n]) -> logits[classes] {
    return embed[1000](x) |> mean |> linear[1000] |> linear[classes]
}
recipe wide {
    task  ctl
    model wide
    train %s
}
"""


@pytest.mark.parametrize(
    ("optimizer", "copies"),
    [("adamw[steps = 1]", 4), ("rmsprop[steps = 1]", 3), ("sgd[steps = 1]", 2), ("sgd[steps = 1, momentum = 0.9]", 3)],
)
def test_weights_gradients_and_moments_must_fit(
    optimizer: str, copies: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "wide.arch").write_text(WEIGHTS % optimizer)
    plan = plan_recipe(tmp_path / "wide.arch")
    weights = summarize(plan.graph, 1).unique
    assert weights > 1_000_000
    monkeypatch.setattr(training, "available_memory", lambda: 4 * copies * weights)
    require_memory(plan, torch.device("cpu"))
    monkeypatch.setattr(training, "available_memory", lambda: 4 * copies * weights - 1)
    with pytest.raises(RunMachineError, match="0.0 GB of free memory"):
        require_memory(plan, torch.device("cpu"))


def test_a_model_that_does_not_fit_writes_nothing(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "available_memory", lambda: 100)
    with pytest.raises(RunMachineError, match="free memory"):
        train(tmp_path / "runs" / "run")
    assert not (tmp_path / "runs").exists()


def test_a_machine_that_does_not_say_its_memory_refuses_nothing(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "available_memory", lambda: None)
    train(tmp_path / "run", train__steps="2")
