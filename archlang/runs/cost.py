"""The cost of a run before it trains: its steps, and their FLOPs."""

from dataclasses import dataclass
from functools import cache

import numpy as np

from archlang.diagnostics.terminal import Terminal
from archlang.graph.summary import Summary, summarize
from archlang.plan.plan import Plan
from archlang.runs.preparation import make_settings
from archlang.runs.splits import load_splits
from archlang.train.data import Sampler

# The widths of batches vary; so many of them are counted.
_COUNTED_BATCHES = 8
# The gradients of a matrix product are two matrix products.
_FORWARD_AND_BACKWARD = 3


@dataclass(frozen=True)
class RunCost:
    """The training steps of a run, and the FLOPs of all of them. `uncounted` are the blocks whose FLOPs are unknown."""

    steps: int
    flops: float
    uncounted: tuple[str, ...] = ()


def estimate_cost(plan: Plan, console: Terminal | None = None) -> RunCost:
    """Returns what the training steps of a run cost, from its graph and the lengths of its training data. Loops run to
    their limits, and the gradients cost twice what the outputs cost.

    Raises:
        PluginError: a function of the user's own is in no plugin, or its file cannot be imported.
        RunError: a setting is invalid.
        TaskError: the task cannot be made, or its training data cannot be generated."""
    settings, task, _ = make_settings(plan)
    split = load_splits(plan.task.name, plan.task.statics, task, ["train"], console)["train"]
    lengths = np.max([field.lengths for field in split.inputs.values()], axis=0)
    sampler = Sampler.of(settings, lengths, plan.seed)

    @cache
    def of_width(width: int) -> Summary:
        return summarize(plan.graph, width)

    batches = [sampler.next() for _ in range(min(_COUNTED_BATCHES, len(sampler)))]
    samples = [of_width(max(int(lengths[items].max(initial=1)), 1)) for items in batches]
    flops = sum(len(items) * summary.flops for items, summary in zip(batches, samples, strict=True)) / len(batches)
    steps = settings.total_steps(len(sampler))
    return RunCost(steps, _FORWARD_AND_BACKWARD * flops * steps, samples[0].uncounted)
