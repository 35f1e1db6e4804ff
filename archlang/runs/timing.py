"""How long a run would take, from a few steps of it."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from archlang.record.reading import read_record
from archlang.record.schemas import DATA, DataRecord
from archlang.runs.points import Point
from archlang.runs.training import train
from archlang.train.settings import Settings
from archlang.train.stop import Stop

# The first steps are slower than those after them.
_WARM, _TIMED = 2, 4


class _After(Stop):
    """A stop after a few steps: a run asks before each of them."""

    def __init__(self) -> None:
        self.times: list[float] = []

    @property
    def asked(self) -> bool:
        self.times.append(time.perf_counter())
        return len(self.times) > _WARM + _TIMED

    @asked.setter
    def asked(self, value: bool) -> None:
        raise KeyboardInterrupt


def time_run(point: Point) -> float:
    """The seconds that a run's training steps would take, evaluations apart.

    Raises:
        RunError: the run cannot begin.
        TaskError: its task cannot be made."""
    with tempfile.TemporaryDirectory() as place:
        folder, stop = Path(place) / "run", _After()
        train(point.plan, folder, device=point.device, precision=point.precision, stop=stop)
        items = read_record(folder, DATA, DataRecord).root["train"].items
    settings = Settings.of(point.plan.train.statics)
    steps = settings.total_steps(max(items // settings.batch, 1))
    if len(stop.times) <= _WARM + _TIMED:  # a run of fewer steps has shown all of them
        return stop.times[-1] - stop.times[0]
    return (stop.times[_WARM + _TIMED] - stop.times[_WARM]) / _TIMED * steps
