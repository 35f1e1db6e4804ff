"""archlang: a language in which a neural architecture is a page of text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from archlang.diagnostics import ArchlangError, ProgramError

if TYPE_CHECKING:
    from archlang.compile import load
    from archlang.plan.check import check

__version__ = "0.1.0"

__all__ = ["ArchlangError", "ProgramError", "__version__", "check", "load"]


def __getattr__(name: str) -> Any:  # Any: whatever the name stands for; torch is imported only when it is asked for
    if name == "load":
        from archlang.compile import load

        return load
    if name == "check":
        from archlang.plan.check import check

        return check
    raise AttributeError(f"module 'archlang' has no attribute {name!r}")
