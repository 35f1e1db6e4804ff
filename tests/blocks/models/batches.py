"""Modules with weights that are not their initial values, and padded batches beside their samples."""

from collections.abc import Sequence

import torch
from torch import Tensor

from archlang.backend.architecture import Architecture


def noisy(module: Architecture) -> Architecture:
    """Returns a module in float64 in which no weight is a constant."""
    module = module.double().eval()
    for parameter in module.parameters():
        parameter.data.add_(0.2 * torch.randn_like(parameter))
    return module


def holds_alone(module: Architecture, fields: Sequence[Tensor], lengths: Sequence[Tensor]) -> None:
    """Asserts that each sample of a padded batch has the results that it has alone."""
    names = module.program.fields
    together = module(*fields, lengths=dict(zip(names, lengths, strict=True)))
    for row, counts in enumerate(torch.stack(list(lengths), 1).tolist()):
        alone = module(*(field[[row], :count] for field, count in zip(fields, counts, strict=True)))[0]
        own = together[row, : counts[-1]] if together.dim() == 3 else together[row]
        torch.testing.assert_close(own, alone, atol=1e-12, rtol=1e-12)
