"""The optimizers that `optimizers.arch` declares."""

from __future__ import annotations

import torch
from torch import nn
from torch.optim import SGD, Adam, AdamW, Optimizer, RMSprop

from archlang.plan.plan import BoundExtern
from archlang.train import mistakes
from archlang.train.settings import Settings


def make_optimizer(chosen: BoundExtern, settings: Settings, module: nn.Module, precision: str = "32") -> Optimizer:
    """The optimizer that a recipe names, over everything in the module that learns. One pass takes all weights a step
    on, where torch has such a form; gradients that are scaled, those of 16 bits, could not be clipped in it.

    Each of them treats every number by itself, so that weights of several seeds may stand in one tensor; one that does
    not must not train them together.

    Raises:
        RunError: it is none of archlang's, or nothing learns."""
    weights = [weight for weight in module.parameters() if weight.requires_grad]
    if not weights:
        raise mistakes.no_weights()
    betas = (settings.beta1, settings.beta2)
    lr, decay, epsilon = settings.lr, settings.weight_decay, settings.epsilon
    fused = precision != "16"
    match chosen.python:
        case "torch.optim:AdamW":
            return AdamW(weights, lr=lr, betas=betas, eps=epsilon, weight_decay=decay, fused=fused)
        case "torch.optim:Adam":
            return Adam(weights, lr=lr, betas=betas, eps=epsilon, weight_decay=decay, fused=fused)
        case "torch.optim:RMSprop":
            return RMSprop(
                weights, lr=lr, alpha=settings.alpha, eps=epsilon, weight_decay=decay, momentum=settings.momentum
            )
        case "torch.optim:SGD":
            return SGD(weights, lr=lr, momentum=settings.momentum, weight_decay=decay, fused=fused)
    raise mistakes.foreign_optimizer(chosen.name)


def make_capturable(optimizer: Optimizer, device: torch.device, moves_first_beta: bool) -> None:
    """Prepares an optimizer for CUDA graphs, before its first step: what a schedule moves lies on the device, where a
    graph reads it at every launch, in 32 bits, as torch's forms for graphs want it."""
    for group in optimizer.param_groups:
        group["lr"] = torch.tensor(group["lr"], dtype=torch.float32, device=device)
        if "capturable" in group:
            group["capturable"] = True
        if "alpha" in group:
            # Of RMSprop's forms, the one for single weights asks the device for the learning rate.
            group["foreach"] = True
        if "betas" in group and moves_first_beta:
            # Of Adam's forms, the one for single weights alone reads beta1 from the device.
            first, second = group["betas"]
            moved = torch.tensor(first, dtype=torch.float32, device=device)
            group.update(betas=(moved, second), fused=False, foreach=False)
