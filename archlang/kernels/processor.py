"""What processor this is, as far as kernels choose by it."""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path


@cache
def is_made_by(maker: str) -> bool:
    """Whether the processor gives itself a maker's name, such as `GenuineIntel`."""
    try:
        told = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        told = platform.processor()
    return maker in told
