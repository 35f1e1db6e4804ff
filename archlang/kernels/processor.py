"""The facts about the machine by which kernels are chosen."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

import torch


@cache
def has_kernel(dtype: torch.dtype) -> bool:
    """Returns whether there is a kernel for a dtype: it needs Triton, which comes with torch for CUDA, and has no
    float64."""
    return dtype in (torch.float32, torch.bfloat16, torch.float16) and find_spec("triton") is not None
