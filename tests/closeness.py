"""How tests compare results of floating point."""

from __future__ import annotations

import torch

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
