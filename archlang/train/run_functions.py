"""Functions of the user's own in a run: the learning rate, the loss and metrics, with what they must return."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from archlang.plan.rules import SHIPPED
from archlang.plugins import Plugins
from archlang.plugins.functions import PluginFunction
from archlang.tasks.kit.ragged import Reals
from archlang.tasks.kit.split import Form, Split
from archlang.train import mistakes
from archlang.train.data import Batch
from archlang.train.settings import Settings
from archlang.train.stablemax import stablemax_losses


@dataclass(frozen=True)
class RunFunctions:
    """The functions that the settings `rate`, `loss` and `metrics` name."""

    rate: PluginFunction | None = None
    loss: PluginFunction | None = None
    has_stablemax: bool = False
    """whether the loss is the cross entropy of stablemax"""
    metrics: Mapping[str, PluginFunction] = field(default_factory=dict)
    """by the name of the metric, which is that of the function"""

    @staticmethod
    def load(settings: Settings, plugins: Plugins) -> RunFunctions:
        """Returns the functions of a run.

        Raises:
            PluginError: a function is in no plugin, or its file cannot be imported.
            RunError: a setting is not the name of a function in a file, or two metrics have the same name."""
        names = [name.rpartition(".")[2] for name in settings.metrics]
        for name in names:
            if names.count(name) > 1:
                raise mistakes.same_metrics(name)
        return RunFunctions(
            None if settings.rate == "none" else _function("rate", settings.rate, plugins),
            None if settings.loss in SHIPPED["loss"] else _function("loss", settings.loss, plugins),
            settings.loss == "stablemax",
            {name: _function("metrics", path, plugins) for name, path in zip(names, settings.metrics, strict=True)},
        )

    def learning_rate(self, settings: Settings, step: int, total: int) -> float | None:
        """Returns the learning rate of a step, from 0; None if the schedule has it."""
        if self.rate is None:
            return None
        rate = self.rate(step, total, settings.lr)
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not (math.isfinite(rate) and rate >= 0):
            raise self.rate.wrong(f"returns {rate!r} at step {step}", "return a finite number of 0 or more")
        return float(rate)

    def losses(self, logits: Float[Tensor, "..."], batch: Batch) -> Float[Tensor, "..."] | None:
        """Returns a loss for each sample, [b], or for each position, [b n]; None if the task has the loss.

        Raises:
            RunError: stablemax has no loss for this form of answers."""
        if self.has_stablemax:
            return stablemax_losses(logits.float(), batch)
        if self.loss is None:
            return None
        losses = self.loss(logits.float(), batch.targets)
        targets = batch.targets
        shape = targets.shape[:-1] if batch.form in (Form.SETS, Form.NUMBERS) else targets.shape
        if not isinstance(losses, Tensor) or losses.shape != shape or not losses.is_floating_point():
            got = _described(losses)
            raise self.loss.wrong(
                f"returns {got} for targets {list(targets.shape)}",
                f"return a tensor of floats {list(shape)}, not reduced",
            )
        if torch.is_grad_enabled() and logits.requires_grad and not losses.requires_grad:
            raise self.loss.wrong("does not depend on the logits", "compute it from them, without `detach`")
        return losses

    def judge(self, split: Split, predictions: np.ndarray) -> dict[str, Reals]:
        """Returns the scores [N] of each metric."""
        return {name: _scores(function, split, predictions) for name, function in self.metrics.items()}


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


def _function(setting: str, name: str, plugins: Plugins) -> PluginFunction:
    module, _, attribute = name.rpartition(".")
    if not module:
        raise mistakes.no_function(setting, name)
    return PluginFunction.load(plugins, f"{module}:{attribute}", f"`{setting} = {name}`")


NO_FUNCTIONS = RunFunctions()
