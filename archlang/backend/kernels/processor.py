"""The facts by which kernels are chosen."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor

from archlang.backend.runtime.stacking import is_transformed


@cache
def has_kernel(dtype: torch.dtype) -> bool:
    """Returns whether there is a kernel for a dtype: it needs Triton, which comes with torch for CUDA, and has no
    float64."""
    return dtype in (torch.float32, torch.bfloat16, torch.float16) and find_spec("triton") is not None


def is_large_on_cpu(x: Tensor, count: int, least: int) -> bool:
    """Returns whether x is on a CPU, `count` is at least `least`, and the call is not traced or transformed: then forms
    that only gain on many elements, and have no rules for transforms, may compute it."""
    # Comparing a traced size would be a guard on it.
    return not torch.compiler.is_compiling() and count >= least and x.device.type == "cpu" and not is_transformed()
