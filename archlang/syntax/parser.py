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
from archlang.syntax.builder import DEEPEST, LineTaken, TooDeep, TreeBuilder
from archlang.syntax.character_mistakes import unknown_character
from archlang.syntax.comments import Comments
from archlang.syntax.reading import LARGEST, read
from archlang.syntax.recovery import Recovery
from archlang.syntax.stack import Stack
from archlang.syntax.tokens import CLOSERS, LONGEST_WORD, MOST_WORDS, OPENERS, tokens
from archlang.syntax.tree import Item, Name, Node, Program, Setting

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


class Part(NamedTuple):
    """The nodes of a part of a text, its mistakes, the comments after its last item, and the number of its words."""

    nodes: list[Node]
    mistakes: list[Diagnostic]
    closing: tuple[str, ...]
    words: int

    def program(self, source: Source) -> tuple[Program, tuple[Diagnostic, ...]]:
        """Returns the program of a whole text, and its diagnostics."""
        return Program.of(self.nodes, source, self.closing), tuple(self.mistakes)


class TextItem(NamedTuple):
    """The tokens of an item, and the comments that belong to it."""

    tokens: list[Token]
    comments: list[Token]


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
    excess, code, comments = read_tokens(source)
    if excess is not None:
        return Program(items=(), source=source), (excess,)
    whole = _parse_sound(source, code, comments)
    if whole is None:
        whole = join(parse_part(source, start, end) for start, end in bounds_of_parts(source.text))
    return whole.program(source)


def bounds_of_parts(text: str) -> Iterator[tuple[int, int]]:
    """Yields the start and the end of each part of a text. Parts consist of whole items, and are parsed alone."""
    return pairwise((0, *(end.end() for end in _END_OF_PART.finditer(text)), len(text)))


def parse_part(source: Source, start: int, end: int) -> Part:
    """Parses a part of a text. One with a word that is too long counts more words than a text may have."""
    excess, code, comments = read_tokens(source, start, end)
    if excess is not None:
        return Part([], [excess], (), MOST_WORDS + 1)
    sound = _parse_sound(source, code, comments)
    return sound or join(_parse_item(source, item) for item in split(code, comments))


def join(parts: Iterable[Part]) -> Part:
    """Returns parts, or items, as one; those after too many mistakes are left out."""
    joined = Part([], [], (), 0)
    for part in parts:
        joined.nodes.extend(part.nodes)
        joined.mistakes.extend(part.mistakes)
        joined = joined._replace(closing=part.closing, words=joined.words + part.words)
        if len(joined.mistakes) > MOST_ERRORS:
            break
    return joined


def read_tokens(
    source: Source, start: int = 0, end: int | None = None
) -> tuple[Diagnostic | None, list[Token], list[Token]]:
    """Returns a diagnostic if a text is too long, the tokens of a part of it, and its comments."""
    if len(source.text) > LARGEST:
        return mistakes.file_too_large(Span(source, 0, 0), LARGEST), [], []
    code, comments, excess = tokens(source, start, end)
    if excess is None:
        return None, code, comments
    span = Span(source, excess.start_pos or 0, excess.end_pos or 0)
    if len(excess) > LONGEST_WORD:
        return mistakes.word_too_long(span, LONGEST_WORD), [], []
    return mistakes.too_many_words(span, MOST_WORDS), [], []


def split(code: list[Token], comments: list[Token]) -> Iterator[TextItem]:
    """Yields the items of a text."""
    items = list(units.items(code))
    place = 0
    for index, item in enumerate(items):
        start, end, line = place, item[-1].end_pos or 0, item[-1].line
        is_last = index == len(items) - 1
        while place < len(comments) and (
            is_last or (comments[place].start_pos or 0) < end or comments[place].line == line
        ):
            place += 1
        yield TextItem(item, comments[start:place])


def _parse_sound(source: Source, code: list[Token], comments: list[Token]) -> Part | None:
    """Returns the items of tokens; None if the tokens have a mistake."""
    from lark import UnexpectedToken

    builder = TreeBuilder(source, Comments(source.text, comments))
    stack = Stack(builder)
    if _too_deep(source, code) or any(_of_characters(source, code)):
        return None
    try:
        for token in code:
            stack.feed(token)
        nodes = stack.end()
    except (UnexpectedToken, TooDeep, LineTaken):
        return None
    return None if builder.mistakes else Part(nodes, [], builder.closing(), len(code) + len(comments))


def _parse_item(source: Source, item: TextItem) -> Part:
    words = len(item.tokens) + len(item.comments)
    sound = _parse_sound(source, item.tokens, item.comments)
    if sound is not None:
        return sound
    found = [*_of_characters(source, item.tokens)]
    if (deep := _too_deep(source, item.tokens)) is not None:
        return Part([], [*found, deep], (), words)
    builder = TreeBuilder(source, Comments(source.text, item.comments))
    recovery = Recovery(source, item.tokens, builder)
    nodes = [replace(node, is_whole=False) if isinstance(node, Item) else node for node in recovery.read()]
    found += recovery.mistakes + builder.mistakes
    ordered = sorted(set(found), key=lambda mistake: (mistake.span.start, mistake.code))
    return Part(nodes, ordered, builder.closing(), words)


def _of_characters(source: Source, code: list[Token]) -> Iterator[Diagnostic]:
    """Yields the mistakes of strings with invisible characters that end a text of C."""
    for token in code:
        if token.type == "STRING" and "\0" in token:
            zero = (token.start_pos or 0) + token.index("\0")
            yield unknown_character(Span(source, zero, zero + 1))


def _too_deep(source: Source, code: list[Token]) -> Diagnostic | None:
    """Returns the diagnostic of a bracket that is nested too deep; None if there is none."""
    depth = 0
    for token in code:
        depth += (token in OPENERS) - (token in CLOSERS and depth > 0)
        if depth > DEEPEST:
            return mistakes.nested_too_deep(Span(source, token.start_pos or 0, token.end_pos or 0), DEEPEST)
    return None


def parse_setting(name: str, text: str) -> tuple[Setting | None, tuple[Diagnostic, ...]]:
    """Parses a setting of a recipe, from a command line or from Python; returns None if the text has mistakes."""
    setting, diagnostic = _parse_setting(name, text)
    return setting, () if diagnostic is None else (mistakes.in_setting(diagnostic, name),)


def _parse_setting(name: str, text: str) -> tuple[Setting | None, Diagnostic | None]:
    source = Source(SETTING, f"{name}={text}", is_command_line=True)
    excess, code, comments = read_tokens(source)
    if excess is not None:
        return None, excess
    value = [token for token in code if (token.start_pos or 0) > len(name)]
    brace = next((token for token in value if token in ("{", "}")), None)
    if brace is not None:
        return None, mistakes.brace_in_setting(Span(source, brace.start_pos or 0, brace.end_pos or 0))
    if (wrong := next(_of_characters(source, value), None) or _too_deep(source, value)) is not None:
        return None, wrong
    builder = TreeBuilder(source, Comments(source.text, comments))
    recovery = Recovery(source, value, builder, start="expression")
    node = recovery.read_expression()
    if node is None or recovery.mistakes or builder.mistakes:
        return None, (*recovery.mistakes, *builder.mistakes)[0]
    path = Name(parts=tuple(name.split(".")), span=Span(source, 0, len(name)))
    return Setting(path=path, value=node, span=Span(source, 0, len(source.text))), None
