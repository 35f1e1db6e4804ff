"""A program as it is written in an editor, with what the compiler knows about it."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial

from archlang.elaborate.signature_check import check_signature
from archlang.errors import Diagnostic, Source, Span, ignore
from archlang.errors.effort import TooMuchWork, limited, memoized
from archlang.graph.graph import Graph
from archlang.plan.check import MOST_STEPS, check_loaded, elaborate_alone
from archlang.resolve.resolve import ProgramLoader, ResolvedFile
from archlang.syntax.parser import ParsedPart, bounds_of_parts, join, parse, parse_part, parse_tolerantly
from archlang.syntax.printer import format_program
from archlang.syntax.reading import BYTE_ORDER_MARK, LARGEST
from archlang.syntax.tokens import MOST_WORDS
from archlang.syntax.tree import Definition, Program, moved
from archlang.types import Type

# Errors of a file whose bodies cannot be elaborated: blocks that contain themselves, and sizes with two meanings.
_NOT_ELABORATED = frozenset({"E0210", "E0425"})


def _parse_changed(source: Source) -> tuple[Program, tuple[Diagnostic, ...]]:
    """Parses a text as `parse_tolerantly`, of which most parts are known."""
    parts = _known_parts(source)
    if parts is None:
        return parse_tolerantly(source)
    return join(source, [_at_place(part, source, start, place) for start, part, place in parts])


def _known_parts(source: Source) -> list[tuple[int, ParsedPart, int]] | None:
    """Returns the start of each part of a text, and the part with the start where it was parsed; None if the text is
    too large."""
    bounds = bounds_of_parts(source.text) if len(source.text) <= LARGEST else ()
    parts = [(start, *_known_part(source, start, end)) for start, end in bounds]
    return parts if parts and sum(part.words for _, part, _ in parts) <= MOST_WORDS else None


def _known_part(source: Source, start: int, end: int) -> tuple[ParsedPart, int]:
    return memoized(("part", start == 0, source.text[start:end]), lambda: (parse_part(source, start, end), start))


def _at_place(part: ParsedPart, source: Source, start: int, place: int) -> ParsedPart:
    if place == start and all(node.span.source is source for node in part.nodes):
        return part
    return part._replace(nodes=[moved(node, source, start - place) for node in part.nodes])


def _formatted_parts(text: str, starts: Sequence[int]) -> Iterator[str]:
    first = 0
    for end in (*starts[1:], len(text)):
        part = text[first:end]
        formatted = memoized(("formatted", part), partial(_formatted, part))
        # Only after a `}` on a line of its own does the next part not depend on this one.
        if end == len(text) or formatted.splitlines()[-1].startswith("}"):
            yield formatted
            first = end


def _formatted(text: str) -> str:
    return format_program(parse(Source("", text)))


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
        loader, resolved = self._loaded
        return check_loaded(loader, resolved)

    @property
    def program(self) -> Program:
        """The tree of the file."""
        return self.resolved.program

    @property
    def resolved(self) -> ResolvedFile:
        """The names of the file."""
        return self._loaded[1]

    @property
    def syntax_mistakes(self) -> tuple[Span, ...]:
        """The places of the mistakes because of which text of the file, or of one that it uses, cannot be parsed."""
        return tuple(each.span for each in self._loaded[0].diagnostics if each.is_of_syntax)

    @property
    def used_paths(self) -> frozenset[str]:
        """The real paths of the files that this file uses, directly or not."""
        return frozenset(self._loaded[0].texts())

    @cached_property
    def _loaded(self) -> tuple[ProgramLoader, ResolvedFile]:
        loader = ProgramLoader(unsaved=self.unsaved, parse=_parse_changed)
        return loader, loader.load_source(self.source)

    def types_of(self, item: object) -> Mapping[tuple[int, int], Type]:
        """Returns the types of the values of a block of the file, by the start and the end of their places; empty for
        other items."""
        declaration = self.resolved.own.get(item.name) if isinstance(item, Definition) else None
        if declaration is None or declaration.item is not item or not self.has_types:
            return {}
        start, types = declaration.item.span.start, dict[tuple[int, int], Type]()

        def observe(span: Span, kind: Type) -> None:
            types.setdefault((span.start - start, span.end - start), kind)

        def computed() -> Mapping[tuple[int, int], Type]:
            elaborate_alone(declaration, ignore, observe)
            return types

        content = self.resolved.content_of(declaration.item)
        known_types: Mapping[tuple[int, int], Type] = types  # those so far, beyond the limit of steps
        with suppress(TooMuchWork), limited(MOST_STEPS):
            known_types = memoized(content and ("types", content), computed)
        return {(first + start, last + start): kind for (first, last), kind in known_types.items()}

    @property
    def formatted(self) -> str | None:
        """The formatted text; None if the text has syntax errors."""
        parts = _known_parts(self.source)
        if parts is None or any(mistake.is_error for _, part, _ in parts for mistake in part.mistakes):
            return None
        formatted = "\n".join(_formatted_parts(self.text, [start for start, _, _ in parts]))
        return BYTE_ORDER_MARK * self.text.startswith(BYTE_ORDER_MARK) + formatted

    @cached_property
    def has_types(self) -> bool:
        """Whether the bodies of the file can be elaborated."""
        loader, resolved = self._loaded
        codes = {diagnostic.code for diagnostic in loader.diagnostics}
        for declaration in resolved.own.values():
            check_signature(declaration, lambda diagnostic: codes.add(diagnostic.code))
        return not codes & _NOT_ELABORATED
