"""Formats the text of an editor."""

from archlang.diagnostics import ProgramError
from archlang.editor.document import Document
from archlang.syntax.parser import parse
from archlang.syntax.printer import format_program


def formatted(document: Document) -> str | None:
    """Returns the formatted text; None if the text has syntax errors."""
    try:
        return format_program(parse(document.source))
    except ProgramError:
        return None
