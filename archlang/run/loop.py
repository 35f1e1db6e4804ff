"""The training loop of one run: steps, evaluations, checkpoints, and a clean stop at any moment."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Protocol

import torch
from lightning_fabric import Fabric
from torch import Tensor, nn
from torch.optim import Optimizer

from archlang.run import mistakes
from archlang.run.checkpoint import Checkpoints, random_state, restore_random_state
from archlang.run.data import Data, Sampler
from archlang.run.record import Record
from archlang.run.schedules import first_beta, learning_rate
from archlang.run.score import Score, evaluate, forward, loss
from archlang.run.settings import Settings
from archlang.tasks.base import Split, Task

_LOGGED = 100


class Watcher(Protocol):
    """Whoever looks on: a progress bar, or nobody."""

    def step(self, step: int, total: int, loss: float, rate: float, depth: float | None) -> None: ...
    def scored(self, step: int, score: Score) -> None: ...


@dataclass
class Progress:
    """Where a run stands: what a checkpoint keeps beside weights and optimizer."""

    step: int = 0
    best: float | None = None
    best_step: int | None = None
    history: list[dict[str, Any]] = field(default_factory=list)  # Any: JSON


@dataclass
class Stop:
    """Whether someone asked the run to stop; a second time it is not asked politely any more."""

    asked: bool = False

    @contextmanager
    def listening(self) -> Iterator[Stop]:
        """Turns SIGINT and SIGTERM into a stop after the step at hand."""
        if threading.current_thread() is not threading.main_thread():
            yield self
            return

        def ask(number: int, frame: FrameType | None) -> None:
            if self.asked:
                raise KeyboardInterrupt
            self.asked = True

        before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


@dataclass(frozen=True)
class Trained:
    """How a run ended: at which step, whether it was stopped early, and which step's weights were the best."""

    step: int
    stopped: bool
    best_step: int | None


def make_optimizer(python: str, settings: Settings, module: nn.Module) -> Optimizer:
    """The optimizer that a recipe names."""
    parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
    betas = (settings.beta1, settings.beta2)
    match python:
        case "torch.optim:AdamW":
            return torch.optim.AdamW(
                parameters, lr=settings.lr, betas=betas, eps=settings.epsilon, weight_decay=settings.weight_decay
            )
        case "torch.optim:Adam":
            return torch.optim.Adam(
                parameters, lr=settings.lr, betas=betas, eps=settings.epsilon, weight_decay=settings.weight_decay
            )
        case "torch.optim:RMSprop":
            return torch.optim.RMSprop(
                parameters,
                lr=settings.lr,
                alpha=settings.alpha,
                eps=settings.epsilon,
                weight_decay=settings.weight_decay,
                momentum=settings.momentum,
            )
    raise ValueError(f"no optimizer is {python}")


class Training:
    """One run that trains; everything it depends on is handed in."""

    def __init__(
        self,
        fabric: Fabric,
        module: nn.Module,
        at_test: nn.Module,
        optimizer: str,
        settings: Settings,
        task: Task,
        splits: Mapping[str, Split],
        record: Record,
        seed: int,
        watcher: Watcher,
    ) -> None:
        self.settings = settings
        self.task = task
        self.record = record
        self.watcher = watcher
        self.module = module
        self.at_test = at_test
        self._fabric = fabric
        made = make_optimizer(optimizer, settings, module)
        self._model, self._optimizer = fabric.setup(module, made)
        if at_test is not module:
            at_test.to(fabric.device)
        selecting, self._metric = settings.selecting
        self._splits = dict(splits)
        self._selecting = selecting
        self._train = Data(splits["train"], fabric.device)
        self._valid = Data(splits[selecting], fabric.device)
        self._sampler = Sampler(self._train.lengths, settings.batch, seed)
        self._checkpoints = Checkpoints(record.folder / "checkpoints")
        self.progress = Progress()
        self.total = settings.total_steps(self._train.size)
        self._interval = settings.interval(self.total)
        self._logged = max(self.total // _LOGGED, 1)

    def resume(self) -> bool:
        """Goes back to the newest whole checkpoint; False if there is none."""
        saved = self._checkpoints.latest()
        if saved is None:
            self.record.cut({})
            return False
        self.module.load_state_dict(dict(saved.weights))
        state = saved.state
        self._optimizer.load_state_dict(state["optimizer"])
        restore_random_state(state["random"])
        self._sampler = Sampler(
            self._train.lengths, self.settings.batch, self._sampler.seed, state["epoch"], state["position"]
        )
        self.progress = Progress(saved.step, state["best"], state["best_step"], list(state["history"]))
        self.record.cut(state["sizes"])
        return True

    def run(self, stop: Stop) -> Trained:
        """Trains to the end, or until it is asked to stop; either way the last step has a checkpoint."""
        progress = self.progress
        self.module.train()
        began, begun_at = time.perf_counter(), progress.step
        while progress.step < self.total and not stop.asked:
            value, norm, rate = self._step(progress.step)
            progress.step += 1
            step = progress.step
            speed = (step - begun_at) / max(time.perf_counter() - began, 1e-9)
            if step % self._logged == 0 or step == self.total:
                self._log(step, value, norm, rate, speed)
            if step % self._interval == 0 or step == self.total:
                self._look(step)
                self._save()
        if stop.asked and progress.step not in self._checkpoints.steps():
            self._save()
        return Trained(progress.step, stop.asked and progress.step < self.total, progress.best_step)

    def _step(self, step: int) -> tuple[Tensor, Tensor | None, float]:
        """One step of the optimizer; the loss, the gradient's norm if it was clipped, and the learning rate."""
        settings = self.settings
        rate = learning_rate(settings, step, self.total)
        for group in self._optimizer.param_groups:
            group["lr"] = rate
            if "betas" in group:
                group["betas"] = (first_beta(settings, step, self.total), group["betas"][1])
        batch = self._train.batch(self._sampler.next())
        value = loss(forward(self._model, batch), batch)
        whole = value
        if settings.ponder:
            ponder = self.module.ponder
            assert isinstance(ponder, Tensor)
            whole = value + settings.ponder * ponder
        self._optimizer.zero_grad(set_to_none=True)
        self._fabric.backward(whole)
        norm = None
        if settings.clip_value:
            self._fabric.clip_gradients(self._model, self._optimizer, clip_val=settings.clip_value)
        if settings.clip:
            norm = self._fabric.clip_gradients(
                self._model, self._optimizer, max_norm=settings.clip, error_if_nonfinite=False
            )
        self._optimizer.step()
        return value.detach(), norm, rate

    def _log(self, step: int, value: Tensor, norm: Tensor | None, rate: float, speed: float) -> None:
        number = float(value)
        if not torch.isfinite(value):
            raise mistakes.not_finite(step, self._checkpoints.folder)
        depth = getattr(self.module, "mean_depth", None)
        mean_depth = None if depth is None else float(depth)
        line = {"step": step, "loss": number, "lr": rate}
        if norm is not None:
            line["gradient_norm"] = float(norm)
        if mean_depth is not None:
            line["mean_depth"] = mean_depth
        self.record.append("metrics.jsonl", line)
        self.record.append("timings.jsonl", {"step": step, "time": time.time(), "steps_per_second": speed})
        self.record.scalars(step, {f"train/{name}": number for name, number in line.items() if name != "step"})
        self.watcher.step(step, self.total, number, speed, mean_depth)

    def tested(self) -> nn.Module:
        """The module that is tested, with the weights of the one that is trained."""
        if self.at_test is not self.module:
            self.at_test.load_state_dict(self.module.state_dict())
        return self.at_test

    def _look(self, step: int) -> None:
        """Measures the selecting metric; the latest of equal values is the best."""
        score = evaluate(self.tested(), self._valid, self._splits[self._selecting], self._selecting, self.task)
        self.module.train()
        line = {"step": step, "split": score.split, "loss": score.loss, **score.metrics}
        self.record.append("metrics.jsonl", line)
        self.record.scalars(step, {f"{score.split}/{name}": value for name, value in score.metrics.items()})
        self.progress.history.append(line)
        value = score.metrics[self._metric]
        if self.progress.best is None or value >= self.progress.best:
            self.progress.best, self.progress.best_step = value, step
        self.watcher.scored(step, score)

    def _save(self) -> None:
        progress = self.progress
        state = {
            "optimizer": self._optimizer.state_dict(),
            "random": random_state(),
            "epoch": self._sampler.epoch,
            "position": self._sampler.position,
            "best": progress.best,
            "best_step": progress.best_step,
            "history": progress.history,
            "sizes": self.record.sizes(),
        }
        self._checkpoints.save(progress.step, self.module, state, progress.best_step)

    def restore_best(self) -> None:
        """Puts the selected weights into the module."""
        best = self.progress.best_step
        if best is not None and best in self._checkpoints.steps():
            self.module.load_state_dict(dict(self._checkpoints.read(best).weights))
