"""archlang: a language in which a neural architecture is a page of text."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from archlang.disk.package import VERSION
from archlang.errors import ArchlangError, ProgramError

if TYPE_CHECKING:
    from archlang.api.loader import loader
    from archlang.api.run import Run, inspect, load_run, picture
    from archlang.api.saving import load, pull, push, save
    from archlang.backend.decode.sampling import Sampling
    from archlang.plan.check import check

__version__ = VERSION

__all__ = [
    "ArchlangError",
    "ProgramError",
    "Run",
    "Sampling",
    "__version__",
    "check",
    "inspect",
    "load",
    "load_run",
    "loader",
    "picture",
    "pull",
    "push",
    "save",
]

# The module of each name that is imported at its first use: most of them import torch.
_LAZY = {
    "Run": "archlang.api.run",
    "Sampling": "archlang.backend.decode.sampling",
    "check": "archlang.plan.check",
    "inspect": "archlang.api.run",
    "load": "archlang.api.saving",
    "load_run": "archlang.api.run",
    "loader": "archlang.api.loader",
    "picture": "archlang.api.run",
    "pull": "archlang.api.saving",
    "push": "archlang.api.saving",
    "save": "archlang.api.saving",
}


def __getattr__(name: str) -> Any:  # Any: whatever the name stands for
    if name not in _LAZY:
        raise AttributeError(f"module 'archlang' has no attribute {name!r}")
    return getattr(import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
