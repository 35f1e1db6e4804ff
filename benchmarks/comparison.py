"""A model of archlang beside the same by hand: with the same weights, on the same batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from benchmarks.measure import Case, Setting, Sides


@dataclass(frozen=True)
class Trial:
    """Two modules, and the loss of a batch that either of them is asked for."""

    ours: nn.Module
    theirs: nn.Module
    loss: Callable[[nn.Module], Tensor]


Trials = Mapping[str, Callable[[Setting], Trial]]


def hand_name(name: str, names: Mapping[str, str]) -> str:
    """The name by hand of a weight of ours: `names` has beginnings of ours, and what stands for each."""
    start = max((one for one in names if name.startswith(one)), key=len)
    return names[start] + name.removeprefix(start)


def share_weights(ours: nn.Module, theirs: nn.Module, names: Mapping[str, str]) -> None:
    """Gives ours the weights of theirs."""
    weights = dict(theirs.named_parameters())
    for name, parameter in ours.named_parameters():
        parameter.data.copy_(weights[hand_name(name, names)].data.view_as(parameter))


def train(module: nn.Module, loss: Callable[[nn.Module], Tensor]) -> None:
    module.zero_grad(set_to_none=True)
    loss(module).backward()  # type: ignore[no-untyped-call]


@torch.no_grad()
def evaluate(module: nn.Module, loss: Callable[[nn.Module], Tensor]) -> None:
    loss(module)


def training_step(build: Callable[[Setting], Trial], setting: Setting) -> Sides:
    """Forward and backward."""
    trial = build(setting)
    modules = (trial.ours, trial.theirs)
    return Sides(*(partial(train, module.to(setting.device).train(), trial.loss) for module in modules))


def evaluation(build: Callable[[Setting], Trial], setting: Setting) -> Sides:
    """Forward, without dropout."""
    trial = build(setting)
    modules = (trial.ours, trial.theirs)
    return Sides(*(partial(evaluate, module.to(setting.device).eval(), trial.loss) for module in modules))


def cases_of(trials: Trials, setting: Setting, beside: str) -> Iterator[Case]:
    """A training step and an evaluation of each."""
    for name, build in trials.items():
        yield Case(f"{name}, forward and backward", beside, partial(training_step, build, setting))
        yield Case(f"{name}, forward", beside, partial(evaluation, build, setting))
