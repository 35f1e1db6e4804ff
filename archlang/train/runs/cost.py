"""What a run costs before it trains: its steps, their FLOPs, and their seconds on this machine."""

import tempfile
import time
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

import torch

from archlang.backend.measured_costs import peak_in_training
from archlang.compile import build
from archlang.graph.summary import FORWARD_AND_BACKWARD, Summary, summarize
from archlang.plan.plan import Plan
from archlang.train.data import DeviceSplit, Sampler
from archlang.train.devices import DTYPES, select_device
from archlang.train.memory import Measure, Remat, steps_together
from archlang.train.runs.points import Point
from archlang.train.runs.training import load_needed, make_settings, train
from archlang.train.settings import Settings
from archlang.train.stop import Stop
from archlang.train.trainer import SILENT, Watcher

# The widths of batches vary; so many of them are counted.
_COUNTED_BATCHES = 8
# The memory of more samples follows from that of so many, or of those that have so many positions, and of half of them.
_MEASURED_SAMPLES, _MEASURED_POSITIONS = 16, 8_192


@dataclass(frozen=True)
class RunCost:
    """The training steps of a run, the FLOPs of all of them, and the positions of its longest sample. `uncounted` are
    the blocks whose FLOPs are unknown."""

    steps: int
    flops: float
    longest: int = 1
    uncounted: tuple[str, ...] = ()


def estimate_cost(plan: Plan, watcher: Watcher = SILENT) -> RunCost:
    """Returns what the training steps of a run cost, from its graph and the lengths of its training data. Loops run to
    their limits, and the gradients cost twice what the outputs cost.

    Raises:
        PluginError: a function of the user's own is in no plugin, or its file cannot be imported.
        RunError: a setting is invalid, or a split that training needs is empty.
        TaskError: the task cannot be made, or its training data cannot be generated."""
    settings, task = make_settings(plan)
    data = DeviceSplit(load_needed(plan, settings, task, watcher)["train"], torch.device("cpu"))
    lengths, sampler = data.lengths, Sampler.of(settings, data, plan.seed)

    @cache
    def of_width(width: int) -> Summary:
        return summarize(plan.graph, width)

    batches = [sampler.next() for _ in range(min(_COUNTED_BATCHES, len(sampler)))]
    samples = [of_width(max(int(lengths[items].max(initial=1)), 1)) for items in batches]
    flops = sum(len(items) * summary.flops for items, summary in zip(batches, samples, strict=True)) / len(batches)
    steps = settings.total_steps(len(sampler))
    longest = max(int(lengths.max(initial=1)), 1)
    return RunCost(steps, FORWARD_AND_BACKWARD * flops * steps, longest, samples[0].uncounted)


def measured_activations(plan: Plan, length: int, precision: str = "32", remat: Remat = 0) -> Measure:
    """Returns a function that measures what a training step holds of samples with `length` positions."""
    make, together = partial(build, plan.graph, plan.plugins), steps_together(plan, remat, length)
    most = max(2, min(_MEASURED_SAMPLES, _MEASURED_POSITIONS // length))
    least = most // 2

    @cache
    def peak(samples: int, is_padded: bool) -> int | None:
        return peak_in_training(make, length, samples, DTYPES[precision], together, is_padded=is_padded)

    def measure(samples: int) -> int | None:
        for is_padded in (True, False):
            high = peak(min(samples, most), is_padded)
            low = high if high is None or samples <= most else peak(least, is_padded)
            if high is None or low is None:
                continue
            # Fewer samples may hold more, where larger maps are computed again.
            added = high - low if high > low else high // 2
            return high + added * max(0, samples - most) // (most - least)
        return None

    return measure


# The first steps are slower than the following ones.
_WARM_UP_STEPS, _TIMED_STEPS = 2, 4
# After so many seconds, the steps until then must suffice.
_MOST_SECONDS = 5.0
# A batch whose matrix products alone take longer is timed in part.
_MOST_SECONDS_OF_PRODUCTS = 1.0
_WIDTH = 512


class _StepClock(Watcher):
    """Notes when each step ends, and stops the run after a few."""

    def __init__(self) -> None:
        self.stop = Stop()
        self.times = [time.perf_counter()]

    def due(self) -> bool:
        return True

    def step(self, step: int, total: int, loss: float, rate: float, tokens: float, depth: float | None) -> None:
        self.times.append(time.perf_counter())
        is_slow = len(self.times) > 2 and self.times[-1] - self.times[1] > _MOST_SECONDS
        self.stop.requested = step >= _WARM_UP_STEPS + _TIMED_STEPS or is_slow


def seconds_per_step(point: Point, cost: RunCost) -> float:
    """Returns the seconds that a training step of a run takes, without evaluations. Trains a few steps in a temporary
    folder. If a step has more FLOPs than this machine computes in a second, the steps have a part of the batch, and the
    seconds are those of the part by its share of the FLOPs.

    Args:
        cost: The cost of the run."""
    most = _MOST_SECONDS_OF_PRODUCTS * matrix_speed(point.device)
    flops = cost.flops / cost.steps
    if flops <= most:
        return _seconds_per_step(point.plan, point)
    batch = Settings(point.plan.train.statics).batch
    statics = {**point.plan.train.statics, "batch": max(1, int(batch * most / flops))}
    part = replace(point.plan, train=replace(point.plan.train, statics=statics))
    cost_of_part = estimate_cost(part)
    return _seconds_per_step(part, point) * flops * cost_of_part.steps / cost_of_part.flops


@cache
def matrix_speed(device: str) -> float:
    """Returns the FLOPs a second of products of two square matrices, which few models reach."""
    place = select_device(device)
    matrix = torch.ones(_WIDTH, _WIDTH, device=place)
    seconds = []
    for _ in range(3):
        begun = time.perf_counter()
        (matrix @ matrix).sum().item()
        seconds.append(time.perf_counter() - begun)
    return 2 * _WIDTH**3 / min(seconds)


def _seconds_per_step(plan: Plan, point: Point) -> float:
    splits = ["train", Settings(plan.train.statics).selecting[0]]
    with tempfile.TemporaryDirectory() as parent:
        folder, clock = Path(parent) / "run", _StepClock()
        train(
            plan, folder, device=point.device, precision=point.precision, watcher=clock, stop=clock.stop, splits=splits,
            eager=True,
        )  # fmt: skip
    # A run of fewer steps has no warm-up; the time of its first step begins with that of the preparations.
    warm_up = _WARM_UP_STEPS if len(clock.times) > _WARM_UP_STEPS + 1 else min(1, len(clock.times) - 2)
    timed = clock.times[warm_up:]
    return (timed[-1] - timed[0]) / max(len(timed) - 1, 1)
