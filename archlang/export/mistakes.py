"""Errors of exports."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from archlang.diagnostics import ErrorWithRemedy

if TYPE_CHECKING:
    from archlang.source import Span


class ExportError(ErrorWithRemedy):
    """A module that cannot be exported, or a file that cannot be written."""


def unknown_format(path: Path, suffixes: Iterable[str]) -> ExportError:
    return ExportError(f"`{path}` has no suffix of an export", f"use one of {', '.join(suffixes)}")


def file_exists(path: Path) -> ExportError:
    return ExportError(f"{path} exists", "choose another file, or add `--force` to overwrite it")


def not_written(path: Path, reason: str) -> ExportError:
    return ExportError(f"{path} cannot be written: {reason}", "free some space or choose another file")


def not_exportable(block: str, span: Span | None, reason: str, remedy: str) -> ExportError:
    """A block cannot be exported; `span` is where the program uses it."""
    place = "" if span is None else f"{span}: "
    return ExportError(f"{place}`{block}` cannot be exported: {reason}", remedy)
