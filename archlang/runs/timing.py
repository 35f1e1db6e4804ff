"""An estimate of the duration of a run, from its first steps."""

import tempfile
import time
from pathlib import Path

from archlang.record.reading import read_record
from archlang.record.schemas import DATA, DataRecord
from archlang.runs.points import Point
from archlang.runs.progress import NoProgress
from archlang.runs.training import train
from archlang.train.settings import Settings
from archlang.train.stop import Stop

# The first steps are slower than the following ones.
_WARM_UP_STEPS, _TIMED_STEPS = 2, 4


class _StepClock(NoProgress):
    """Notes when each step ends, and stops the run after a few."""

    def __init__(self) -> None:
        self.stop = Stop()
        self.times = [time.perf_counter()]

    def due(self) -> bool:
        return True

    def step(
        self, step: int, total: int, loss: float, rate: float, depth: float | None, spared: float | None = None
    ) -> None:
        self.times.append(time.perf_counter())
        self.stop.asked = step >= _WARM_UP_STEPS + _TIMED_STEPS


def time_run(point: Point) -> float:
    """Returns the seconds that the training steps of a run would take, without evaluations. Trains a few steps in a
    temporary folder.

    Raises:
        RunError: The run cannot begin.
        TaskError: The task cannot be made."""
    with tempfile.TemporaryDirectory() as parent:
        folder, clock = Path(parent) / "run", _StepClock()
        train(
            point.plan, folder, device=point.device, precision=point.precision, watcher=clock, stop=clock.stop
        )  # fmt: skip
        items = read_record(folder, DATA, DataRecord).root["train"].items
    settings = Settings.of(point.plan.train.statics)
    steps = settings.total_steps(max(items // settings.batch, 1))
    # A run of fewer steps has no warm-up.
    timed = clock.times[_WARM_UP_STEPS:] if len(clock.times) > _WARM_UP_STEPS + 1 else clock.times
    return (timed[-1] - timed[0]) / max(len(timed) - 1, 1) * steps
