"""Parses text to a tree, and finds all syntax mistakes of a file."""

import re

from archlang.diagnostics import Diagnostic
from archlang.diagnostics.log import DiagnosticLog
from archlang.source import Source, Span
from archlang.source.source import SETTING
from archlang.syntax import mistakes
from archlang.syntax.builders import TreeBuilder
from archlang.syntax.pieces import parse_items
from archlang.syntax.reading import LARGEST, read
from archlang.syntax.recovery import Reader
from archlang.syntax.tree import Name, Program, Setting
from archlang.syntax.whole import parse_sound, prepare
from archlang.syntax.words import find_excess

_BRACE = re.compile(r'"[^"\r\n]*"|#[^\r\n]*|(?P<brace>[{}])')

__all__ = ["parse", "parse_setting", "parse_tolerantly", "read"]


def parse(source: Source) -> Program:
    """Parses a text.

    Raises:
        ProgramError: the text has mistakes."""
    program, diagnostics = parse_tolerantly(source)
    log = DiagnosticLog()
    log.add(diagnostics)
    log.stop_at_errors()
    return program


def parse_tolerantly(source: Source) -> tuple[Program, tuple[Diagnostic, ...]]:
    """Parses a text; returns its items, with `Missing` in place of lines that cannot be read, and the diagnostics.

    If the text has mistakes, its items are parsed one by one: no mistake reaches beyond its item."""
    if len(source.text) > LARGEST:
        return Program(items=(), source=source), (mistakes.file_too_large(Span(source, 0, 0), LARGEST),)
    excess = find_excess(source)
    if excess is not None:
        return Program(items=(), source=source), (excess,)
    program = parse_sound(source)
    return parse_items(source) if program is None else (program, ())


def parse_setting(name: str, text: str) -> tuple[Setting | None, tuple[Diagnostic, ...]]:
    """Parses a setting of a recipe, from a command line or from Python; returns None if the text has mistakes."""
    setting, diagnostics = _parse_setting(name, text)
    return setting, tuple(mistakes.in_setting(diagnostic, name) for diagnostic in diagnostics)


def _parse_setting(name: str, text: str) -> tuple[Setting | None, tuple[Diagnostic, ...]]:
    source = Source(SETTING, f"{name}={text}", is_command_line=True)
    if len(text) > LARGEST:
        return None, (mistakes.file_too_large(Span(source, 0, 0), LARGEST),)
    excess = find_excess(source)
    if excess is not None:
        return None, (excess,)
    prepared, comments, diagnostics = prepare(source)
    prepared = " " * (len(name) + 1) + prepared[len(name) + 1 :]
    # Recovery would read the braces of an item.
    if brace := next((piece for piece in _BRACE.finditer(prepared) if piece["brace"]), None):
        diagnostics = [*diagnostics, mistakes.brace_in_setting(Span(source, *brace.span()))]
    if diagnostics:
        return None, tuple(diagnostics)
    builder = TreeBuilder(source, comments)
    reader = Reader(source, prepared, builder, "expression", limit=1)
    value = reader.read()
    diagnostics += reader.mistakes + builder.mistakes
    if diagnostics:
        return None, tuple(diagnostics)
    path = Name(parts=tuple(name.split(".")), span=Span(source, 0, len(name)))
    return Setting(path=path, value=value, span=Span(source, 0, len(source.text))), ()
