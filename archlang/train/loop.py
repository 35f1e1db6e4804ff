"""The training loop: steps, evaluations, checkpoints, and a clean stop at any moment."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from archlang.record.mistakes import RunError
from archlang.train.score import Interrupted
from archlang.train.step.protocol import CannotStack, Step
from archlang.train.stop import Stop
from archlang.train.training_run import TrainingRun


@dataclass(frozen=True)
class Trained:
    """How a run ended: at which step, and whether it was stopped before its end."""

    step: int
    stopped: bool


class Loop:
    """Trains runs that are at the same step. Most steps train one run; a stacked step trains several at once."""

    def __init__(self, runs: Sequence[TrainingRun], step: Step) -> None:
        self._runs = runs
        self._step = step
        self._ends: dict[int, Trained | RunError] = {}

    def run(self, stop: Stop) -> list[Trained | RunError]:
        """Trains until the runs are over or are asked to stop. A run that stops has a checkpoint of its
        current step.

        Returns how each run ended, or its error. A run that fails does not affect the others.

        Raises:
            CannotStack: the runs cannot be computed together. They can resume one by one from their checkpoints.
            RunError: a step cannot be computed."""
        for run in self._runs:
            run.module.train()
        try:
            self._train(stop)
        except Interrupted:
            pass  # The resumed run repeats the evaluation.
        except CannotStack as error:
            if error.weights_are_intact:
                self._for_each_live(self._stop)
            raise
        self._for_each_live(self._stop)
        return [self._ends[index] for index in range(len(self._runs))]

    def _train(self, stop: Stop) -> None:
        while (live := self._live()) and not self._is_stop_asked(stop):
            number = live[0].progress.step
            self._for_each_live(partial(self._evaluate_if_due, stop))
            self._for_each_live(self._end_if_over)
            if self._live():
                self._advance(number)

    def _live(self) -> list[TrainingRun]:
        return [run for index, run in enumerate(self._runs) if index not in self._ends]

    def _for_each_live(self, act: Callable[[int, TrainingRun], Trained | None]) -> None:
        """Calls a function with each run that has not ended. The run ends with the result or the RunError."""
        for index, run in enumerate(self._runs):
            if index in self._ends:
                continue
            try:
                end: Trained | RunError | None = act(index, run)
            except RunError as error:
                end = error
            if end is not None:
                self._ends[index] = end

    def _is_stop_asked(self, stop: Stop) -> bool:
        """Whether any process is asked to stop: all of them stop after the same step."""
        fabric = self._runs[0].fabric
        if fabric.world_size == 1:
            return stop.asked
        stop_count = torch.tensor(float(stop.asked), device=fabric.device)
        total = fabric.all_reduce(stop_count, reduce_op="sum")
        assert isinstance(total, Tensor)
        return bool(total > 0)

    def _evaluate_if_due(self, stop: Stop, index: int, run: TrainingRun) -> None:
        if run.is_evaluation_due():
            run.evaluate(stop)
            self._save(index, run)

    def _end_if_over(self, index: int, run: TrainingRun) -> Trained | None:
        return Trained(run.progress.step, stopped=False) if run.is_over() else None

    def _stop(self, index: int, run: TrainingRun) -> Trained:
        if not run.has_checkpoint():
            self._save(index, run)
        return Trained(run.progress.step, stopped=True)

    def _save(self, index: int, run: TrainingRun) -> None:
        run.save(lambda: self._step.state(index))

    def _advance(self, number: int) -> None:
        begun = time.perf_counter()
        # Also of runs that have ended: a stacked step computes all of its runs.
        items = [run.sampler.next() for run in self._runs]
        try:
            result = self._step.take(number, items)
        except CannotStack:
            for run in self._runs:
                run.sampler.position -= 1
            raise
        self._for_each_live(
            lambda index, run: run.record_step(begun, result.losses[index], result.norms[index], result.rate)
        )
