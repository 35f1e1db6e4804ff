"""Errors of exports."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from archlang.diagnostics import ErrorWithRemedy

if TYPE_CHECKING:
    from archlang.source import Span


# The characters of a message of torch that are shown.
_MOST_REASON = 600


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


def field_not_exportable(model: str, field: str, kind: str) -> ExportError:
    return ExportError(
        f"`{model}` cannot be exported: its field `{field}` is `{kind}`",
        "fields of an exported model are tensors whose lengths are names or numbers",
    )


def not_traced(model: str, error: Exception) -> ExportError:
    """torch could not trace a model. Its notes are the places of the program, innermost first."""
    notes = getattr(error, "__notes__", [])
    place = f"{notes[0]} " if notes else ""
    reason = " ".join(str(error).split())
    return ExportError(
        f"{place}`{model}` cannot be exported: {type(error).__name__}: {reason[:_MOST_REASON]}",
        "replace the block by one that torch.export can trace for any length, or export to `.py`",
    )


def packages_missing(names: Iterable[str]) -> ExportError:
    return ExportError(
        f"an export to ONNX needs {' and '.join(names)}", "install archlang with the extra: pip install -e '.[export]'"
    )


def not_equal(model: str, reason: str) -> ExportError:
    """The exported model does not compute what the module computes."""
    message = f"`{model}` cannot be exported: the written code is not the model, {reason}"
    return ExportError(message, "this is a bug in archlang, unless a block of your own depends on more than its inputs")
