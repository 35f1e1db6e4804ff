"""A program as it is written in an editor, with what the compiler knows about it."""

import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property

from archlang.diagnostics import Diagnostic
from archlang.diagnostics.effort import TooMuchWork, limited
from archlang.elaborate.elaborator import elaborate
from archlang.elaborate.signature_check import check_signature
from archlang.graph.graph import Graph
from archlang.names.resolve import Loader, ResolvedFile
from archlang.plan.check import MOST_STEPS, check_text
from archlang.plan.statics import model_sizes
from archlang.source import Source, Span
from archlang.syntax.parser import parse_tolerantly
from archlang.syntax.tree import Definition, Program
from archlang.types import Type

# How often lines with syntax errors are removed, to read the rest of their item.
_MOST_REPAIRS = 4
# Errors of a file whose bodies cannot be elaborated: blocks that contain themselves, and sizes with two meanings.
_NOT_ELABORATED = frozenset({"E0210", "E0425"})
_NO_BRACE = re.compile(r"[^{}\r\n]")


@dataclass(frozen=True, eq=False)
class Document:
    """The text of a file, which need not be saved. `unsaved` are the texts of other files, by their real paths."""

    path: str
    text: str
    unsaved: Mapping[str, str] = field(default_factory=dict)
    # The graphs of its parts, or why they have none, as `graph_of` has computed them.
    graphs: dict[object, Graph | str] = field(default_factory=dict, repr=False)

    @property
    def real_path(self) -> str:
        return os.path.realpath(self.path)

    @cached_property
    def source(self) -> Source:
        return Source(self.path, self.text)

    @cached_property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """All mistakes of the file, by place."""
        return check_text(self.text, self.path, self.unsaved)

    @property
    def program(self) -> Program:
        """The tree of the file without the lines that cannot be parsed; offsets are those of the text."""
        return self.resolved.program

    @cached_property
    def resolved(self) -> ResolvedFile:
        """The names of the file without the lines that cannot be parsed."""
        return self._loaded[0]

    @cached_property
    def _loaded(self) -> tuple[ResolvedFile, list[Diagnostic]]:
        loader = Loader(unsaved=self.unsaved)
        return loader.load_source(_readable(self.source)), loader.diagnostics

    @cached_property
    def types(self) -> Mapping[tuple[int, int], Type]:
        """The types of the values of the file's own blocks, by the start and the end of their places."""
        types: dict[tuple[int, int], Type] = {}
        codes = {diagnostic.code for diagnostic in self._loaded[1]}

        def observe(span: Span, kind: Type) -> None:
            if span.source.path == self.path:
                types.setdefault((span.start, span.end), kind)

        def note(diagnostic: Diagnostic) -> None:
            codes.add(diagnostic.code)

        with suppress(TooMuchWork), limited(MOST_STEPS):
            for declaration in self.resolved.own.values():
                check_signature(declaration, note)
            for declaration in self.resolved.own.values():
                if isinstance(declaration.item, Definition) and not codes & _NOT_ELABORATED:
                    ambient = model_sizes({}) if declaration.item.word == "model" else {}
                    elaborate(declaration, {}, ambient, declaration.span, _ignore, generic=True, observe=observe)
        return types


def _ignore(diagnostic: Diagnostic) -> None:
    """The check reports the mistakes."""


def _readable(source: Source) -> Source:
    """Returns the source with spaces in place of lines with syntax errors, but for their braces."""
    seen: set[int] = set()
    for _ in range(_MOST_REPAIRS):
        _, diagnostics = parse_tolerantly(source)
        mistakes = [each.span for each in diagnostics if each.span.text not in ("{", "}")]
        lines = {_half_written(span) if span.start not in seen else span.line for span in mistakes}
        seen |= {span.start for span in mistakes}
        text = source.text
        for line in lines:
            text = without_line(Source(source.path, text), line)
        if text == source.text:
            break
        source = Source(source.path, text)
    return source


def without_line(source: Source, line: int) -> str:
    """Returns the text with spaces in place of a line, but for its braces."""
    start, end = source.line_bounds(line)
    return source.text[:start] + _NO_BRACE.sub(" ", source.text[start:end]) + source.text[end:]


def _half_written(mistake: Span) -> int:
    """Returns the line that a mistake comes from: if a line cannot begin as it does, the one before it goes on."""
    source = mistake.source
    start, _ = source.line_bounds(mistake.line)
    if source.text[start : mistake.start].strip():
        return mistake.line
    before = source.text[:start].rstrip()
    return source.position(len(before))[0] if before else mistake.line
