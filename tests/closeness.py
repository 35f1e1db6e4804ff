"""How tests compare results of floating point."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import torch
from torch import Tensor

# A product of float32 differs by some units of 6e-8 of its largest term, by which kernel the CPU chose.
_TOLERANCES = {torch.float32: 1e-5, torch.float64: 1e-10}


def close(actual: object, expected: object) -> None:
    """`torch.testing.assert_close` with one tolerance for all elements, in units of the largest expected value.

    A kernel's rounding errors are fractions of the largest values, so small elements, such as those of a gradient that
    cancels, have large relative errors.
    """
    if not isinstance(expected, torch.Tensor):
        assert isinstance(actual, tuple | list)
        assert isinstance(expected, tuple | list)
        for pair in zip(actual, expected, strict=True):
            close(*pair)
        return
    largest = expected.detach().double().abs().max().item() if expected.numel() else 0
    tolerance = _TOLERANCES.get(expected.dtype, 0) * max(1, largest)
    torch.testing.assert_close(actual, expected, rtol=0, atol=tolerance)


def same_gradients(
    actual: Tensor,
    expected: Tensor,
    leaves: Iterable[Tensor],
    expected_leaves: Iterable[Tensor] | None = None,
    *,
    tolerance: float = 1e-10,
    names: Sequence[str] = (),
) -> None:
    """Asserts that two results agree, and so do the gradients of a random weighted sum of each in its leaves."""
    leaves = list(leaves)
    near = partial(torch.testing.assert_close, rtol=tolerance, atol=tolerance)
    near(actual, expected, msg="result: {}".format)
    if not leaves:
        return
    probe = torch.randn_like(expected)
    gradients, expected_gradients = (
        torch.autograd.grad((result * probe).sum(), list(of), allow_unused=True, materialize_grads=True)
        for result, of in ((actual, leaves), (expected, leaves if expected_leaves is None else expected_leaves))
    )
    for index, (gradient, expected_gradient) in enumerate(zip(gradients, expected_gradients, strict=True)):
        label = names[index] if names else str(index)
        near(gradient, expected_gradient, msg=partial("gradient of {}: {}".format, label))
