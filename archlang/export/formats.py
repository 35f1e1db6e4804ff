"""The formats of exports, by the suffixes of their files."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from archlang.backend.architecture import Architecture
from archlang.disk.os_errors import os_errors_as
from archlang.export import mistakes
from archlang.export.plain.file import export_plain
from archlang.export.traced import export_onnx, export_pt2

# Each writes a module to a path, and returns the files that it wrote.
FORMATS: Mapping[str, Callable[[Architecture, Path], list[Path]]] = {
    ".pt2": export_pt2, ".onnx": export_onnx, ".py": export_plain,
}  # fmt: skip
_BESIDE: Mapping[str, tuple[str, ...]] = {".py": (".pt",)}
"""the suffixes of further files that a format writes beside its own"""
_IMPORTED = sys.stdlib_module_names | {"torch", "numpy"}
"""the modules that an exported Python file of the same name would hide from itself and from its neighbours"""


def export(module: Architecture, path: Path, *, overwrite: bool = False, is_stored: bool = False) -> list[Path]:
    """Writes a module in the format of the path's suffix. Returns the files that it wrote. Python that is written for
    a stored graph, which may be a stranger's, is not run.

    Raises:
        ExportError: no format has this suffix, a file exists and `overwrite` is false, the model has a block that the
            format cannot express, or a file cannot be written."""
    check_target(path, overwrite=overwrite)
    with os_errors_as(mistakes.not_written, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".py":
            return export_plain(module, path, runs=not is_stored)
        return FORMATS[path.suffix](module, path)


def check_target(path: Path, *, overwrite: bool) -> None:
    """Checks the path of an export before the model is built.

    Raises:
        ExportError: no format has its suffix, a Python file has the name of a module that torch imports, or a file
            exists and `overwrite` is false."""
    if path.suffix not in FORMATS:
        raise mistakes.unknown_format(path, FORMATS)
    if path.suffix == ".py" and path.stem in _IMPORTED:
        raise mistakes.hides_a_module(path)
    for file in (path, *(path.with_suffix(suffix) for suffix in _BESIDE.get(path.suffix, ()))):
        if file.is_dir() or (file.exists() and not overwrite):
            raise mistakes.file_exists(file)
