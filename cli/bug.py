"""`archlang bug`: what a report of a bug needs."""

import platform
from importlib import metadata

from archlang.cli import console
from archlang.source import package


def versions() -> list[str]:
    """The versions of archlang, torch and Python. Does not import torch."""
    try:
        torch = f"torch {metadata.version('torch')}"
    except metadata.PackageNotFoundError:
        torch = "torch is not installed"
    return [f"archlang {package.VERSION}", torch, f"Python {platform.python_version()}"]


def bug() -> None:
    """Print a report of the last internal error: versions, device, command, program and traceback.

    Read it before you send it: the program and the paths are yours. Nothing is sent by the command.

    Example: archlang bug
    """
    from archlang.diagnostics.bugs import kept_bug

    report = kept_bug()
    lines = [
        *versions(),
        platform.platform(),
        _device(),
        "",
        report or "No internal error is kept in the cache folder.",
    ]
    console.out.write("\n".join(lines))
    console.err.write("report it as an issue of the repository that your archlang comes from")


def _device() -> str:
    try:
        import torch
    except (ImportError, OSError) as error:
        return f"torch cannot be imported: {error}"
    names = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return ", ".join(names) or f"{platform.machine()}, no GPU"
