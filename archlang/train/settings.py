"""How a run is trained: the settings that optimizers.arch declares, and the user's functions that some of them name."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from archlang.graph.operations import LOSSES
from archlang.plan.recipe import RATES
from archlang.plan.rules import EVALUATIONS, SHIPPED
from archlang.plugins import Plugins
from archlang.plugins.plugins import PluginFunction
from archlang.resolve import library
from archlang.tasks.kit.metrics import WRITTEN_METRICS
from archlang.tasks.kit.split import Reals, Split, TargetForm
from archlang.train import mistakes
from archlang.types.statics import StaticValue, Symbol

_POINTS = 100  # about this many points has a curve
# Long runs log at least every so many steps.
_MOST_STEPS_BETWEEN_LOGS = 100


@dataclass(frozen=True)
class Settings:
    """The training settings of a run as attributes, such as `settings.batch`, and the formulas of its schedule.

    `optimizers.arch` alone declares them: `extern settings training` has their types, defaults, bounds and meanings,
    and every optimizer declares `lr`. Their values are the statics of an optimizer, which have passed its signature."""

    statics: Mapping[str, StaticValue]
    functions: Mapping[str, PluginFunction] = field(default_factory=dict)
    """the user's own `rate` and `loss`"""
    own_metrics: Mapping[str, PluginFunction] = field(default_factory=dict)
    """by the name of the metric, which is that of the function"""

    def __getattr__(self, name: str) -> Any:  # Any: of the type that the signature declares
        if name.startswith("_") or name not in self.statics:
            raise AttributeError(f"there is no setting {name!r}")
        return plain_value(self.statics[name])

    def with_functions(self, plugins: Plugins, task: str, metrics: Sequence[str]) -> Settings:
        """Returns the settings with the functions of plugins that `rate`, `loss` and `metrics` name, for a task with
        these metrics."""
        functions = {
            setting: _function(setting, path, plugins)
            for setting, path in (("rate", self.rate), ("loss", self.loss))
            if path not in SHIPPED[setting]
        }
        own_metrics: dict[str, PluginFunction] = {}
        for path in self.metrics:
            name = path.rpartition(".")[2]
            if name in own_metrics:
                raise mistakes.same_metrics(name)
            if name in (*metrics, *WRITTEN_METRICS, "loss"):
                raise mistakes.metric_twice(name, task)
            own_metrics[name] = _function("metrics", path, plugins)
        return replace(self, functions=functions, own_metrics=own_metrics)

    # Steps

    def total_steps(self, batches: int) -> int:
        """The steps of a run with `batches` batches an epoch."""
        return int(self.steps or self.epochs * batches)

    def evaluated_every(self, total: int, batches: int) -> int:
        """The number of steps from one evaluation of the selecting metric to the next, in a run of `total` steps with
        `batches` batches an epoch."""
        by_epoch = self.patience > 0 and not self.steps
        return int(self.every or (batches if by_epoch else max(total // EVALUATIONS, 1)))

    def logged_every(self, total: int) -> int:
        """The number of steps from one point of the curves to the next."""
        return min(max(total // _POINTS, 1), _MOST_STEPS_BETWEEN_LOGS)

    @property
    def selecting(self) -> tuple[str, str]:
        """The split and the metric that choose the weights."""
        split, _, metric = self.select.partition(".")
        return split, metric

    # Schedules. The formulas are those of the papers' programs; `optimizers.arch` lists them.

    def learning_rate(self, step: int, total: int) -> float:
        """The learning rate of step `step` (from 0) of `total`."""
        if (own := self.functions.get("rate")) is not None:
            rate = own(step, total, self.lr)
            if isinstance(rate, bool) or not isinstance(rate, int | float) or not (math.isfinite(rate) and rate >= 0):
                raise own.wrong(f"returns {rate!r} at step {step}", "return a finite number of 0 or more")
            return float(rate)
        peak, warmup = float(self.lr), int(self.warmup)
        rising = min(1.0, (step + 1) / warmup) if warmup else 1.0
        match self.schedule:
            case "warmup":
                return peak * rising
            case "root":
                return peak * rising / math.sqrt(max(step + 1, warmup, 1))
            case "cosine":
                fraction = (step - warmup) / max(total - warmup, 1)
                return peak * rising * 0.5 * (1 + math.cos(math.pi * (max(fraction, 0.0) % 1.0)))
            case "wsd":
                cooldown = float(self.cooldown) * total
                return peak * rising * min(1.0, (total - step) / max(cooldown, 1.0))
            case "onecycle":
                return _cycle(step, warmup, total, peak / 25, peak, peak / 250_000)
        return peak

    @property
    def moves_first_beta(self) -> bool:
        """Whether Adam's beta1 changes from step to step."""
        return bool(self.schedule == "onecycle")

    def first_beta(self, step: int, total: int) -> float:
        """Adam's beta1 of a step under `onecycle`, which moves it against the learning rate as torch's OneCycleLR."""
        return _cycle(step, self.warmup, total, 0.95, 0.85, 0.95)

    # Losses and metrics in place of the task's

    def own_losses(
        self, logits: Float[Tensor, "..."], targets: Shaped[Tensor, "..."], form: TargetForm
    ) -> Float[Tensor, "..."] | None:
        """Returns a loss for each sample, [b], for each position, [b n], or for the begin and the end of each span, [b
        2]; None if the task has the loss."""
        if str(self.statics.get("loss")) == "stablemax":
            if form in (TargetForm.SETS, TargetForm.NUMBERS):
                raise mistakes.no_stablemax()
            return stablemax_entropy(logits.float(), targets)
        own = self.functions.get("loss")
        if own is None:
            return None
        losses = own(logits.float(), targets)
        shape = targets.shape[:-1] if form in (TargetForm.SETS, TargetForm.NUMBERS) else targets.shape
        if not isinstance(losses, Tensor) or losses.shape != shape or not losses.is_floating_point():
            raise own.wrong(
                f"returns {_described(losses)} for targets {list(targets.shape)}",
                f"return a tensor of floats {list(shape)}, not reduced",
            )
        if torch.is_grad_enabled() and logits.requires_grad and not losses.requires_grad:
            raise own.wrong("does not depend on the logits", "compute it from them, without `detach`")
        return losses

    def own_scores(self, split: Split, predictions: np.ndarray) -> dict[str, Reals]:
        """Returns the scores [N] of each metric of the user's own."""
        return {name: _scores(function, split, predictions) for name, function in self.own_metrics.items()}


NO_SETTINGS = Settings({})
"""Those of an evaluation that uses neither a loss nor a metric of a recipe."""


def plain_value(value: StaticValue) -> object:
    """Returns a static as a Python value: a word as a string."""
    if isinstance(value, tuple):
        return tuple(map(plain_value, value))
    return str(value) if isinstance(value, Symbol) else value


def is_setting(name: str) -> bool:
    """Whether a static of an optimizer is a training setting; `lr` is of both."""
    names = (static.name for static in library.training_settings().signature.statics)
    return name in ("lr", *names) or name.startswith((LOSSES, RATES))


def stablemax_entropy(logits: Float[Tensor, "*b k"], targets: Int[Tensor, " *b"]) -> Float[Tensor, " *b"]:
    """Returns the cross entropy of stablemax for each prediction, computed in 64 bits where the device has them:

        -log(s(x_y) / Σ_c s(x_c)),    s(x) = x + 1 if x >= 0, else 1 / (1 - x)

    Prieto et al., "Grokking at the edge of numerical stability", 2025; the programs of HRM and TRM."""
    wide = logits if logits.device.type == "mps" else logits.double()
    s = torch.where(wide >= 0, wide.clamp(min=0) + 1, 1 / (1 - wide.clamp(max=0)))
    p = s.gather(-1, targets[..., None])[..., 0] / s.sum(-1)
    return -p.log().to(logits.dtype)


def _cycle(step: int, warmup: int, total: int, start: float, middle: float, end: float) -> float:
    """Linear from `start` to `middle` at the end of the warm-up, then to `end` at the last step."""
    top, last = max(warmup - 1, 0), max(total - 1, 1)
    if step <= top and top > 0:
        return start + (middle - start) * step / top
    return middle + (end - middle) * min((step - top) / max(last - top, 1), 1.0)


def _function(setting: str, name: str, plugins: Plugins) -> PluginFunction:
    module, _, attribute = name.rpartition(".")
    if not module:
        raise mistakes.no_function(setting, name)
    return PluginFunction.load(plugins, f"{module}:{attribute}", f"`{setting} = {name}`")


def _described(result: object) -> str:
    if isinstance(result, Tensor):
        kind = "floats" if result.is_floating_point() else str(result.dtype).removeprefix("torch.")
        return f"{kind} {list(result.shape)}"
    return f"a {type(result).__name__}"


def _scores(function: PluginFunction, split: Split, predictions: np.ndarray) -> Reals:
    result = function(split, predictions)
    try:
        scores = np.asarray(result, dtype=np.float64)
    except (TypeError, ValueError):
        raise function.wrong(f"returns a {type(result).__name__}", "return a score for each sample") from None
    if scores.shape != (len(split),):
        raise function.wrong(
            f"returns an array {list(scores.shape)} for {len(split)} samples", f"return scores [{len(split)}]"
        )
    outside = ~((scores >= 0) & (scores <= 1))  # also of NaN
    if outside.any():
        raise function.wrong(f"returns {scores[outside][0]} for a sample", "return scores between 0 and 1")
    return scores
