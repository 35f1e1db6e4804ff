"""Compares a compiled model with a handwritten one: same weights, same batch."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from benchmarks.measure import CallOfModule, Case, Setting, Sides


@dataclass(frozen=True)
class ModelPair:
    """Two modules, and a function that returns the loss of either on one batch."""

    ours: nn.Module
    theirs: nn.Module
    loss: Callable[[nn.Module], Tensor]


ModelPairs = Mapping[str, Callable[[Setting], ModelPair]]


def hand_name(name: str, names: Mapping[str, str]) -> str:
    """Returns the handwritten module's name of one of our weights. `names` maps our prefixes to theirs."""
    prefix = max((candidate for candidate in names if name.startswith(candidate)), key=len)
    return names[prefix] + name.removeprefix(prefix)


def share_weights(ours: nn.Module, theirs: nn.Module, names: Mapping[str, str]) -> None:
    """Copies the weights of the handwritten module into ours."""
    weights = dict(theirs.named_parameters())
    for name, parameter in ours.named_parameters():
        parameter.data.copy_(weights[hand_name(name, names)].data.view_as(parameter))


def train(module: nn.Module, loss: Callable[[nn.Module], Tensor]) -> None:
    """Runs forward and backward."""
    module.zero_grad(set_to_none=True)
    loss(module).backward()  # type: ignore[no-untyped-call]


@torch.no_grad()
def evaluate(module: nn.Module, loss: Callable[[nn.Module], Tensor]) -> None:
    """Runs forward without gradients."""
    loss(module)


def training_step(build: Callable[[Setting], ModelPair], setting: Setting) -> Sides:
    """Returns both sides of a training step: forward and backward, without an optimizer step."""
    pair = build(setting)
    ours, theirs = (partial(train, module.to(setting.device).train(), pair.loss) for module in (pair.ours, pair.theirs))
    return Sides(CallOfModule(ours, pair.ours), theirs)


def evaluation(build: Callable[[Setting], ModelPair], setting: Setting) -> Sides:
    """Returns both sides of an evaluation: forward without dropout."""
    pair = build(setting)
    ours, theirs = (
        partial(evaluate, module.to(setting.device).eval(), pair.loss) for module in (pair.ours, pair.theirs)
    )
    return Sides(CallOfModule(ours, pair.ours), theirs)


def cases_of(model_pairs: ModelPairs, setting: Setting, beside: str) -> Iterator[Case]:
    """Yields a training step and an evaluation of each pair."""
    for name, build in model_pairs.items():
        yield Case(f"{name}, forward and backward", beside, partial(training_step, build, setting))
        yield Case(f"{name}, forward", beside, partial(evaluation, build, setting))
