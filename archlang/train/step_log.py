"""The curves of a run's steps: loss, learning rate, gradient norm, depth and speed."""

import time
from typing import Protocol

import torch
from torch import Tensor

from archlang.backend.architecture import Architecture
from archlang.backend.runtime.loops import halting_loops
from archlang.record.run_folder import Record
from archlang.record.schemas import METRICS, TIMINGS, StepMetrics, StepTiming
from archlang.train.devices import peak_memory
from archlang.train.score import Score


class Watcher(Protocol):
    """Shows the progress of a run. It is called for each logged step, and for other steps when it is `due`."""

    def due(self) -> bool: ...
    def step(
        self, step: int, total: int, loss: float, rate: float, depth: float | None, spared: float | None = None
    ) -> None: ...
    def scored(self, step: int, score: Score, since_best: int = 0) -> None: ...


class StepLog:
    """Writes steps to the record, and shows them to a watcher. A step's speed excludes evaluations."""

    def __init__(
        self, record: Record, watcher: Watcher, module: Architecture, total: int, device: torch.device
    ) -> None:
        self._record = record
        self._watcher = watcher
        self._module = module
        self._total = total
        self._device = device
        self._seconds, self._steps = 0.0, 0

    def count(self, begun: float) -> None:
        """Counts a step that began at `begun`, in seconds of `time.perf_counter`."""
        self._seconds += time.perf_counter() - begun
        self._steps += 1

    def show(self, step: int, loss: Tensor) -> None:
        """Shows a step that is not logged."""
        self._watcher.step(step, self._total, float(loss), self._steps_per_second(), self._depth())

    def write(self, step: int, loss: Tensor, norm: Tensor | None, rate: float) -> None:
        """Logs a step: to `metrics.jsonl` what the seed determines, to `timings.jsonl` the rest."""
        value, depth, speed, spared = float(loss), self._depth(), self._steps_per_second(), self._spared_share()
        gradient_norm = None if norm is None else float(norm)
        charges: dict[str, float | None] = {
            name: float(charge.detach()) for name, charge in self._module.charges.items()
        }
        metrics = StepMetrics(
            step=step, loss=value, lr=rate, gradient_norm=gradient_norm, mean_depth=depth, charges=charges
        )
        self._record.append(METRICS, metrics)
        timing = StepTiming(
            step=step, time=time.time(), steps_per_second=speed, spared=spared, memory=peak_memory(self._device)
        )
        self._record.append(TIMINGS, timing)
        self._record.scalars(step, {f"train/{name}": number for name, number in metrics.scalars().items()})
        self._watcher.step(step, self._total, value, speed, depth, spared)

    def restart_clock(self) -> None:
        """Begins a new interval for the mean speed."""
        self._seconds, self._steps = 0.0, 0

    def _steps_per_second(self) -> float:
        return self._steps / max(self._seconds, 1e-9)

    def _depth(self) -> float | None:
        depth = self._module.mean_depth
        return None if depth is None else float(depth)

    def _spared_share(self) -> float | None:
        """Of the steps of halting loops since the last call, the share that samples which had halted did not need; None
        without such loops."""
        loops = list(halting_loops(self._module))
        computed, masked = sum(loop.computed for loop in loops), sum(loop.masked for loop in loops)
        for loop in loops:
            loop.computed = loop.masked = 0
        return 1 - computed / masked if masked else None
