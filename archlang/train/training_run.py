"""The state of one training run: weights, place in the data, progress, record and checkpoints."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from archlang.backend.architecture import Architecture
from archlang.record import mistakes as record_mistakes
from archlang.record.checkpoint import Checkpoints
from archlang.record.run_folder import Record
from archlang.record.schemas import METRICS, STATE, TIMINGS, CheckpointState, EvaluationMetrics, EvaluationTiming
from archlang.tasks.kit.metrics import rank
from archlang.train import mistakes
from archlang.train.carried_examples import CarriedExamples
from archlang.train.data import Sampler
from archlang.train.devices import reset_peak_memory
from archlang.train.evaluated_weights import EvaluatedWeights
from archlang.train.generators import random_state, restore_random_state
from archlang.train.optimizer_state import restore_optimizer_state, restore_own_optimizer_state
from archlang.train.score import Score, evaluate
from archlang.train.selection import evaluations_since_best, ranking
from archlang.train.setup import Setup, Workload
from archlang.train.step.protocol import StepState
from archlang.train.step_log import StepLog, Watcher
from archlang.train.stop import Stop

# Splits that are evaluated during training: they tell whether a model fits, and whether it generalizes.
_VALIDATION = ("iid", "valid")


@dataclass
class Progress:
    """How far a run is: what a checkpoint holds besides weights, optimizer and generators."""

    step: int = 0
    evaluated: int = 0
    """the last step with an evaluation"""
    best: float | None = None
    """the best value of the selecting metric"""
    best_step: int | None = None
    history: list[EvaluationMetrics] = field(default_factory=list)


class TrainingRun:
    """One run. A `Loop` advances it, and a `Step` computes its gradients and moves its weights."""

    def __init__(self, setup: Setup, workload: Workload, record: Record, seed: int, watcher: Watcher) -> None:
        """Moves the model and the data to the device.

        Raises:
            RunError: a batch has fewer samples than there are processes, or several processes would carry states."""
        fabric, settings = setup.fabric, workload.settings
        self.fabric = fabric
        self.module = setup.module
        self.workload = workload
        self.settings = settings
        self.record = record
        self._watcher = watcher
        self.model, self.optimizer = fabric.setup(setup.module, setup.optimizer)
        self._has_own_optimizer = setup.has_own_optimizer
        self._test_module = setup.test_module
        if setup.test_module is not setup.module:
            setup.test_module.to(fabric.device)
        self._selecting_split, self._selecting_metric = settings.selecting
        validation = (name for name in _VALIDATION if name in workload.splits and len(workload.splits[name]))
        self._evaluated_splits = tuple(dict.fromkeys((self._selecting_split, *validation)))
        self.data = workload.keep("train")
        for name in self._evaluated_splits:
            workload.keep(name)
        self.sampler = self._make_sampler(seed)
        self.checkpoints = Checkpoints(record.folder / "checkpoints")
        # The state of the generators when the run begins or resumes. Stacked runs save it unchanged: they draw from
        # generators that all of them share.
        self.random_at_start = random_state(fabric.device)
        self.progress = Progress()
        self.total = settings.total_steps(len(self.sampler))
        # The samples that go through the model at a time, None for a batch; halved when the memory does not suffice.
        self.micro = settings.micro or None
        self._evaluation_interval = settings.evaluated_every(self.total, len(self.sampler))
        self._log_interval = settings.logged_every(self.total)
        reset_peak_memory(fabric.device)
        self._log = StepLog(record, watcher, setup.module, self.total, fabric.device)
        # Losses whose values the host has not read: reading waits for a GPU, so only where one is logged or saved.
        self._unread_losses: list[Tensor] = []
        self.weights = [weight for weight in setup.module.parameters() if weight.requires_grad]
        self._evaluated_weights = EvaluatedWeights(setup.module, setup.optimizer, settings.ema)
        self.carried = (
            CarriedExamples(setup.module, settings, seed, self.data.size) if settings.supervise == "carried" else None
        )
        self._leads = fabric.is_global_zero
        if fabric.world_size > settings.batch and settings.batch_of == "samples":
            raise mistakes.batch_too_small(settings.batch, fabric.world_size)
        if fabric.world_size > 1 and self.carried is not None:
            raise mistakes.not_carried_by_processes()

    def _make_sampler(self, seed: int, epoch: int = 0, position: int = 0) -> Sampler:
        return Sampler.of(self.settings, self.data.lengths, seed, epoch, position)

    # Checkpoints

    def resume(self, step: int | None = None) -> bool:
        """Restores the newest intact checkpoint, or that of `step`, and truncates the record to it. Returns False if
        there is none; the run then begins at step 0.

        Raises:
            RunError: there are checkpoints, but all of them are damaged, or do not fit the run; or `metrics.jsonl` is
                damaged. Nothing is changed then."""
        checkpoint = self.checkpoints.latest() if step is None else self.checkpoints.first_intact([step])
        if checkpoint is None:
            if self.checkpoints.steps():
                raise self.checkpoints.none_intact()
            if self._leads:
                self.checkpoints.remove_after(0)
                self.record.truncate({})
            return False
        state = checkpoint.state
        if self._leads:
            self.record.require_lines(state.sizes, state.digests, checkpoint.step)
        checkpoint.load_into(self.module)
        try:
            self._evaluated_weights.restore(state.trained, checkpoint.step)
            if self.carried is not None:
                self.carried.restore(state.carried, self.fabric.device)
            self._restore_state(state)
        except ValueError as error:
            raise record_mistakes.not_resumable(checkpoint.folder / STATE, str(error)) from error
        self.random_at_start = random_state(self.fabric.device)
        self.sampler = self._make_sampler(self.sampler.seed, state.epoch, state.position)
        self.micro = state.micro
        self.progress = Progress(checkpoint.step, state.evaluated, state.best, state.best_step, list(state.history))
        if self._leads:
            self.checkpoints.remove_after(checkpoint.step, state.best_step)
            self.record.truncate(state.sizes, checkpoint.step)
            self.record.note_resumption(checkpoint.step, self.fabric.device)
        return True

    def _restore_state(self, state: CheckpointState) -> None:
        """Restores the optimizer, the precision and the generators.

        Raises:
            ValueError: a state is not one that this run has written."""
        if self._has_own_optimizer:
            restore_own_optimizer_state(self.optimizer.optimizer, state.optimizer)
        else:
            restore_optimizer_state(self.optimizer.optimizer, state.optimizer)
        try:
            self.fabric.strategy.precision.load_state_dict(state.precision)
        except (KeyError, TypeError, RuntimeError) as error:
            raise ValueError(f"the state of the precision: {error}") from error
        restore_random_state(state.random, self.fabric.device)

    def save(self, get_state: Callable[[], StepState]) -> None:
        """Writes a checkpoint, of which `get_state` returns the states of the optimizer and of the generators.

        Raises:
            RunError: a loss or a weight is NaN or infinite; older checkpoints are kept."""
        self._check_losses()
        progress = self.progress
        if not all(bool(weight.isfinite().all()) for weight in self.weights):
            raise mistakes.not_finite("weights", progress.step, self._last_checkpoint())
        if not self._leads:
            return
        step_state, sizes = get_state(), self.record.sizes()
        state = CheckpointState(
            optimizer=step_state.optimizer,
            random=step_state.random,
            precision=self.fabric.strategy.precision.state_dict(),
            epoch=self.sampler.epoch,
            position=self.sampler.position,
            micro=self.micro,
            evaluated=progress.evaluated,
            best=progress.best,
            best_step=progress.best_step,
            history=tuple(progress.history),
            sizes=sizes,
            digests=self.record.digests(sizes),
            step=progress.step,
            trained=self._evaluated_weights.trained(),
            carried=None if self.carried is None else self.carried.state(),
        )
        with self._evaluated_weights.placed():
            self.checkpoints.save(progress.step, self.module, state, progress.best_step)

    def has_checkpoint(self) -> bool:
        """Whether the current step has one. Only the first process writes checkpoints, and the others return False."""
        return self._leads and self.progress.step in self.checkpoints.steps()

    def _last_checkpoint(self) -> int | None:
        return max(self.checkpoints.steps(), default=None)

    # Steps

    def record_step(self, begun: float, loss: Tensor, norm: Tensor | None, rate: float) -> None:
        """Counts a step that began at `begun` (`time.perf_counter`), and logs it where it is due: its loss, the norm of
        its gradient if that was clipped, and its learning rate.

        Raises:
            RunError: a loss is NaN or infinite."""
        self._evaluated_weights.update()
        self.progress.step += 1
        step = self.progress.step
        self._unread_losses.append(loss)
        is_logged = step % self._log_interval == 0 or step == self.total
        if is_logged or self.fabric.device.type == "cpu":
            self._check_losses()
        self._log.count(begun)
        if is_logged:
            if self._leads:
                self._log.write(step, loss, norm, rate)
            self._log.restart_clock()
        elif self._watcher.due():
            self._check_losses()
            self._log.show(step, loss)

    def _check_losses(self) -> None:
        """Reads the losses of the latest steps.

        Raises:
            RunError: one of them is NaN or infinite."""
        if not self._unread_losses:
            return
        finite = torch.isfinite(torch.stack(self._unread_losses)).tolist()
        first_step = self.progress.step - len(finite) + 1
        self._unread_losses.clear()
        if not all(finite):
            step = first_step + finite.index(False)
            raise mistakes.not_finite("loss", step, self._last_checkpoint(), self.settings.loss)

    # Evaluation

    def is_evaluation_due(self) -> bool:
        """Whether the current step is to be evaluated and has not been."""
        step = self.progress.step
        return self.progress.evaluated < step and (step % self._evaluation_interval == 0 or step == self.total)

    def evaluations_since_best(self) -> int:
        """Returns how many evaluations have not improved the selecting metric since it was best."""
        return evaluations_since_best(self.progress.history, self._selecting_split, self._selecting_metric)

    def is_over(self) -> bool:
        """Whether the run has taken its last step, or its patience is exhausted. All processes call it after the same
        step; the first one, which evaluates, decides for all."""
        if self.progress.step >= self.total:
            return True
        patience = self.settings.patience
        if not patience or self.progress.evaluated < self.progress.step:
            return False
        return bool(self.fabric.broadcast(self.evaluations_since_best() >= patience))

    def evaluate(self, stop: Stop) -> None:
        """Evaluates the validation splits, and notes the best step; the latest of equal values is the best.

        Raises:
            Interrupted: the run is asked to stop; nothing is recorded."""
        progress, scores, seconds = self.progress, [], []
        if not self._leads:
            progress.evaluated = progress.step
            return
        with self._evaluated_weights.placed():
            for split in self._evaluated_splits:
                begun = time.perf_counter()
                scores.append(self.score(split, stop))
                seconds.append(time.perf_counter() - begun)
        step = progress.evaluated = progress.step
        for score, split_seconds in zip(scores, seconds, strict=True):
            values = {"loss": score.loss, **score.metrics}
            line = EvaluationMetrics.of(step, score.split, score.loss, score.metrics)
            self.record.append(METRICS, line)
            self.record.append(TIMINGS, EvaluationTiming(step=step, split=score.split, seconds=split_seconds))
            self.record.scalars(step, {f"{score.split}/{name}": value for name, value in values.items()})
            progress.history.append(line)
        metric = self._selecting_metric
        value = progress.history[-len(scores)].value(metric)
        if value is not None and (progress.best is None or rank(metric, value) >= rank(metric, progress.best)):
            progress.best, progress.best_step = value, step
        self._watcher.scored(step, scores[0], self.evaluations_since_best() if self.settings.patience else 0)

    def score(self, split: str, stop: Stop) -> Score:
        """Evaluates a split with the weights that the module holds.

        Raises:
            Interrupted: the run is asked to stop."""
        workload = self.workload
        return evaluate(
            self.test_module(), workload.load(split), workload.splits[split], split, workload.task,
            functions=workload.functions, stopping=lambda: stop.asked,
        )  # fmt: skip

    def test_module(self) -> Architecture:
        """Returns the module that is evaluated, with the weights of the module that is trained."""
        if self._test_module is not self.module:
            self._test_module.load_state_dict(self.module.state_dict())
        return self._test_module

    def restore_best(self) -> int | None:
        """Loads the selected weights into the module. Returns their step, or None if no step could be selected.

        Raises:
            RunError: every checkpoint that was evaluated is damaged."""
        steps = ranking(self.progress.history, self._selecting_split, self._selecting_metric)
        if not steps:
            return None
        checkpoint = self.checkpoints.first_intact(steps)
        if checkpoint is None:
            raise self.checkpoints.none_intact()
        checkpoint.load_into(self.module)
        return checkpoint.step
