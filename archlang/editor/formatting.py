"""Formats the text of an editor."""

from archlang.editor.document import Document
from archlang.syntax.parser import parse_tolerantly
from archlang.syntax.printer import format_program
from archlang.syntax.reading import BYTE_ORDER_MARK


def formatted(document: Document) -> str | None:
    """Returns the formatted text; None if the text has syntax errors."""
    program, diagnostics = parse_tolerantly(document.source)
    if any(diagnostic.is_error for diagnostic in diagnostics):
        return None
    mark = BYTE_ORDER_MARK if document.text.startswith(BYTE_ORDER_MARK) else ""
    return mark + format_program(program)
