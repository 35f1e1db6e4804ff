"""A training step of several seeds together, against a step of one seed and against steps of all seeds alone:
`python -m benchmarks.together [FILE [RECIPE]] [--seeds 5] [--device cuda]`.

Times steps only, not evaluations, checkpoints or data. Rounds of both kinds alternate."""

import argparse
import statistics
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from archlang.plan.from_file import plan_recipe
from archlang.plan.plan import Plan
from archlang.train.record.mistakes import RunWarning
from archlang.train.runs import evaluation, training
from archlang.train.stop import Stop
from benchmarks.results_text import machine

RECIPE = Path(__file__).parent.parent / "recipes" / "ndr.arch"
NEVER = {"train.steps": "1000000", "train.every": "1000000"}
"""Runs with these settings stop before their first evaluation."""


class Clock(Stop):
    """Stops a run after `warm + timed` steps and times the last `timed` of them. A run asks before each step."""

    def __init__(self, warm: int, timed: int) -> None:
        self._ends = warm, warm + timed
        self._asks = 0
        self._times: list[float] = []

    @property
    def requested(self) -> bool:
        if self._asks in self._ends:
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            self._times.append(time.perf_counter())
        self._asks += 1
        return len(self._times) == len(self._ends)

    @requested.setter
    def requested(self, value: bool) -> None:
        raise KeyboardInterrupt

    @property
    def seconds(self) -> float:
        """The time of one step, in seconds."""
        start, end = self._times
        return (end - start) / (self._ends[1] - self._ends[0])


def alone(plan: Plan, device: str, precision: str, warm: int, timed: int, *, eager: bool = False) -> float:
    """Returns the seconds per step of one seed."""
    clock = Clock(warm, timed)
    with TemporaryDirectory() as folder:
        training.train(plan, Path(folder) / "run", device=device, precision=precision, eager=eager, stop=clock)
    return clock.seconds


def together(plans: Sequence[Plan], device: str, precision: str, warm: int, timed: int) -> float:
    """Returns the seconds per step of all seeds together."""
    clock = Clock(warm, timed)
    with TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RunWarning)
        folders = [Path(folder) / str(plan.seed) for plan in plans]
        outcomes = training.train_together(plans, folders, device=device, precision=precision, stop=clock)
    for warning in caught:
        if "cannot train together" in str(warning.message):
            raise SystemExit(str(warning.message))
    for outcome in outcomes:
        if not isinstance(outcome, evaluation.Result):
            raise outcome
    return clock.seconds


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.together")
    parser.add_argument("file", nargs="?", type=Path, default=RECIPE)
    parser.add_argument("recipe", nargs="?")
    parser.add_argument("--set", action="append", default=[], help="a static of the recipe; may be repeated")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--precision", default="32")
    parser.add_argument("--warm", type=int, default=10, help="steps before timing")
    parser.add_argument("--steps", type=int, default=50, help="steps to time")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    sets = {**dict(setting.split("=", 1) for setting in options.set), **NEVER}
    plans = [
        plan_recipe(options.file, options.recipe, sets={**sets, "seed": str(seed)})
        for seed in range(1, options.seeds + 1)
    ]
    settings = options.device, options.precision, options.warm, options.steps
    print(machine())
    ones, alls, togethers = [], [], []
    for _ in range(options.rounds):
        each = [alone(plan, *settings) for plan in plans]
        ones.append(statistics.median(each))
        alls.append(sum(each))
        togethers.append(together(plans, *settings))
        print(
            f"a step of one {1e3 * ones[-1]:.1f} ms, of {options.seeds} alone {1e3 * alls[-1]:.1f} ms, together "
            f"{1e3 * togethers[-1]:.1f} ms",
            flush=True,
        )
    by_one = statistics.median(both / single for both, single in zip(togethers, ones, strict=True))
    by_all = statistics.median(both / every for both, every in zip(togethers, alls, strict=True))
    print(f"{plans[0].recipe}: {options.seeds} seeds together take {by_one:.2f} of one, {by_all:.2f} of all alone")


if __name__ == "__main__":
    main()
