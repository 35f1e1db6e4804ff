"""Source texts and spans of them."""

from archlang.source.source import Source, Span, on_command_line

__all__ = ["Source", "Span", "on_command_line"]
