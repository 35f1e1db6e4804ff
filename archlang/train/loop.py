"""The training loop of one run: steps, evaluations, checkpoints, and a clean stop at any moment."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from lightning_fabric import Fabric
from torch import Tensor, nn
from torch.optim import Optimizer

from archlang.backend.runtime.loops import halting_loops
from archlang.record import mistakes as record_mistakes
from archlang.record.checkpoint import Checkpoints
from archlang.record.run_folder import Record
from archlang.record.schemas import (
    METRICS,
    TIMINGS,
    CheckpointState,
    EvaluationMetrics,
    EvaluationTiming,
    StepMetrics,
    StepTiming,
)
from archlang.tasks.kit.metrics import rank
from archlang.tasks.kit.split import Split
from archlang.tasks.kit.task import Task, loss_rule
from archlang.train import mistakes
from archlang.train.data import Batch, Data, Sampler
from archlang.train.devices import is_out_of_memory
from archlang.train.generators import random_state, restore_random_state
from archlang.train.optimizers import make_capturable
from archlang.train.schedules import first_beta, learning_rate, moves_first_beta
from archlang.train.score import Interrupted, Score, evaluate, forward, loss
from archlang.train.selection import ranking
from archlang.train.settings import Settings
from archlang.train.step.cuda_graph import Capture, Graphs, Told
from archlang.train.stop import Stop

# Splits that are measured while a run goes on.
_VALIDATION = ("iid", "valid")


class MemoryWarning(UserWarning):
    """Fewer samples go through the model at a time, for want of memory."""


class Watcher(Protocol):
    """Whoever looks on: a progress bar, or nobody. It is told of the steps that are logged, and of others when due."""

    def due(self) -> bool: ...
    def step(
        self, step: int, total: int, loss: float, rate: float, depth: float | None, spared: float | None = None
    ) -> None: ...
    def scored(self, step: int, score: Score) -> None: ...


@dataclass
class Progress:
    """Where a run stands: what a checkpoint keeps beside weights and optimizer."""

    step: int = 0
    looked: int = 0
    """the last step at which the selecting metric was measured"""
    best: float | None = None
    best_step: int | None = None
    history: list[EvaluationMetrics] = field(default_factory=list)


@dataclass(frozen=True)
class Trained:
    """How a run ended: at which step, and whether it was stopped before its end."""

    step: int
    stopped: bool


class Training:
    """One run that trains; everything it depends on is handed in."""

    def __init__(
        self,
        fabric: Fabric,
        module: nn.Module,
        at_test: nn.Module,
        optimizer: Optimizer,
        settings: Settings,
        task: Task,
        splits: Mapping[str, Split],
        record: Record,
        seed: int,
        watcher: Watcher,
        placed: dict[str, Data] | None = None,
    ) -> None:
        """`placed` are splits that are on the device already: runs of the same data share them."""
        self.settings = settings
        self.task = task
        self.record = record
        self.watcher = watcher
        self.module = module
        self.at_test = at_test
        self.fabric = fabric
        self._model, self.optimizer = fabric.setup(module, optimizer)
        self._graphs: Graphs | None = None
        if at_test is not module:
            at_test.to(fabric.device)
        self._selecting, self._metric = settings.selecting
        self.rule = loss_rule(task)
        # Beside what selects, what tells whether a model fits, and whether it generalizes.
        watched = (self._selecting, *(name for name in _VALIDATION if name in splits and len(splits[name])))
        self._watched = tuple(dict.fromkeys(watched))
        self._splits = dict(splits)
        self._placed = {} if placed is None else placed
        for name in ("train", *self._watched):
            if name not in self._placed:
                self._placed[name] = Data(splits[name], fabric.device)
        self.trained_on = self._placed["train"]
        self.sampler = self._make_sampler(seed)
        self.checkpoints = Checkpoints(record.folder / "checkpoints")
        # What a checkpoint keeps of them; a run that is trained together with others has its part of theirs.
        self.optimizer_state: Callable[[], dict[str, Any]] = self.optimizer.state_dict  # Any: as torch's
        self.random: Callable[[], dict[str, Any]] = lambda: random_state(fabric.device)  # Any: as random_state
        self.progress = Progress()
        self.total = settings.total_steps(len(self.sampler))
        # How many samples go through the model at a time; fewer once the memory has not sufficed.
        self.micro = settings.micro or None
        self._interval = settings.evaluated_every(self.total)
        self._logged = settings.logged_every(self.total)
        # Losses that nobody has looked at yet: a GPU is waited for only where one of them is shown or kept.
        self._unseen: list[Tensor] = []
        self._weights = [weight for weight in module.parameters() if weight.requires_grad]
        self._seconds, self._timed = 0.0, 0
        self._leads = fabric.is_global_zero
        if fabric.world_size > settings.batch and settings.batch_of == "samples":
            raise mistakes.batch_too_small(settings.batch, fabric.world_size)

    def use_graphs(self, capture: Capture) -> None:
        """Has steps launched as CUDA graphs; before the run begins or goes on."""
        make_capturable(self.optimizer, self.fabric.device, moves_first_beta(self.settings))
        self._graphs = Graphs(capture)

    # Beginning and going on

    def resume(self, step: int | None = None) -> bool:
        """Goes back to the newest whole checkpoint, or to that of a step; False if there is none.

        Raises:
            RunError: there are checkpoints, but all of them are damaged."""
        saved = self.checkpoints.latest() if step is None else self.checkpoints.first_intact([step])
        if saved is None:
            if self.checkpoints.steps():
                raise record_mistakes.no_whole_checkpoint(self.checkpoints.folder)
            if self._leads:
                self.record.truncate({})
            return False
        state = saved.state
        saved.load_into(self.module)
        # How the optimizer computes is this process's affair; it may differ from that of the one before.
        self.optimizer.load_state_dict({**self.optimizer.state_dict(), "state": state.optimizer["state"]})
        self.fabric.strategy.precision.load_state_dict(state.precision)
        restore_random_state(state.random, self.fabric.device)
        self.sampler = self._make_sampler(self.sampler.seed, state.epoch, state.position)
        self.micro = state.micro
        self.progress = Progress(saved.step, state.looked, state.best, state.best_step, list(state.history))
        if self._leads:
            self.checkpoints.remove_after(saved.step)
            self.record.truncate(state.sizes, saved.step)
        return True

    def _make_sampler(self, seed: int, epoch: int = 0, position: int = 0) -> Sampler:
        settings = self.settings
        return Sampler(
            self.trained_on.lengths, settings.batch, seed, epoch, position, tokens=settings.batch_of == "tokens"
        )

    def save(self) -> None:
        """Writes a checkpoint, unless the weights are not numbers any more: those of before are worth more."""
        self._see()
        progress = self.progress
        if not all(bool(weight.isfinite().all()) for weight in self._weights):
            raise mistakes.not_finite("weights are not numbers", progress.step, self._last_checkpoint())
        if not self._leads:
            return
        state = CheckpointState(
            optimizer=self.optimizer_state(),
            precision=self.fabric.strategy.precision.state_dict(),
            random=self.random(),
            epoch=self.sampler.epoch,
            position=self.sampler.position,
            micro=self.micro,
            looked=progress.looked,
            best=progress.best,
            best_step=progress.best_step,
            history=tuple(progress.history),
            sizes=self.record.sizes(),
        )
        self.checkpoints.save(progress.step, self.module, state, progress.best_step)

    def _last_checkpoint(self) -> int | None:
        return max(self.checkpoints.steps(), default=None)

    # Training

    def run(self, stop: Stop) -> Trained:
        """Trains to the end, or until it is asked to stop; either way the last step has a checkpoint."""
        progress = self.progress
        self.module.train()
        try:
            while not self._is_asked(stop):
                self.look_if_due(stop)
                if progress.step >= self.total:
                    return Trained(progress.step, stopped=False)
                self._advance()
        except Interrupted:
            pass  # by the stop; the measurement is made when the run goes on
        return self.leave()

    def look_if_due(self, stop: Stop) -> None:
        """Measures and writes a checkpoint where it is time for it.

        Raises:
            Interrupted: it was asked to stop."""
        step = self.progress.step
        if self.progress.looked < step and self._is_look(step):
            self._look(stop)
            self.save()

    def leave(self) -> Trained:
        """Stops, with a checkpoint of the last step."""
        step = self.progress.step
        if not self._leads or step not in self.checkpoints.steps():
            self.save()
        return Trained(step, stopped=True)

    def _is_asked(self, stop: Stop) -> bool:
        """Whether any process is asked to stop: all of them end after the same step."""
        if self.fabric.world_size == 1:
            return stop.asked
        asked = torch.tensor(float(stop.asked), device=self.fabric.device)
        total = self.fabric.all_reduce(asked, reduce_op="sum")
        assert isinstance(total, Tensor)
        return bool(total > 0)

    def _is_look(self, step: int) -> bool:
        return step % self._interval == 0 or step == self.total

    def _advance(self) -> None:
        """One step, and what is told of it."""
        begun = time.perf_counter()
        value, norm, rate = self._step(self.progress.step)
        self.advanced(begun, value, norm, rate)

    def advanced(self, begun: float, value: Tensor, norm: Tensor | None, rate: float) -> None:
        """Notes a step that began at a time: its loss, the gradient's norm if it was clipped, and the learning rate.

        Raises:
            RunError: the loss is not a number."""
        self.progress.step += 1
        step = self.progress.step
        self._unseen.append(value)
        if self.fabric.device.type == "cpu":
            self._see()
        if step % self._logged == 0 or step == self.total:
            self._see()
            self._count(begun)
            self._log(step, value, norm, rate)
            return
        self._count(begun)
        if self.watcher.due():
            self._see()
            self.watcher.step(step, self.total, float(value), self._speed(), self._depth())

    def _step(self, step: int) -> tuple[Tensor, Tensor | None, float]:
        """One step of the optimizer; the loss, the gradient's norm if it was clipped, and the learning rate."""
        rate = self.set_rate(self.optimizer, step)
        if self.fabric.world_size > 1:
            # Each process draws numbers of its own, and no checkpoint has to keep them.
            torch.manual_seed(hash((self.sampler.seed, step, self.fabric.global_rank)) % 2**63)
        items = self.sampler.next()
        told = self._launch(items)
        if told is None:
            told = self._gradients(items), self._move()
        return *told, rate

    def _launch(self, items: np.ndarray) -> Told | None:
        """The step of a batch as a CUDA graph, with its loss and norm; None if it has yet to be taken."""
        data, graphs = self.trained_on, self._graphs
        if graphs is None or len(items) > (self.micro or len(items)):
            return None
        widths = data.widths(items)
        shape = (len(items), *widths)
        if not graphs.is_due(shape):
            return None

        def step(chosen: Tensor) -> Told:
            self.optimizer.zero_grad(set_to_none=True)
            value = self._backward(data.gather(chosen, widths), 1.0, 1.0)
            return value, self._move()

        return graphs.launch(shape, data.place(items), step)

    def _move(self) -> Tensor | None:
        """Moves the weights by their gradients; gives the gradient's norm if it was clipped."""
        norm = self._clip()
        self.optimizer.step()
        return norm

    def set_rate(self, optimizer: Optimizer, step: int) -> float:
        """Gives an optimizer the learning rate of a step."""
        rate = learning_rate(self.settings, step, self.total)
        for group in optimizer.param_groups:
            group["lr"] = _moved(group["lr"], rate)
            if "betas" in group:
                first, second = group["betas"]
                group["betas"] = (_moved(first, first_beta(self.settings, step, self.total)), second)
        return rate

    def _gradients(self, items: np.ndarray) -> Tensor:
        """The gradients of a batch, and its loss. Where the memory does not suffice, half as many samples go through
        the model at a time, from then on; the batch stays what it is."""
        while True:
            self.optimizer.zero_grad(set_to_none=True)
            try:
                return self._in_parts(items)
            except (RuntimeError, MemoryError) as error:
                size = min(self.micro or len(items), len(items))
                if not is_out_of_memory(error) or size == 1 or self.fabric.world_size > 1:
                    raise
                self.micro = (size + 1) // 2
                # They have memory of their own.
                self._graphs = None
            # Only here is nothing of the failed step held any more.
            if self.fabric.device.type == "cuda":
                torch.cuda.empty_cache()
            said = f"the memory does not suffice for {size} samples at a time; going on with {self.micro}"
            warnings.warn(f"{said}, and with batches as before", MemoryWarning, stacklevel=2)

    def _in_parts(self, items: np.ndarray) -> Tensor:
        fabric = self.fabric
        # What each process has of a batch; their gradients are averaged, so each counts for as many as there are.
        mine, processes = items[fabric.global_rank :: fabric.world_size], fabric.world_size
        size = self.micro or len(items)
        parts = [mine[start : start + size] for start in range(0, len(mine), size)]
        if processes == 1 and len(parts) == 1:
            return self._backward(self.trained_on.batch(items), 1.0, 1.0)
        whole = max(self.trained_on.weight(items), 1)
        values = []
        for index, part in enumerate(parts):
            share, samples = self.trained_on.weight(part) / whole, len(part) / len(items)
            with fabric.no_backward_sync(self._model, enabled=processes > 1 and index + 1 < len(parts)):
                batch = self.trained_on.batch(part)
                values.append(self._backward(batch, share * processes, samples * processes))
        value = torch.stack(values).sum()
        if processes > 1:
            shared = fabric.all_reduce(value, reduce_op="mean")
            assert isinstance(shared, Tensor)
            return shared
        return value

    def _backward(self, batch: Batch, share: float, samples: float) -> Tensor:
        """Adds the gradients of some items, which have these shares of the whole batch's losses and samples; gives
        their share of its loss."""
        settings = self.settings
        value = loss(forward(self._model, batch), batch, self.rule, settings.label_smoothing) * share
        whole = value
        if settings.ponder:
            ponder = self.module.ponder
            assert isinstance(ponder, Tensor)
            whole = value + settings.ponder * samples * ponder
        self.fabric.backward(whole)
        return value.detach()

    def _clip(self) -> Tensor | None:
        """Clips gradients by value, then by norm, as far as the recipe asks for it; gives the norm."""
        settings = self.settings
        if not settings.clip_value and not settings.clip:
            return None
        self.fabric.strategy.precision.unscale_gradients(self.optimizer.optimizer)
        if settings.clip_value:
            torch.nn.utils.clip_grad_value_(self._weights, settings.clip_value)
        if not settings.clip:
            return None
        return torch.nn.utils.clip_grad_norm_(self._weights, settings.clip)

    def _see(self) -> None:
        """Waits for the losses of the steps behind.

        Raises:
            RunError: one of them is not a number."""
        if not self._unseen:
            return
        finite = torch.isfinite(torch.stack(self._unseen)).tolist()
        first = self.progress.step - len(finite) + 1
        self._unseen.clear()
        if not all(finite):
            raise mistakes.not_finite("loss is not a number", first + finite.index(False), self._last_checkpoint())

    # Telling

    def _count(self, begun: float) -> None:
        self._seconds += time.perf_counter() - begun
        self._timed += 1

    def _speed(self) -> float:
        """Steps per second, evaluations apart."""
        return self._timed / max(self._seconds, 1e-9)

    def _depth(self) -> float | None:
        depth = getattr(self.module, "mean_depth", None)
        return None if depth is None else float(depth)

    def _spared(self) -> float | None:
        """Of the steps of halting loops since the last time, the share that samples did not need that had halted; None
        without such loops."""
        loops = list(halting_loops(self.module))
        computed, masked = sum(loop.computed for loop in loops), sum(loop.masked for loop in loops)
        for loop in loops:
            loop.computed = loop.masked = 0
        return 1 - computed / masked if masked else None

    def _log(self, step: int, value: Tensor, norm: Tensor | None, rate: float) -> None:
        number, depth, speed = float(value), self._depth(), self._speed()
        if not self._leads:
            self._seconds, self._timed = 0.0, 0
            return
        gradient_norm = None if norm is None else float(norm)
        line = StepMetrics(step=step, loss=number, lr=rate, gradient_norm=gradient_norm, mean_depth=depth)
        self.record.append(METRICS, line)
        spared = self._spared()
        self.record.append(TIMINGS, StepTiming(step=step, time=time.time(), steps_per_second=speed, spared=spared))
        self.record.scalars(step, {f"train/{name}": value for name, value in line.scalars().items()})
        self.watcher.step(step, self.total, number, speed, depth, spared)
        self._seconds, self._timed = 0.0, 0

    # Measuring

    def tested(self) -> nn.Module:
        """The module that is tested, with the weights of the one that is trained."""
        if self.at_test is not self.module:
            self.at_test.load_state_dict(self.module.state_dict())
        return self.at_test

    def score(self, split: str, stop: Stop) -> Score:
        """Measures a split.

        Raises:
            Interrupted: it was asked to stop."""
        data = self._placed.get(split) or Data(self._splits[split], self.fabric.device)
        return evaluate(self.tested(), data, self._splits[split], split, self.task, stopping=lambda: stop.asked)

    def _look(self, stop: Stop) -> None:
        """Measures the splits that are watched; the latest of equal values of the selecting metric is the best."""
        progress, scores, seconds = self.progress, [], []
        if not self._leads:
            progress.looked = progress.step
            return
        for split in self._watched:
            begun = time.perf_counter()
            scores.append(self.score(split, stop))
            seconds.append(time.perf_counter() - begun)
        step = progress.looked = progress.step
        for score, took in zip(scores, seconds, strict=True):
            line = EvaluationMetrics.of(step, score.split, score.loss, score.metrics)
            self.record.append(METRICS, line)
            self.record.append(TIMINGS, EvaluationTiming(step=step, split=score.split, seconds=took))
            values = {"loss": score.loss, **score.metrics}
            self.record.scalars(step, {f"{score.split}/{name}": value for name, value in values.items()})
            progress.history.append(line)
        metric, value = self._metric, progress.history[-len(scores)].value(self._metric)
        if value is not None and (progress.best is None or rank(metric, value) >= rank(metric, progress.best)):
            progress.best, progress.best_step = value, step
        self.watcher.scored(step, scores[0])

    def restore_best(self) -> int | None:
        """Puts the selected weights into the module; of which step they are, None if nothing could be selected.

        Raises:
            RunError: no checkpoint that was measured is whole."""
        steps = ranking(self.progress.history, self._selecting, self._metric)
        if not steps:
            return None
        saved = self.checkpoints.first_intact(steps)
        if saved is None:
            raise record_mistakes.no_whole_checkpoint(self.checkpoints.folder)
        saved.load_into(self.module)
        return saved.step


def _moved(number: float | Tensor, to: float) -> float | Tensor:
    """What a schedule moves; a tensor stays where it is, as a graph reads it there."""
    return number.fill_(to) if isinstance(number, Tensor) else to
