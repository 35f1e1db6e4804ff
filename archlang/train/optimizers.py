"""The torch optimizers that `optimizers.arch` declares."""

import inspect
from collections.abc import Mapping
from importlib import import_module

import torch
from torch import nn
from torch.optim import Optimizer

from archlang.names import library
from archlang.plan.plan import BoundExtern
from archlang.train import mistakes
from archlang.train.settings import SETTING_NAMES
from archlang.types.statics import StaticValue


def make_optimizer(train: BoundExtern, module: nn.Module, precision: str = "32") -> Optimizer:
    """Constructs the optimizer of a recipe over all weights of a module that require gradients.

    Uses torch's fused implementation where there is one, except with 16 bits: scaled gradients could not be clipped
    in it. Every optimizer must treat each number separately, because weights of several seeds may share a tensor.

    Raises:
        RunError: the optimizer is not one of archlang's, or no weight requires gradients."""
    weights = [weight for weight in module.parameters() if weight.requires_grad]
    if not weights:
        raise mistakes.no_weights()
    declared = library.optimizer(train.name)
    if declared is None or declared.python != train.python:
        raise mistakes.foreign_optimizer(train.name)
    module_name, _, class_name = train.python.partition(":")
    optimizer_class = getattr(import_module(module_name), class_name)
    arguments = _torch_arguments(train.statics)
    if "fused" in inspect.signature(optimizer_class).parameters:
        arguments["fused"] = precision != "16"
    optimizer: Optimizer = optimizer_class(weights, **arguments)
    return optimizer


def _torch_arguments(statics: Mapping[str, StaticValue]) -> dict[str, object]:
    """The statics of an optimizer without the training settings, under torch's names."""
    arguments: dict[str, object] = {
        name: value for name, value in statics.items() if name == "lr" or name not in SETTING_NAMES
    }
    if "beta1" in arguments:
        arguments["betas"] = (arguments.pop("beta1"), arguments.pop("beta2"))
    if "epsilon" in arguments:
        arguments["eps"] = arguments.pop("epsilon")
    return arguments


def make_capturable(optimizer: Optimizer, device: torch.device, moves_first_beta: bool) -> None:
    """Prepares an optimizer for capture in CUDA graphs, before its first step: moves the scheduled numbers to the
    device as 32-bit tensors, where each launch of a graph reads them."""
    for group in optimizer.param_groups:
        group["lr"] = torch.tensor(group["lr"], dtype=torch.float32, device=device)
        if "capturable" in group:
            group["capturable"] = True
        if "alpha" in group:
            # RMSprop's single-tensor implementation synchronizes to read the learning rate; the foreach one does not.
            group["foreach"] = True
        if "betas" in group and moves_first_beta:
            # Only Adam's single-tensor implementation reads beta1 from the device.
            first, second = group["betas"]
            moved = torch.tensor(first, dtype=torch.float32, device=device)
            group.update(betas=(moved, second), fused=False, foreach=False)
