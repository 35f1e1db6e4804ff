"""Parses text to a tree, and finds all syntax mistakes of a file."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from archlang.errors import Diagnostic
from archlang.errors.log import MOST_ERRORS, DiagnosticLog
from archlang.errors.source import SETTING, Source, Span
from archlang.syntax import mistakes, units
from archlang.syntax.builder import DEEPEST, LineTaken, TreeBuilder, too_deep
from archlang.syntax.reading import LARGEST, read
from archlang.syntax.recovery import Recovery
from archlang.syntax.stack import ParserStack
from archlang.syntax.tokens import CLOSERS, LONGEST_WORD, MOST_WORDS, OPENERS, tokens
from archlang.syntax.tree import Item, Name, Program, Setting, Syntax

if TYPE_CHECKING:
    from lark import Token

__all__ = ["parse", "parse_setting", "parse_tolerantly", "read"]


# After a `}` of a line of its own, a line that begins like an item begins one, in any context.
_END_OF_PART = re.compile(
    r"""
    ^\}[ \t]*(?:\#[^\r\n]*)?\r?\n
    (?= (?: [ \t]* (?:\#[^\r\n]*)? \r?\n )*
        (?: (?:block|extern|recipe|table)[ \t]+[A-Za-z_] | model[ \t]+[A-Za-z_]\w*[ \t]*(?:\[[^][\r\n]*\][ \t]*)?\( ) )
    """,
    re.MULTILINE | re.VERBOSE,
)


class ParsedPart(NamedTuple):
    """The nodes of a part of a text, its mistakes, and the number of its tokens and comments."""

    nodes: list[Syntax]
    mistakes: list[Diagnostic]
    words: int


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
    """Parses a text; returns its items, without lines that cannot be read, and the diagnostics.

    If the text has mistakes, its items are parsed one by one: no mistake reaches beyond its item."""
    excess, code = read_tokens(source)
    if excess is not None:
        return Program(items=(), source=source), (excess,)
    sound = _parse_sound(source, code)
    if sound is not None:
        return Program.of(sound, source), ()
    return join(source, (parse_part(source, start, end) for start, end in bounds_of_parts(source.text)))


def bounds_of_parts(text: str) -> Iterator[tuple[int, int]]:
    """Yields the start and the end of each part of a text. Parts consist of whole items, and are parsed alone."""
    return pairwise((0, *(end.end() for end in _END_OF_PART.finditer(text)), len(text)))


def parse_part(source: Source, start: int, end: int) -> ParsedPart:
    """Parses a part of a text. One with a word that is too long counts more words than a text may have."""
    code, comments, excess = tokens(source, start, end)
    words = len(code) + len(comments) if excess is None else MOST_WORDS + 1
    sound = _parse_sound(source, code)
    if sound is not None:
        return ParsedPart(sound, [], words)
    part = ParsedPart([], [], words)
    for item in units.items(code):
        nodes, diagnostics = _parse_item(source, item)
        part.nodes.extend(nodes)
        part.mistakes.extend(diagnostics)
        if len(part.mistakes) > MOST_ERRORS:
            break
    return part


def join(source: Source, parts: Iterable[ParsedPart]) -> tuple[Program, tuple[Diagnostic, ...]]:
    """Returns the program that consists of parts, and the diagnostics; parts after too many mistakes are left out."""
    nodes, diagnostics = list[Syntax](), list[Diagnostic]()
    for part in parts:
        nodes += part.nodes
        diagnostics += part.mistakes
        if len(diagnostics) > MOST_ERRORS:
            break
    return Program.of(nodes, source), tuple(diagnostics)


def read_tokens(source: Source) -> tuple[Diagnostic | None, list[Token]]:
    """Returns a diagnostic if a text is too long, and its tokens."""
    if len(source.text) > LARGEST:
        return mistakes.file_too_large(Span(source, 0, 0), LARGEST), []
    code, _, excess = tokens(source)
    if excess is None:
        return None, code
    span = Span(source, excess.start_pos or 0, excess.end_pos or 0)
    if len(excess) > LONGEST_WORD:
        return mistakes.word_too_long(span, LONGEST_WORD), []
    return mistakes.too_many_words(span, MOST_WORDS), []


def _parse_sound(source: Source, code: list[Token]) -> list[Syntax] | None:
    from lark import UnexpectedToken

    builder = TreeBuilder(source)
    stack = ParserStack(builder)
    if _deepest_bracket(source, code):
        return None
    try:
        for token in code:
            stack.feed(token)
        nodes: list[Syntax] = stack.end()
    except (UnexpectedToken, LineTaken):
        return None
    return None if builder.mistakes or too_deep(nodes) else nodes


def _parse_item(source: Source, code: list[Token]) -> tuple[Iterable[Syntax], Iterable[Diagnostic]]:
    sound = _parse_sound(source, code)
    if sound is not None:
        return sound, ()
    diagnostics: list[Diagnostic] = []
    deep, nodes = _deepest_bracket(source, code), list[Syntax]()
    if deep is None:
        builder = TreeBuilder(source)
        recovery = Recovery(source, code, builder)
        nodes = recovery.read()
        diagnostics = recovery.mistakes + builder.mistakes
        deep = too_deep(nodes)
    if deep is not None:
        diagnostics.append(mistakes.nested_too_deep(deep, DEEPEST))
        nodes = []
    items = [replace(node, is_whole=False) if isinstance(node, Item) else node for node in nodes]
    return items, sorted(set(diagnostics), key=lambda mistake: (mistake.span.start, mistake.code))


def _deepest_bracket(source: Source, code: list[Token]) -> Span | None:
    depth = 0
    for token in code:
        depth += (token in OPENERS) - (token in CLOSERS and depth > 0)
        if depth > DEEPEST:
            return Span(source, token.start_pos or 0, token.end_pos or 0)
    return None


def parse_setting(name: str, text: str) -> tuple[Setting | None, tuple[Diagnostic, ...]]:
    """Parses a setting of a recipe, from a command line or from Python; returns None if the text has mistakes."""
    setting, diagnostic = _parse_setting(name, text)
    return setting, () if diagnostic is None else (mistakes.in_setting(diagnostic, name),)


def _parse_setting(name: str, text: str) -> tuple[Setting | None, Diagnostic | None]:
    source = Source(SETTING, f"{name}={text}", is_command_line=True)
    excess, code = read_tokens(source)
    if excess is not None:
        return None, excess
    value = [token for token in code if (token.start_pos or 0) > len(name)]
    builder = TreeBuilder(source)
    recovery = Recovery(source, value, builder, start="expression")
    node = recovery.read_expression()
    if node is None or recovery.mistakes or builder.mistakes:
        return None, (*recovery.mistakes, *builder.mistakes)[0]
    if (deep := too_deep([node]) or _deepest_bracket(source, value)) is not None:
        return None, mistakes.nested_too_deep(deep, DEEPEST)
    path = Name(parts=tuple(name.split(".")), span=Span(source, 0, len(name)))
    return Setting(path=path, value=node, span=Span(source, 0, len(source.text))), None
