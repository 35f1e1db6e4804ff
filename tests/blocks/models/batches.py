"""Modules with weights that are not their initial values."""

import torch

from archlang.backend.architecture import Architecture


def noisy(module: Architecture) -> Architecture:
    """Returns a module in float64 in which no weight is a constant."""
    module = module.double().eval()
    for parameter in module.parameters():
        parameter.data.add_(0.2 * torch.randn_like(parameter))
    return module
