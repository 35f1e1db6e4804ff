"""From text to tree and back."""

from archlang.syntax.parser import parse, parse_setting, parse_tolerantly, read
from archlang.syntax.printer import format_program, unparse

__all__ = ["format_program", "parse", "parse_setting", "parse_tolerantly", "read", "unparse"]
