"""Text of a program, places in it."""

from archlang.source.source import Source, Span

__all__ = ["Source", "Span"]
