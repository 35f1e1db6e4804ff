"""The training of one run: its weights, its place in the data, its progress, its record and its checkpoints."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from archlang.backend.architecture import Architecture
from archlang.backend.attach import rematerialize_bodies
from archlang.compile import build
from archlang.errors import ArchlangError
from archlang.graph.summary import FORWARD_AND_BACKWARD, summarize
from archlang.plan.plan import Plan
from archlang.plan.trust import is_shipped
from archlang.tasks.kit.metrics import rank
from archlang.tasks.kit.split import Split
from archlang.tasks.kit.streams import Place, Stream, StreamPart
from archlang.tasks.kit.task import Task, loss_rule
from archlang.train import mistakes
from archlang.train.data import Batch, DeviceSplit, Sampler
from archlang.train.deep_supervision import DeepSupervision
from archlang.train.devices import peak_flops, peak_memory, random_state, reset_peak_memory, restore_random_state
from archlang.train.evaluated_weights import EvaluatedWeights
from archlang.train.memory import Remat, steps_together
from archlang.train.optimizers import make_optimizer, restore_optimizer_state, restore_own_optimizer_state
from archlang.train.record import mistakes as record_mistakes
from archlang.train.record import schemas
from archlang.train.record.checkpoint import Checkpoints
from archlang.train.record.divided import own_rows
from archlang.train.record.mistakes import RunError
from archlang.train.record.run_folder import RunFolder
from archlang.train.refusals import is_compiled
from archlang.train.score import Compute, Interrupted, Score, add_written, compute_eagerly, evaluate
from archlang.train.settings import Settings
from archlang.train.sharding import shard
from archlang.train.stop import Stop

if TYPE_CHECKING:
    from lightning_fabric import Fabric

# Splits that are evaluated during training: they tell whether a model fits, and whether it generalizes.
_VALIDATION = ("iid", "valid")
# What a run that is killed loses: the steps, or the time, since its last checkpoint.
Interval = int | timedelta
SAVED_EVERY = timedelta(minutes=15)
# An evaluation may take long: if so much training is unsaved, it is saved before.
_SECONDS_UNSAVED = 60.0


class Watcher:
    """Receives the progress of a run. Subclasses show it."""

    def working(self, message: str) -> AbstractContextManager[object]:
        """Inside, the run prepares or evaluates something."""
        return nullcontext()

    def note(self, text: str) -> None:
        """Shows how the run begins."""

    def running(self, total: int, done: int) -> AbstractContextManager[object]:
        """Inside, a run trains that has done `done` of `total` steps."""
        return nullcontext()

    def due(self) -> bool:
        """Whether `step` is called for a step that is not logged."""
        return False

    def step(self, step: int, total: int, loss: float, rate: float, tokens: float, depth: float | None) -> None:
        """Shows a step.

        Args:
            rate: Steps per second.
            tokens: Tokens per second.
            depth: The mean steps of halting loops."""

    def scored(self, step: int, score: Score, since_best: int = 0) -> None:
        """Shows an evaluation, after `since_best` evaluations that have not improved the selecting metric."""

    def reached(self, peak_share: float) -> None:
        """Shows from now on which share of the FLOPs is computed that the device can compute in the time."""


SILENT = Watcher()


@dataclass(frozen=True, eq=False)
class StepResult:
    """For each run its loss and the norm of its gradient, None if gradients are not clipped by norm; and the learning
    rate."""

    losses: Sequence[Float[Tensor, ""]]
    norms: Sequence[Float[Tensor, ""] | None]
    rate: float


class Step(Protocol):
    """Computes the gradients of one or several runs, and moves their weights."""

    def take(self, number: int, items: Sequence[np.ndarray]) -> StepResult:
        """Takes step `number`, from 0, with the items of each run's batch.

        Raises:
            CannotStack: the runs cannot be computed together."""


class CannotStack(Exception):
    """Why runs cannot be computed together. `weights_are_intact` unless the optimizer failed in the middle of a
    step."""

    def __init__(self, reason: str, weights_are_intact: bool = True) -> None:
        super().__init__(reason)
        self.weights_are_intact = weights_are_intact


@dataclass
class Progress:
    """How far a run is: what a checkpoint holds besides weights, optimizer and generators."""

    step: int = 0
    evaluated: int = 0
    """the last step with an evaluation"""
    history: list[schemas.EvaluationMetrics] = field(default_factory=list)


class Trainer:
    """Trains one run. `train_all` advances it, and a `Step` computes its gradients and moves its weights."""

    def __init__(
        self,
        plan: Plan,
        settings: Settings,
        task: Task,
        splits: Mapping[str, Split],
        fabric: Fabric,
        record: RunFolder,
        watcher: Watcher,
        precision: str = "32",
        *,
        remat: Remat = 0,
        sharded: bool = False,
        eager: bool = True,
        save: Interval = SAVED_EVERY,
        shared: Trainer | None = None,
        prepare: Callable[[Architecture], Collection[str]] | None = None,
    ) -> None:
        """Sets the seed, builds the models and the optimizer, and moves models and data to the device.

        Args:
            remat: Compute so many steps of a loop again in the backward pass, instead of keeping what they compute.
            sharded: Divide the weights among the processes.
            eager: Do not let torch compile the model where that repays.
            save: The steps or the time between checkpoints; evaluations are followed by others.
            shared: A trainer that differs in its seed alone, whose test model and data on the device are used.
            prepare: Changes the new weights. Returns the names of those that it has loaded."""
        self.fabric, self.settings, self.task, self.splits = fabric, settings, task, splits
        self.record, self.watcher = record, watcher
        self.rule = loss_rule(task)
        # Before the seed is set: evaluation must not change training.
        test_module: Architecture | None = None
        if plan.at_test is not plan.graph:
            test_module = shared.test_model if shared else build(plan.at_test, plan.plugins)
        fabric.seed_everything(plan.seed, verbose=False)
        self.module = build(plan.graph, plan.plugins)
        loaded = () if prepare is None else prepare(self.module)
        self.is_sharded = sharded
        for model in (self.module, test_module) if sharded else ():
            if model is not None:
                shard(model, fabric.device)
        optimizer = make_optimizer(plan.train, self.module, precision, plan.plugins, loaded=loaded)
        self.test_model: Architecture = test_module or self.module
        self.compute: Compute = compute_eagerly  # the batches of evaluations
        self._has_own_optimizer = not is_shipped(plan.train)
        if test_module is not None:
            test_module.to(fabric.device)
        validation = (name for name in _VALIDATION if name in splits and len(splits[name]))
        self._evaluated_splits = tuple(dict.fromkeys((settings.selecting[0], *validation)))
        # The splits that stay on the device; the others are freed after use.
        self._resident: dict[str, DeviceSplit] = (
            shared._resident
            if shared
            else {name: DeviceSplit(splits[name], fabric.device) for name in ("train", *self._evaluated_splits)}
        )
        # Of a stream, the part that is trained on.
        self._part, self.data = splits["train"], self._resident["train"]
        longest = int(self.data.lengths.max(initial=1))
        if remat:
            rematerialize_bodies(self.module, self.module.program.code, steps_together(plan, remat, longest))
        self.sampler = Sampler.of(settings, self.data, plan.seed)
        self.total = settings.total_steps(len(self.sampler))
        options = {"remat": bool(remat), "shard": sharded, "eager": eager}
        self.is_compiled = is_compiled(plan, fabric.device.type, self.total, longest, **options)
        model = _compiled(self.module) if self.is_compiled else self.module
        self.model, self.optimizer = fabric.setup(model, optimizer)
        group = torch.distributed.new_group(backend="gloo") if sharded else None
        self.checkpoints = Checkpoints(record.folder / "checkpoints", group)
        # The state of the generators when the run begins or resumes. Stacked runs save it unchanged: they draw from
        # generators that all of them share.
        self.random_at_start = random_state(fabric.device)
        self.get_state: Callable[[], dict[str, Any]] = dict  # Any: the states of the optimizer and of the generators
        self.progress = Progress()
        self._save_interval, self._saved_at = save, time.monotonic()
        self._saved_step: int | None = None
        self._seconds_unsaved = 0.0
        self.has_ended = self.stopped = self._stop_requested = False
        # Of each of the last steps: how many processes are asked to stop, and the seconds without a checkpoint.
        self._signals: list[Tensor] = []
        self.error: RunError | None = None
        # The samples that go through the model at a time, None for a batch; halved when the memory does not suffice.
        self.micro: int | None = settings.micro or None
        self._evaluation_interval = settings.evaluated_every(self.total, len(self.sampler))
        self._log_interval = settings.logged_every(self.total)
        reset_peak_memory(fabric.device)
        # Losses whose values the host has not read: reading waits for a GPU, so only where one is logged or saved.
        self._unread_losses: list[Tensor] = []
        # Since the last logged step: the seconds, those of making batches, and the numbers of steps, samples, tokens,
        # and tokens with padding.
        self._seconds, self.data_seconds, self._done = 0.0, 0.0, np.zeros(4)
        self._flops = cache(lambda width: FORWARD_AND_BACKWARD * summarize(plan.graph, width).flops)
        self._peak_flops = peak_flops(fabric.device, precision)
        self.weights = [weight for weight in self.module.parameters() if weight.requires_grad]
        self._evaluated_weights = EvaluatedWeights(self.module, optimizer, settings.ema)
        self.deep = None
        if settings.supervise == "deep":
            self.deep = DeepSupervision(self.module, settings, plan.seed, self.data.size)
        self._leads = fabric.is_global_zero

    @contextmanager
    def keeping_error(self) -> Iterator[None]:
        """A RunError inside ends this run, and no other."""
        try:
            yield
        except RunError as error:
            self.error, self.has_ended = error, True

    # Several processes

    def is_stop_asked(self, stop: Stop) -> bool:
        """Whether any process is asked to stop: all of them stop, and save, after the same step."""
        self._stop_requested = stop.requested
        seconds = time.monotonic() - self._saved_at
        if self.fabric.world_size == 1:
            self._seconds_unsaved = seconds
            return self._stop_requested
        # Those of the step before the last: the host does not wait for the last one.
        requested, self._seconds_unsaved = self._signals.pop(0).tolist() if len(self._signals) > 1 else (0.0, 0.0)
        return bool(requested)

    def mean_over_processes(self, loss: Tensor) -> Tensor:
        """Returns the mean loss of all processes. With it they learn whether one of them is asked to stop, and how long
        the first one has not saved."""
        seconds = (time.monotonic() - self._saved_at) * self._leads
        total = torch.stack([loss, torch.full_like(loss, self._stop_requested), torch.full_like(loss, seconds)])
        torch.distributed.all_reduce(total)
        self._signals.append(total[1:])
        return total[0] / self.fabric.world_size

    # Streams

    def next_items(self) -> np.ndarray:
        """Returns the items of the next step. Where a part of a stream ends, the next one becomes the training data.

        Raises:
            ArchlangError: the stream cannot be read on. A run of one process is saved before."""
        if isinstance(part := self._part, StreamPart):
            if self.sampler.has_ended:
                try:
                    part = self._read_part(part.stream, part.after)
                except ArchlangError:
                    if self.fabric.world_size == 1:
                        self.stop()
                    raise
            if self.total - self.progress.step > len(self.sampler) - self.sampler.position:
                part.stream.read_ahead(part.after)
        return self.sampler.next()

    def _read_part(self, stream: Stream, place: Place) -> StreamPart:
        part = self._part = stream.part(place)
        self.data = DeviceSplit(part, self.fabric.device)
        self.sampler.lengths = self.data.lengths
        return part

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
            self._restore(checkpoint.step, state)
        except ValueError as error:
            raise record_mistakes.not_resumable(checkpoint.folder / schemas.STATE, str(error)) from error
        self.random_at_start = random_state(self.fabric.device)
        self.sampler = Sampler.of(self.settings, self.data, self.sampler.seed, state.epoch, state.position)
        self.micro = state.micro
        self.progress = Progress(checkpoint.step, state.evaluated, list(state.history))
        self._saved_step = checkpoint.step
        if self._leads:
            self.checkpoints.remove_after(checkpoint.step, self._best_step())
            self.record.truncate(state.sizes, checkpoint.step)
            self.record.note_resumption(checkpoint.step, self.fabric.device)
        return True

    def _restore(self, step: int, state: schemas.CheckpointState) -> None:
        """Restores the trained weights, the begun examples, the optimizer, the precision and the generators."""
        self._evaluated_weights.restore(state.trained, step)
        if self.deep is not None:
            self.deep.restore(state.carried, self.fabric.device)
        restore = restore_own_optimizer_state if self._has_own_optimizer else restore_optimizer_state
        restore(self.optimizer.optimizer, state.optimizer)
        try:
            self.fabric.strategy.precision.load_state_dict(state.precision)
        except (KeyError, TypeError, RuntimeError) as error:
            raise ValueError(f"the state of the precision: {error}") from error
        if state.place is not None and isinstance(self._part, StreamPart):
            self._read_part(self._part.stream, state.place)
        restore_random_state(state.random, self.fabric.device)

    def is_save_due(self) -> bool:
        """Whether the steps since the last checkpoint are to be saved before another step or an evaluation."""
        step, interval, seconds = self.progress.step, self._save_interval, self._seconds_unsaved
        if step in (0, self._saved_step):
            return False
        if self.is_evaluation_due() and seconds > _SECONDS_UNSAVED:
            return True
        return step % interval == 0 if isinstance(interval, int) else seconds >= interval.total_seconds()

    def save(self) -> None:
        """Writes a checkpoint.

        Raises:
            RunError: a loss or a weight is NaN or infinite; older checkpoints are kept."""
        begun = time.perf_counter()
        self._check_losses()
        progress = self.progress
        diverged = torch.tensor(float(not all(map(_is_finite, self.weights))), device=self.fabric.device)
        if self.fabric.all_reduce(diverged):  # the share of the processes
            raise mistakes.not_finite("weights", progress.step, self._last_checkpoint())
        self._saved_step, self._saved_at = progress.step, time.monotonic()
        for signal in self._signals:
            signal[1] = 0  # which was measured before
        if not (self._leads or self.is_sharded):
            return
        sizes = self.record.sizes() if self._leads else {}
        states = self.get_state()
        with self._evaluated_weights.placed() as trained:
            state = schemas.CheckpointState(
                **states,
                precision=self.fabric.strategy.precision.state_dict(),
                place=self._part.place if isinstance(self._part, StreamPart) else None,
                epoch=self.sampler.epoch,
                position=self.sampler.position,
                micro=self.micro,
                evaluated=progress.evaluated,
                history=tuple(progress.history),
                sizes=sizes,
                digests=self.record.digests(sizes),
                step=progress.step,
                trained=trained,
                carried=None if self.deep is None else self.deep.state(),
            )
            self.checkpoints.save(progress.step, self.module, state, self._best_step())
        if self._leads:
            timing = schemas.SavingTiming(step=progress.step, saving=time.perf_counter() - begun)
            self.record.append(schemas.TIMINGS, timing)

    def stop(self) -> None:
        """Ends the run before its last step, with a checkpoint of its current step."""
        if self.progress.step != self._saved_step:
            self.save()
        self.has_ended = self.stopped = True

    def _last_checkpoint(self) -> int | None:
        return max(self.checkpoints.steps(), default=None)

    # Steps

    def record_step(self, begun: float, items: np.ndarray, loss: Tensor, norm: Tensor | None, rate: float) -> None:
        """Counts a step on `items` that began at `begun` (`time.perf_counter`), and logs it where it is due: its loss,
        the norm of its gradient if that was clipped, and its learning rate."""
        self._evaluated_weights.update()
        self.progress.step += 1
        step = self.progress.step
        self._unread_losses.append(loss)
        is_logged = step % self._log_interval == 0 or step == self.total
        if is_logged or self.fabric.device.type == "cpu":
            self._check_losses()
        # The speed of a step excludes evaluations.
        self._seconds += time.perf_counter() - begun
        lengths = self.data.lengths[items]
        self._done += (1, len(items), lengths.sum(), len(items) * lengths.max(initial=1))
        speeds = self._done / max(self._seconds, 1e-9)
        if is_logged:
            if self._leads:
                self._log(step, loss, norm, rate, speeds)
            self._seconds, self.data_seconds, self._done = 0.0, 0.0, np.zeros(4)
        elif self.watcher.due():
            self._check_losses()
            self.watcher.step(step, self.total, float(loss), speeds[0], speeds[2], self._depth())

    def _log(self, step: int, loss: Tensor, norm: Tensor | None, rate: float, speeds: np.ndarray) -> None:
        """Logs a step: to `metrics.jsonl` what the seed determines, to `timings.jsonl` the rest."""
        depth = self._depth()
        metrics = schemas.StepMetrics(
            step=step,
            loss=float(loss),
            lr=rate,
            gradient_norm=None if norm is None else float(norm),
            mean_depth=depth,
            losses={name: float(loss.detach()) for name, loss in self.module.losses.items()},
        )
        flops = None
        if self.deep is None:  # its steps compute a part of the loop
            flops = speeds[1] * self._flops(round(speeds[3] / speeds[1]))  # of samples of the mean width
        timing = schemas.StepTiming(
            step=step, time=time.time(), steps_per_second=speeds[0], samples_per_second=speeds[1],
            tokens_per_second=speeds[2], memory=peak_memory(self.fabric.device), flops_per_second=flops,
            peak_share=flops and self._peak_flops and flops / (self._peak_flops * self.fabric.world_size),
            data_seconds=self.data_seconds,
        )  # fmt: skip
        self.record.append(schemas.METRICS, metrics)
        self.record.append(schemas.TIMINGS, timing)
        self.record.scalars(step, {f"train/{name}": number for name, number in metrics.scalars().items()})
        if timing.peak_share:
            self.watcher.reached(timing.peak_share)
        self.watcher.step(step, self.total, float(loss), speeds[0], speeds[2], depth)

    def batch(self, items: np.ndarray) -> Batch:
        """Returns a batch of the training data, and counts the time that this takes."""
        begun = time.perf_counter()
        batch = self.data.batch(items)
        self.data_seconds += time.perf_counter() - begun
        return batch

    def _depth(self) -> float | None:
        depth = self.module.mean_depth
        return None if depth is None else float(depth)

    def _check_losses(self) -> None:
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

    def is_over(self) -> bool:
        """Whether the run has taken its last step, or its patience is exhausted."""
        is_evaluated = self.progress.evaluated == self.progress.step
        is_patience_exhausted = is_evaluated and 0 < self.settings.patience <= self._evaluations_since_best()
        return self.progress.step >= self.total or is_patience_exhausted

    def _evaluations_since_best(self) -> int:
        return evaluations_since_best(self.progress.history, *self.settings.selecting)

    def evaluate(self, stop: Stop) -> None:
        """Evaluates the validation splits, in all processes together.

        Raises:
            Interrupted: the run is asked to stop; nothing is recorded."""
        progress, scores, seconds = self.progress, [], []
        with self._evaluated_weights.placed():
            for split in self._evaluated_splits:
                begun = time.perf_counter()
                scores.append(self.score(split, stop))
                seconds.append(time.perf_counter() - begun)
        step = progress.evaluated = progress.step
        lines = [schemas.EvaluationMetrics.of(step, score.split, score.loss, score.metrics) for score in scores]
        # A metric of the user's own may differ, and all processes have to end at the same step.
        progress.history += self.fabric.broadcast(lines)
        for score, line, split_seconds in zip(scores, lines, seconds, strict=True) if self._leads else ():
            values = {"loss": score.loss, **score.metrics}
            self.record.append(schemas.METRICS, line)
            self.record.append(
                schemas.TIMINGS, schemas.EvaluationTiming(step=step, split=score.split, seconds=split_seconds)
            )
            self.record.scalars(step, {f"{score.split}/{name}": value for name, value in values.items()})
        self.watcher.scored(step, scores[0], self._evaluations_since_best() if self.settings.patience else 0)

    def score(self, split: str, stop: Stop, written: int = 0) -> Score:
        """Evaluates a split with the weights that the module holds, which write `written` of its answers.

        Raises:
            Interrupted: the run is asked to stop."""
        data = self._resident.get(split) or DeviceSplit(self.splits[split], self.fabric.device)
        module, items, processes = self.test_model, self.splits[split], self.fabric.world_size
        if module is not self.module:
            module.load_state_dict(self.module.state_dict())
        score = evaluate(
            module, data, items, split, self.task,
            settings=self.settings, stopping=partial(self._is_any_asked, stop), processes=processes,
            compute=self.compute,
        )  # fmt: skip
        return add_written(
            score, module, items, self.task, self.fabric.device, written,
            stopping=lambda: stop.requested, processes=processes, compute=self.compute,
        )  # fmt: skip

    def _is_any_asked(self, stop: Stop) -> bool:
        """Whether the run is asked to stop. Processes that divide a model leave its evaluation after the same batch."""
        if not self.is_sharded:
            return stop.requested
        requested = torch.tensor(float(stop.requested), device=self.fabric.device)
        return bool(self.fabric.all_reduce(requested))

    def _best_step(self) -> int | None:
        return next(iter(ranking(self.progress.history, *self.settings.selecting)), None)

    def restore_best(self) -> int | None:
        """Loads the selected weights into the module. Returns their step, or None if no step could be selected."""
        steps = ranking(self.progress.history, *self.settings.selecting)
        if not steps:
            return None
        checkpoint = self.checkpoints.first_intact(steps)
        if checkpoint is None:
            raise self.checkpoints.none_intact()
        checkpoint.load_into(self.module)
        return checkpoint.step


def _is_finite(weight: Tensor) -> bool:
    """Whether the rows of a weight that this process holds are finite. `isfinite` of each takes 20 times as long."""
    rows = own_rows(weight.detach())
    rows = torch.view_as_real(rows) if rows.is_complex() else rows
    return not rows.numel() or bool(torch.stack(rows.aminmax()).isfinite().all())


# The loop


def train_all(trainers: Sequence[Trainer], step: Step, stop: Stop) -> None:
    """Trains runs that are at the same step until they are over or are asked to stop. Most steps train one run; a
    stacked step trains several at once. A run that stops has a checkpoint of its current step. A run that fails has an
    error, and does not affect the others.

    Raises:
        CannotStack: the runs cannot be computed together. They can resume one by one from their checkpoints.
        RunError: a step cannot be computed."""
    for trainer in trainers:
        trainer.module.train()
    with _ending(trainers):
        while (live := _live(trainers)) and not trainers[0].is_stop_asked(stop):
            # Runs that train together are saved together: they resume from a step at which all of them are.
            is_save_due = any(trainer.is_save_due() for trainer in live)
            for trainer in live:
                with trainer.keeping_error():
                    if is_save_due:
                        trainer.save()
                    if trainer.is_evaluation_due():
                        trainer.evaluate(stop)
                        trainer.save()
                    trainer.has_ended = trainer.is_over()
            if _live(trainers):
                _advance(trainers, step, live[0].progress.step)


@contextmanager
def _ending(trainers: Sequence[Trainer]) -> Iterator[None]:
    """Stops the runs that are not over where the training inside ends, and waits for all checkpoints."""
    try:
        with suppress(Interrupted):  # The resumed run repeats the evaluation.
            yield
        _stop_live(trainers)
    except CannotStack as error:
        if error.weights_are_intact:
            _stop_live(trainers)
        raise
    finally:
        # Whoever trains on in the same process must not meet a thread that still writes.
        for trainer in trainers:
            with trainer.keeping_error():
                trainer.checkpoints.finish()


def _live(trainers: Sequence[Trainer]) -> list[Trainer]:
    return [trainer for trainer in trainers if not trainer.has_ended]


def _stop_live(trainers: Sequence[Trainer]) -> None:
    for trainer in _live(trainers):
        with trainer.keeping_error():
            trainer.stop()


def _advance(trainers: Sequence[Trainer], step: Step, number: int) -> None:
    begun = time.perf_counter()
    # Also of runs that have ended: a stacked step computes all of its runs.
    items = [trainer.next_items() for trainer in trainers]
    for trainer in trainers:
        trainer.data_seconds += time.perf_counter() - begun
    try:
        result = step.take(number, items)
    except CannotStack:
        for trainer in trainers:
            trainer.sampler.position -= 1
        raise
    for trainer, batch, loss, norm in zip(trainers, items, result.losses, result.norms, strict=True):
        if not trainer.has_ended:
            with trainer.keeping_error():
                trainer.record_step(begun, batch, loss, norm, result.rate)


def _compiled(module: Architecture) -> Any:  # Any: a module that `setup` of Fabric knows
    import torch._dynamo.config  # it takes more than a second

    # A model that torch cannot compile runs as it is, and torch logs why.
    torch._dynamo.config.suppress_errors = True
    return torch.compile(module)


# Which step's weights a run selects


def ranking(history: Iterable[schemas.EvaluationMetrics], split: str, metric: str) -> list[int]:
    """Returns the steps at which a split was evaluated, the best first, and the latest first of equal ones."""
    return [step for _, step in _ranked(history, split, metric)]


def _ranked(history: Iterable[schemas.EvaluationMetrics], split: str, metric: str) -> list[tuple[float, int]]:
    values = [(line.value(metric), line.step) for line in history if line.split == split]
    measured = [(value, step) for value, step in values if value is not None]
    return sorted(measured, key=lambda pair: (rank(metric, pair[0]), pair[1]), reverse=True)


def evaluations_since_best(history: Iterable[schemas.EvaluationMetrics], split: str, metric: str) -> int:
    """Returns how many evaluations of a split have come since its best value was first measured; 0 before the first
    value. An evaluation whose value is NaN or infinite counts, too."""
    values = [line.value(metric) for line in history if line.split == split]
    ranks = [-math.inf if value is None else rank(metric, value) for value in values]
    best = max(ranks, default=-math.inf)
    return 0 if best == -math.inf else len(ranks) - 1 - ranks.index(best)


def alternatives(history: Sequence[schemas.EvaluationMetrics], metric: str) -> tuple[schemas.Alternative, ...]:
    """Returns, for each split that was evaluated in training, what selecting by the lowest loss would have meant."""
    lowest_loss = []
    for split in dict.fromkeys(line.split for line in history):
        by_loss, by_metric = _ranked(history, split, "loss"), _ranked(history, split, metric)
        if by_loss and by_metric:
            (_, step), (best, best_step) = by_loss[0], by_metric[0]
            value = next((value for value, measured_step in by_metric if measured_step == step), None)
            lowest_loss.append(
                schemas.Alternative(split=split, metric=metric, step=step, value=value, best_step=best_step, best=best)
            )
    return tuple(lowest_loss)
