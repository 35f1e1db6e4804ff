"""Source texts and spans of them."""

from archlang.source.source import Source, Span

__all__ = ["Source", "Span"]
