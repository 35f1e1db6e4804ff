"""The bytes of memory that the training of a recipe needs on each of its devices; counted without torch."""

import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from math import ceil
from pathlib import Path
from typing import Literal

from archlang.graph.decoding import decoding_state
from archlang.graph.graph import Graph, Region
from archlang.graph.operations import Halting, OwnWeights, Repeat, step_limit
from archlang.graph.prune import normalize
from archlang.graph.summary import Summary, summarize, weights, weights_by_path
from archlang.plan.plan import Plan
from archlang.tasks.kit.make_task import is_own, unchecked_task
from archlang.tasks.kit.task import DecodableTask
from archlang.train.record.reading import weight_counts
from archlang.train.refusals import refusal, samples_of_batch
from archlang.types import Dim

Remat = int | Literal["auto"]
"""How many steps of a loop the backward pass computes again together; 0 keeps what they compute."""
Measure = Callable[[int], int | None]
"""Returns the bytes that a step holds of so many samples, besides weights and their gradients, if it knows them."""
_NUMBER_BYTES = 4
# By optimizer, the numbers that it keeps for each weight; the momentum of rmsprop, sgd and muon is one more.
MOMENTS = {"adamw": 2, "adam": 2, "rmsprop": 1, "sgd": 0, "lion": 1, "muon": 0, "schedule_free": 2}


@dataclass(frozen=True)
class Memory:
    """Bytes on one device at the peak of a training step. `gathered` are the weights and gradients of other devices
    that a sharded model has at a time, and `evaluation` the weights that it has while it writes answers. `is_counted`:
    activations that were to be measured are those of the page as it is written."""

    weights: int
    gradients: int
    state: int
    activations: int
    gathered: int = 0
    evaluation: int = 0
    is_counted: bool = False

    @property
    def total(self) -> int:
        return self.weights + self.gradients + self.state + max(self.activations + self.gathered, self.evaluation)

    def __str__(self) -> str:
        parts = {
            "weights": self.weights, "gradients": self.gradients, "optimizer": self.state,
            "gathered": max(self.gathered, self.evaluation),
            "activations as the page is written" if self.is_counted else "activations": self.activations,
        }  # fmt: skip
        listed = ", ".join(f"{name} {size(count)}" for name, count in parts.items() if count or name != "gathered")
        return f"{size(self.total)} a device ({listed})"


def size(count: int) -> str:
    """Returns a number of bytes in words."""
    return f"{count / 1e9:,.1f} GB" if count >= 1e8 else f"{count / 1e6:,.1f} MB"


def training_memory(
    plan: Plan, length: int | None, devices: int = 1, *, sharded: bool = False, remat: Remat = 0,
    measure: Measure | None = None,
) -> Memory:  # fmt: skip
    """Returns what training needs on each of `devices`. Activations are about those of the samples that go through the
    model at a time, with `length` positions each; None counts no activations. Those that `measure` does not know are
    counted, as the page is written."""
    costs = summarize(plan.graph, length or 1)
    all_weights = _NUMBER_BYTES * costs.unique
    at_test = 0 if plan.at_test is plan.graph else _NUMBER_BYTES * summarize(plan.at_test, 1).unique
    statics = plan.train.statics
    trained = all_weights - _NUMBER_BYTES * _frozen(plan)
    moments = MOMENTS.get(plan.train.name, 0) + bool(statics.get("momentum"))
    average = all_weights * bool(statics.get("ema"))
    activations, is_counted = 0, False
    if length is not None:
        kept = [costs.activations] if not remat else _kept_activations(plan, costs)
        numbers = min(kept) if remat == "auto" else kept[min(remat, len(kept)) - 1]
        samples = _samples_at_a_time(plan, length, devices)
        measured = None if measure is None else measure(samples)
        activations = _NUMBER_BYTES * numbers * samples if measured is None else measured
        is_counted = measured is None and measure is not None
    if not sharded or devices == 1:
        # Processes that share gradients copy them to buckets.
        gradients = trained * (1 if devices == 1 else 2)
        state = moments * trained + average
        return Memory(all_weights + at_test, gradients, state, activations, is_counted=is_counted)
    units = _units(plan.graph, plan.graph.region, costs.nodes).values()
    root = all_weights - _NUMBER_BYTES * sum(own * copies for own, copies in units)
    largest = _NUMBER_BYTES * max((own for own, _ in units), default=0)
    share, trained_share = ceil(all_weights / devices), ceil(trained / devices)
    return Memory(
        share + ceil(at_test / devices), trained_share, moments * trained_share + ceil(average / devices), activations,
        # With a step of a stack, the next one is gathered; the gradients of one are divided at a time.
        gathered=2 * root + 3 * largest, evaluation=(at_test or all_weights) if _writes_answers(plan) else 0,
        is_counted=is_counted,
    )  # fmt: skip


def _frozen(plan: Plan) -> int:
    """Returns how many weights training leaves alone: those that `frozen` names, and with `loaded` those of the same
    size in the first checkpoint of `weights`; none of the latter if it cannot be read."""
    names = plan.train.statics.get("frozen", ())
    chosen = [str(name) for name in names] if isinstance(names, tuple) else []
    if not chosen:
        return 0
    loaded: dict[str, int] = {}  # by the paths of instances
    source = plan.train.statics.get("weights")
    for name, count in (weight_counts(Path(str(source))) if "loaded" in chosen else {}).items():
        for path in accumulate(name.split(".")[:-1], "{}.{}".format):
            loaded[path] = loaded.get(path, 0) + count
    total = 0
    for own, count in weights_by_path(plan.graph):
        if loaded.get(own) == count or any(f".{name}." in f".{own}." for name in chosen):
            total += count
    return total


def memory_by_devices(
    plan: Plan, length: int, devices: int, *, remat: Remat = 0, measure: Measure | None = None
) -> dict[str, Memory]:
    """Returns what training needs on one device, on each of several, and with `--shard` if that is possible."""
    need = partial(training_memory, plan, length, remat=remat, measure=measure)
    needs = {"1 device": need()}
    if devices > 1:
        needs[f"{devices} devices"] = need(devices)
        if refusal(plan, count=devices, shard=True) is None:
            needs[f"{devices} devices, --shard"] = need(devices, sharded=True)
    return needs


def _writes_answers(plan: Plan) -> bool:
    """Whether an evaluation may write answers token by token, as processes do at different speeds."""
    if decoding_state(plan.at_test) is None:
        return False
    task = plan.task
    return not is_own(task.python) or isinstance(unchecked_task(task.name, task.python, task.statics), DecodableTask)


def _samples_at_a_time(plan: Plan, length: int, devices: int) -> int:
    micro = plan.train.statics.get("micro")
    share = ceil(samples_of_batch(plan.train, length) / devices)
    return min(share, micro) if isinstance(micro, int) and micro else share


def steps_together(plan: Plan, remat: Remat, length: int) -> int:
    """Returns how many steps of a loop backward computes again together: of `auto`, the number that keeps the fewest
    bytes of a sample with `length` positions."""
    if remat != "auto":
        return remat
    kept = _kept_activations(plan, summarize(plan.graph, length))
    return kept.index(min(kept)) + 1


def _kept_activations(plan: Plan, costs: Summary) -> list[int]:
    """The activations of a sample where the outermost loops keep the states between groups of steps, and the insides of
    one group at a time: by the number of steps of a group, from 1."""
    rest, inside_halting = costs.activations, 0
    loops: list[tuple[int, int, int]] = []  # the steps, the numbers of their states, and those inside a step
    for node in normalize(plan.graph).region.nodes:
        cost = costs.nodes.get(node.id)
        steps = min(step_limit(node.operation) or 0, getattr(node.operation, "truncated", None) or sys.maxsize)
        if cost is None or not steps or getattr(node.operation, "settled", False):
            continue
        named = {name: Dim.of(costs.length) for kind in node.types for name in kind.count.names}
        states, inside = (
            sum(kind.count.substitute(named).constant or 0 for kind in node.types),
            cost.activations // steps,
        )
        rest -= cost.activations
        if isinstance(node.operation, Halting):  # whose groups have one step
            rest, inside_halting = rest + steps * states, max(inside_halting, inside)
        else:
            loops.append((steps, states, inside))
    return [
        rest
        + sum(ceil(steps / group) * states for steps, states, _ in loops)
        + max([inside_halting, *(min(group, steps) * inside for steps, _, inside in loops)])
        for group in range(1, max((steps for steps, *_ in loops), default=1) + 1)
    ]


def _units(graph: Graph, region: Region, computed: Collection[str]) -> dict[str, tuple[int, int]]:
    """Returns, by the paths of stacks and experts, the weights of a step that is sharded on its own, without those of
    such steps inside it, and how many like it there are. Loops whose number of steps depends on the data have none."""
    units: dict[str, tuple[int, int]] = {}
    for node in region.nodes:
        if isinstance(node.operation, Repeat):
            units |= _units(graph, node.regions[0], computed)
        elif isinstance(node.operation, OwnWeights) and node.id in computed:
            count, inner = node.operation.count, _units(graph, node.regions[0], computed)
            own = weights(graph, node, computed) // max(count, 1)
            units[node.operation.path] = own - sum(each * copies for each, copies in inner.values()), count
            units |= {path: (each, copies * count) for path, (each, copies) in inner.items()}
    return units
