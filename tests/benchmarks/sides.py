"""Compares both sides of a benchmark: a compiled page, and a module written by hand."""

from collections.abc import Mapping, Sequence
from functools import partial

import torch
from torch import Tensor, nn

from benchmarks.comparison import hand_name


def same_sides(
    modules: Sequence[nn.Module], results: Sequence[Tensor], losses: Sequence[Tensor], names: Mapping[str, str]
) -> None:
    """Asserts that two results agree, and the gradients of all weights; `names` are the parts written by hand."""
    torch.testing.assert_close(*results, rtol=1e-10, atol=1e-10)
    ours, theirs = (
        dict(zip(dict(module.named_parameters()), torch.autograd.grad(loss, list(module.parameters())), strict=True))
        for module, loss in zip(modules, losses, strict=True)
    )
    for own, gradient in ours.items():
        hand = theirs.pop(hand_name(own, names)).view_as(gradient)
        torch.testing.assert_close(gradient, hand, rtol=1e-8, atol=1e-10, msg=partial("{}: {}".format, own))
    assert not theirs
