"""Lines and columns as editors and browsers count them: from 0, and columns in units of UTF-16."""

from archlang.errors import Source, Span

Position = tuple[int, int]


def position(source: Source, offset: int) -> Position:
    """Returns the line and the column of an offset."""
    line, column = source.position(offset)
    return line - 1, units(source.text[offset - column + 1 : offset])


def offset(source: Source, line: int, column: int) -> int:
    """Returns the offset of a line and a column, at most that of the line's end."""
    start, end = source.line_bounds(line + 1)
    return start + characters(source.text[start:end].rstrip("\r\n"), column)


def bounds(span: Span) -> tuple[Position, Position]:
    """Returns the positions of the start and the end of a span."""
    return position(span.source, span.start), position(span.source, span.end)


def units(text: str) -> int:
    """Returns the number of units of UTF-16 of a text."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def characters(text: str, units: int) -> int:
    """Returns the number of characters that begin within the first units of UTF-16 of a text."""
    return len(text.encode("utf-16-le", "surrogatepass")[: 2 * units].decode("utf-16-le", "replace"))
