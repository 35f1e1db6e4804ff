"""`optimizers.arch` declares the training settings; schedules and losses are their papers' formulas."""

import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.optim import AdamW, Optimizer
from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, LinearLR, LRScheduler, OneCycleLR, SequentialLR

import archlang
from archlang.plan.check import check_text
from archlang.plan.plan import BoundExtern
from archlang.plugins import PluginError, Plugins
from archlang.resolve import library
from archlang.syntax.printer import unparse
from archlang.tasks.kit.split import Split, TargetForm
from archlang.train.data import Batch
from archlang.train.loss import mean_loss
from archlang.train.optimizers import make_optimizer, restore_own_optimizer_state
from archlang.train.record.mistakes import RunError
from archlang.train.settings import Settings, is_setting, stablemax_entropy
from tests.train.settings_of_a_run import SETTINGS, settings_with


def recipe(training: str) -> str:
    return f"""
model tiny(x: tokens[n]) -> logits[classes] {{ return embed[8](x) |> mean |> linear[classes] }}
recipe tiny {{
    task  ctl
    model tiny
    train {training}
}}
"""


def test_settings_are_those_that_are_declared_with_their_defaults() -> None:
    for static in library.training_settings().signature.statics:
        value = getattr(SETTINGS, static.name)
        kind = {"bool": bool, "float": float, "int": int, "list": tuple}.get(str(static.kind), str)
        assert isinstance(value, kind), static.name
    with pytest.raises(AttributeError, match="no setting 'beauty'"):
        SETTINGS.beauty  # noqa: B018


def test_the_documentation_lists_every_setting_with_its_default() -> None:
    page = (Path(archlang.__file__).parent.parent / "docs" / "language.md").read_text(encoding="utf-8")
    rows = re.findall(r'^\| `(\w+)` \| `([\w."\[\]]+)` \|', page, flags=re.MULTILINE)
    statics = library.training_settings().signature.statics
    assert rows == [(static.name, unparse(static.default)) for static in statics if static.default is not None]


@pytest.mark.parametrize("name", sorted(library.optimizer_names()))
def test_every_optimizer_has_all_training_settings_and_a_learning_rate(name: str) -> None:
    optimizer = library.optimizer(name)
    assert optimizer is not None
    declared = {static.name for static in library.training_settings().signature.statics}
    assert {"lr", *declared} <= {static.name for static in optimizer.signature.statics}


def test_statics_of_the_optimizer_are_no_settings() -> None:
    assert not is_setting("weight_decay")
    assert all(map(is_setting, ("lr", "batch", "losses.balance")))


@pytest.mark.parametrize("optimizer", sorted(library.optimizer_names()))
@pytest.mark.parametrize(
    ("setting", "code"),
    [
        ("lr = 0.0", "E0304"), ("batch = 0", "E0304"), ("schedule = triangle", "E0304"), ("batch = 2.5", "E0303"),
        ("speed = 3", "E0301"), ("clip = -1.0", "E0304"), ("cooldown = 1.5", "E0304"),
    ],
)  # fmt: skip
def test_a_setting_that_means_nothing_is_named(optimizer: str, setting: str, code: str) -> None:
    (diagnostic,) = check_text(recipe(f"{optimizer}[{setting}, steps = 1]"))
    assert diagnostic.code == code
    assert setting.split(" ")[0] in diagnostic.message


@pytest.mark.parametrize(
    ("training", "message"),
    [
        ("adamw[ema = 1.0, steps = 1]", "ema"),
        ("adamw[ema = -0.1, steps = 1]", "ema"),
        ("schedule_free[ema = 0.9, steps = 10]", "ema == 0"),  # it keeps an average of its own
        ("adamw", "steps > 0 or epochs > 0"),
    ],
)
def test_bounds_that_settings_or_optimizers_state_are_checked(training: str, message: str) -> None:
    (diagnostic,) = check_text(recipe(training))
    assert diagnostic.code == "E0304"
    assert message in diagnostic.message


@pytest.mark.parametrize("optimizer", sorted(library.optimizer_names()))
def test_onecycle_needs_an_optimizer_with_betas(optimizer: str) -> None:
    diagnostics = check_text(recipe(f"{optimizer}[schedule = onecycle, warmup = 1, steps = 10]"))
    assert bool(diagnostics) is (optimizer not in ("adam", "adamw"))


def test_epochs_count_whole_batches() -> None:
    by_epochs = settings_with(steps=0, epochs=3)
    assert by_epochs.total_steps(batches=3) == 9
    assert by_epochs.total_steps(batches=1) == 3
    assert settings_with(epochs=3).total_steps(batches=3) == 100


def test_a_run_is_evaluated_ten_times_or_with_patience_after_each_epoch() -> None:
    by_epochs = settings_with(steps=0, epochs=100, patience=10)
    for settings, total, batches, every in (
        (SETTINGS, 1000, 50, 100), (SETTINGS, 3, 50, 1), (settings_with(patience=10), 1000, 50, 100),
        (by_epochs, 300, 3, 3),
    ):  # fmt: skip
        assert settings.evaluated_every(total, batches) == every
        assert settings_with(settings, every=7).evaluated_every(total, batches) == 7


def test_a_long_run_logs_its_loss_as_often_as_a_short_one() -> None:
    assert [SETTINGS.logged_every(total) for total in (10, 500, 1_000_000)] == [1, 5, 100]


PEAK = 0.05


def settings(**changes: Any) -> Settings:
    return settings_with(**{"lr": PEAK, **changes})


def warmup(optimizer: Optimizer, steps: int) -> LinearLR:
    return LinearLR(optimizer, start_factor=1 / steps, total_iters=steps - 1)


# Theirs, for 60 steps with a warm-up of 10.
THEIRS: dict[str, Callable[[Optimizer], LRScheduler]] = {
    "warmup": lambda optimizer: warmup(optimizer, 10),
    "cosine": lambda optimizer: SequentialLR(
        optimizer, [warmup(optimizer, 10), CosineAnnealingLR(optimizer, T_max=50)], milestones=[10]
    ),
    "root": lambda optimizer: LambdaLR(optimizer, lambda step: min(1, (step + 1) / 10) / math.sqrt(max(step + 1, 10))),
    "onecycle": lambda optimizer: OneCycleLR(
        optimizer, PEAK, total_steps=60, pct_start=10 / 60, anneal_strategy="linear"
    ),
    "constant": lambda optimizer: LambdaLR(optimizer, lambda step: 1.0),
}


@pytest.mark.parametrize("name", THEIRS)
# torch's SequentialLR calls its parts with a step number, which torch itself warns of.
@pytest.mark.filterwarnings("ignore:The epoch parameter")
def test_a_schedule_is_that_of_torch(name: str) -> None:
    ours = settings(schedule=name, warmup=0 if name == "constant" else 10)
    optimizer = AdamW([torch.nn.Parameter(torch.zeros(1))], lr=PEAK)
    theirs = THEIRS[name](optimizer)
    for step in range(60):
        group = optimizer.param_groups[0]
        assert ours.learning_rate(step, 60) == pytest.approx(group["lr"]), step
        beta1 = ours.first_beta(step, 60) if ours.moves_first_beta else 0.9
        assert beta1 == pytest.approx(group["betas"][0]), step
        optimizer.step()
        if step < 59:
            theirs.step()


@pytest.mark.parametrize(
    ("lr", "steps", "peak"),
    [(0.05, 1000, 1.58e-3), (0.0125, 8000, 1.40e-4), (0.05, 8000, 5.6e-4), (0.025, 8000, 2.8e-4)],
)
def test_the_published_rates_of_root_have_the_published_peaks(lr: float, steps: int, peak: float) -> None:
    root = settings(lr=lr, schedule="root", warmup=steps)
    rates = [root.learning_rate(step, 10 * steps) for step in range(2 * steps)]
    assert max(rates) == rates[steps - 1] == pytest.approx(peak, rel=0.01)


def test_wsd_warms_up_stays_and_falls_linearly_to_zero() -> None:
    wsd = settings(schedule="wsd", warmup=4, cooldown=0.25)
    rates = [wsd.learning_rate(step, 20) / PEAK for step in range(20)]
    assert rates == pytest.approx([0.25, 0.5, 0.75, *[1.0] * 13, 0.8, 0.6, 0.4, 0.2])


@pytest.mark.parametrize("name", [*THEIRS, "wsd"])
@pytest.mark.parametrize(("steps", "total"), [(0, 1), (0, 7), (1, 1), (1, 7), (7, 7), (50, 7)])
def test_every_length_of_run_has_a_rate_at_every_step(name: str, steps: int, total: int) -> None:
    ours = settings(schedule=name, warmup=steps)
    rates = [ours.learning_rate(step, total) for step in range(total)]
    assert all(0 <= rate <= PEAK * 1.000001 for rate in rates)


def slow_entropy(logits: list[float], target: int) -> float:
    s = [x + 1 if x >= 0 else 1 / (1 - x) for x in logits]
    return -math.log(s[target] / sum(s))


def test_the_loss_is_that_of_the_definition() -> None:
    logits = torch.tensor([[2.0, -3.0, 0.0], [-1.0, -0.5, 7.0]], dtype=torch.float64, requires_grad=True)
    targets = torch.tensor([1, 2])
    losses = stablemax_entropy(logits, targets)
    expected = [slow_entropy(row, target) for row, target in zip(logits.tolist(), targets.tolist(), strict=True)]
    assert losses.tolist() == pytest.approx(expected, rel=1e-12)
    assert torch.autograd.gradcheck(lambda x: stablemax_entropy(x, targets), logits)


def test_large_logits_have_a_finite_loss_and_gradient() -> None:
    logits = torch.tensor([[3e4, -3e4], [torch.finfo().min, 1.0]], requires_grad=True)
    losses = stablemax_entropy(logits, torch.tensor([1, 1]))
    (gradient,) = torch.autograd.grad(losses.sum(), logits)
    assert losses.dtype is torch.float32
    assert bool(losses.isfinite().all())
    assert bool(gradient.isfinite().all())


def test_a_recipe_with_stablemax_scores_with_it() -> None:
    settings = settings_with(loss="stablemax")
    logits = torch.tensor([[[2.0, -3.0], [0.5, 1.0]]])
    scored = batch(torch.tensor([[0, 1]]), torch.tensor([[False, True]]))
    assert float(mean_loss(logits, scored, settings=settings)) == pytest.approx(slow_entropy([0.5, 1.0], 1), rel=1e-5)
    with pytest.raises(RunError, match="sets"):
        mean_loss(logits, replace(scored, form=TargetForm.SETS), settings=settings)


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
        settings = settings_with(**{setting: value})
        return settings.with_functions(Plugins.read([tmp_path / "mine.py"]), "ctl", ("accuracy",))

    return loaded


def batch(targets: Tensor, scored: Tensor | None = None) -> Batch:
    form = TargetForm.CLASSES if targets.ndim == 1 else TargetForm.POSITIONS
    return Batch(torch.arange(len(targets)), {}, {}, targets, scored, form)


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
        form=TargetForm.NUMBERS,
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
        settings_with(loss="focal").with_functions(Plugins(), "ctl", ())
    with pytest.raises(PluginError, match=r"add `--plugin mine\.py`"):
        settings_with(loss="mine.focal").with_functions(Plugins(), "ctl", ())


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
