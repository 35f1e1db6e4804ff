"""A learning rate, a loss and metrics of the user's own, and what they must return."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from archlang.plan.plan import BoundExtern
from archlang.plugins import PluginError, Plugins
from archlang.record.mistakes import RunError
from archlang.tasks.kit.split import Form, Split
from archlang.train.data import Batch
from archlang.train.loss import mean_loss
from archlang.train.optimizer_state import restore_own_optimizer_state
from archlang.train.optimizers import make_optimizer
from archlang.train.settings import Settings
from tests.train.settings_of_a_run import SETTINGS

Load = Callable[[str, str], Settings]
LOGITS = torch.tensor([[2.0, 0.0], [0.0, 0.0]], requires_grad=True)


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Loads the functions of a run whose plugin has a function `f` with this parameter list and result."""
    monkeypatch.chdir(tmp_path)

    def loaded(setting: str, text: str) -> Settings:
        parameters, _, result = text.partition(": ")
        (tmp_path / "mine.py").write_text(f"import torch\n\n\ndef f({parameters}):\n    return {result}\n")
        value = ("mine.f",) if setting == "metrics" else "mine.f"
        settings = SETTINGS.changed(**{setting: value})
        return settings.with_functions(Plugins.read([tmp_path / "mine.py"]), "ctl", ("accuracy",))

    return loaded


def batch(targets: Tensor, scored: Tensor | None = None) -> Batch:
    form = Form.CLASSES if targets.ndim == 1 else Form.POSITIONS
    return Batch(torch.arange(len(targets)), (), {}, targets, scored, form)


def split(size: int) -> Split:
    return Split({}, np.zeros(size, dtype=np.int64))


def test_a_learning_rate_takes_the_step_the_steps_of_the_run_and_the_rate_of_the_optimizer(load: Load) -> None:
    settings = load("rate", "step, total, lr: lr * step / total")
    assert settings.learning_rate(3, 10) == SETTINGS.lr * 3 / 10


@pytest.mark.parametrize("result", ["None", "float('nan')", "-lr", "float('inf')", "True", "torch.tensor(0.1)"])
def test_a_wrong_learning_rate_is_named_with_its_line(result: str, load: Load) -> None:
    settings = load("rate", f"step, total, lr: {result}")
    with pytest.raises(PluginError, match=r"^mine\.py:4: `rate = mine\.f` returns .* at step 3:"):
        settings.learning_rate(3, 10)


def test_a_loss_is_averaged_over_the_samples_or_the_scored_positions(load: Load) -> None:
    settings = load("loss", "logits, targets: logits[..., 0] + targets")
    assert mean_loss(LOGITS, batch(torch.tensor([1, 4])), settings=settings).item() == (3 + 4) / 2
    positions = batch(torch.tensor([[1, 2, 3]]), torch.tensor([[True, False, True]]))
    logits = torch.zeros(1, 3, 2, requires_grad=True)
    assert mean_loss(logits, positions, settings=settings).item() == 2.0


def test_a_loss_of_numbers_is_one_for_each_row(load: Load) -> None:
    settings = load("loss", "results, targets: (results - targets).abs().sum(-1)")
    rows = replace(
        batch(torch.tensor([[[1.0, 2.0], [0.0, 0.0], [5.0, 5.0]]]), torch.tensor([[True, True, False]])),
        form=Form.NUMBERS,
    )
    results = torch.zeros(1, 3, 2, requires_grad=True)
    assert mean_loss(results, rows, settings=settings).item() == 1.5


@pytest.mark.parametrize(
    ("result", "problem"),
    [
        ("logits.sum()", r"returns floats \[\] for targets \[2\]"),
        ("0.5", "returns a float for targets"),
        ("targets", "returns int64 \\[2\\] for targets"),
        ("logits.detach()[:, 0]", "does not depend on the logits"),
    ],
)
def test_a_wrong_loss_is_named_with_its_line(result: str, problem: str, load: Load) -> None:
    settings = load("loss", f"logits, targets: {result}")
    with pytest.raises(PluginError, match=rf"^mine\.py:4: `loss = mine\.f` {problem}"):
        mean_loss(LOGITS, batch(torch.tensor([0, 1])), settings=settings)


def test_a_metric_scores_each_sample(load: Load) -> None:
    settings = load("metrics", "split, predictions: [0.5] * len(split)")
    assert settings.own_scores(split(2), np.zeros(2))["f"].tolist() == [0.5, 0.5]


@pytest.mark.parametrize("result", ["0.5", "[0.5]", "[0.5, 2.0]", "[0.5, float('nan')]", "'many'"])
def test_a_wrong_metric_is_named_with_its_line(result: str, load: Load) -> None:
    settings = load("metrics", f"split, predictions: {result}")
    with pytest.raises(PluginError, match=r"^mine\.py:4: `metrics = mine\.f` returns "):
        settings.own_scores(split(2), np.zeros(2))


def test_a_function_without_its_file_is_refused() -> None:
    with pytest.raises(RunError, match="`loss = focal` names no file: write the file before the function"):
        SETTINGS.changed(loss="focal").with_functions(Plugins(), "ctl", ())
    with pytest.raises(PluginError, match=r"add `--plugin mine\.py`"):
        SETTINGS.changed(loss="mine.focal").with_functions(Plugins(), "ctl", ())


# Optimizers

OPTIMIZERS = """\
import torch


def sgd(weights, lr, kind):
    return torch.optim.SGD(weights, lr=lr, nesterov=kind == "fast", momentum=0.9)


def nothing(weights, lr, kind):
    return None


def rateless(weights, lr, kind):
    return torch.optim.Optimizer(weights, {})


class Closed(torch.optim.SGD):
    def step(self, closure):
        return super().step(closure)


class Odd(torch.optim.SGD):
    def state_dict(self):
        return {**super().state_dict(), "odd": object()}


def closed(weights, lr, kind):
    return Closed(weights, lr=lr)


def odd(weights, lr, kind):
    return Odd(weights, lr=lr)


def broken(weights, lr, kind):
    raise RuntimeError("no luck")


class Forgetful(torch.optim.SGD):
    def load_state_dict(self, state):
        raise RuntimeError("forgotten")


def forgetful(weights, lr, kind):
    return Forgetful(weights, lr=lr)
"""


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plugins:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(OPTIMIZERS)
    return Plugins.read(["mine.py"])


def test_an_optimizer_gets_the_weights_and_its_statics_and_not_the_settings(plugins: Plugins) -> None:
    train = BoundExtern("own", "mine:sgd", {"lr": 0.5, "kind": "fast", "steps": 10, "schedule": "constant"})
    optimizer = make_optimizer(train, torch.nn.Linear(2, 2), plugins=plugins)
    assert (optimizer.defaults["lr"], optimizer.defaults["nesterov"]) == (0.5, True)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing", r"mine\.py:8: the optimizer `own` is a NoneType"),
        ("rateless", r"mine\.py:12: the optimizer `own` has a group of weights without `lr`"),
        ("closed", r"mine\.py:26: the optimizer `own` has a `step` that needs an argument"),
        (
            "odd",
            r"mine\.py:30: the optimizer `own` has a `state_dict` that a checkpoint cannot hold \(it holds object\)",
        ),
        ("broken", r"mine\.py:35 fails: RuntimeError: no luck"),
    ],
)
def test_a_wrong_optimizer_is_named_with_its_line(name: str, message: str, plugins: Plugins) -> None:
    train = BoundExtern("own", f"mine:{name}", {"lr": 0.5, "kind": "fast"})
    with pytest.raises(PluginError, match=message):
        make_optimizer(train, torch.nn.Linear(2, 2), plugins=plugins)


def test_an_optimizer_that_fails_to_load_its_state_is_named_with_its_line(plugins: Plugins) -> None:
    train = BoundExtern("own", "mine:forgetful", {"lr": 0.5, "kind": "fast"})
    optimizer = make_optimizer(train, torch.nn.Linear(2, 2), plugins=plugins)
    with pytest.raises(PluginError, match=r"mine\.py:40 fails: RuntimeError: forgotten"):
        restore_own_optimizer_state(optimizer, optimizer.state_dict())
