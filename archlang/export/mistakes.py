"""Errors of exports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from archlang.errors import ErrorWithRemedy, MachineError

if TYPE_CHECKING:
    from archlang.errors.source import Span


# The characters of a message of torch that are shown.
_MOST_REASON = 600


class ExportError(ErrorWithRemedy):
    """A module that cannot be exported, or a file that cannot be written."""


class ExportMachineError(ExportError, MachineError):
    """A module that this machine cannot export."""


unknown_format = ExportError.wording("`{path}` has no suffix of an export", "use one of {suffixes}")
hides_a_module = ExportError.wording(
    "{path} would hide Python's module `{path.stem}`, which fails imports in its folder",
    "choose another name, such as {path.stem}_model{path.suffix}",
)
file_exists = ExportError.wording("{path} exists", "choose another file, or add `--force` to overwrite it")
not_written = ExportError.wording("{path} cannot be written: {reason}", "free some space or choose another file")


def not_exportable(block: str, span: Span | None, reason: str, remedy: str) -> ExportError:
    """A block cannot be exported; `span` is where the program uses it."""
    return ExportError(f"{_place(span)}`{block}` cannot be exported: {reason}", remedy)


def field_not_exportable(span: Span | None, model: str, field: str, kind: str) -> ExportError:
    return ExportError(
        f"{_place(span)}`{model}` cannot be exported: its field `{field}` is `{kind}`",
        "fields of an exported model are tensors whose lengths are names or numbers",
    )


def not_traced(block: str, span: Span | None, reason: str) -> ExportError:
    """torch could not trace a block for a batch and lengths of any size."""
    remedy = "replace the block by one that torch.export can trace for any length, or export to `.py`"
    return not_exportable(block, span, reason[:_MOST_REASON], remedy)


def not_translated(block: str, span: Span | None, reason: str) -> ExportError:
    """torch could trace a block, and not translate it to ONNX."""
    remedy = "replace the block by one of operations that ONNX has, or export to `.pt2` or `.py`"
    return not_exportable(block, span, reason[:_MOST_REASON], remedy)


packages_missing = ExportMachineError.wording("an export to ONNX needs {names}", "run `pip install 'archlang[export]'`")


def not_equal(model: str, span: Span | None, reason: str) -> ExportError:
    """The exported model does not compute what the module computes."""
    message = f"{_place(span)}`{model}` cannot be exported: the written code is not the model, {reason}"
    return ExportError(message, "this is a bug in archlang, unless a block of your own depends on more than its inputs")


def _place(span: Span | None) -> str:
    return "" if span is None else f"{span}: "
