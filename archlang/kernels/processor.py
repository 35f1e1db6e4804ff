"""The maker of the processor, by which kernels are chosen."""

from __future__ import annotations

import platform
from functools import cache
from pathlib import Path


@cache
def is_made_by(maker: str) -> bool:
    """Returns whether the processor reports a maker's name, such as `GenuineIntel`."""
    try:
        description = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        description = platform.processor()
    return maker in description
