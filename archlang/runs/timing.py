"""How long the training steps of a run take on this machine, from its first steps."""

import tempfile
import time
from pathlib import Path

from archlang.runs.points import Point
from archlang.runs.progress import NoProgress
from archlang.runs.training import train
from archlang.train.stop import Stop

# The first steps are slower than the following ones.
_WARM_UP_STEPS, _TIMED_STEPS = 2, 4
# After so many seconds, the steps until then must suffice.
_MOST_SECONDS = 20.0


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
        is_slow = len(self.times) > 2 and self.times[-1] - self.times[1] > _MOST_SECONDS
        self.stop.asked = step >= _WARM_UP_STEPS + _TIMED_STEPS or is_slow


def seconds_per_step(point: Point) -> float:
    """Returns the seconds that a training step of a run takes, without evaluations. Trains a few steps in a temporary
    folder.

    Raises:
        RunError: The run cannot begin.
        TaskError: The task cannot be made."""
    with tempfile.TemporaryDirectory() as parent:
        folder, clock = Path(parent) / "run", _StepClock()
        train(
            point.plan, folder, device=point.device, precision=point.precision, watcher=clock, stop=clock.stop
        )  # fmt: skip
    # A run of fewer steps has no warm-up; the time of its first step begins with that of the preparations.
    warm_up = _WARM_UP_STEPS if len(clock.times) > _WARM_UP_STEPS + 1 else min(1, len(clock.times) - 2)
    timed = clock.times[warm_up:]
    return (timed[-1] - timed[0]) / max(len(timed) - 1, 1)
