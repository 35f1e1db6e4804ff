"""The state that the builders of one text share: its source, comments, mistakes, and the depth of each node."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, TypedDict, TypeVar

from archlang.diagnostics import Diagnostic
from archlang.source import Source, Span
from archlang.syntax.builders.parts import N, Parts, end_of, start_of
from archlang.syntax.comments import Comments
from archlang.syntax.tree import Commented, Node

if TYPE_CHECKING:
    from collections.abc import Callable

    from lark import Token

# The deepest tree that the later stages, which are recursive, accept.
DEEPEST = 64


S = TypeVar("S", bound=Commented)

_COMMA = re.compile(r"\s*,")


class TooDeep(Exception):
    """A node is more than `DEEPEST` levels deep."""

    def __init__(self, span: Span) -> None:
        self.span = span


class LineTaken(Exception):
    """The value of a line without one is the first word of the next line."""


class _Comment(TypedDict):
    leading: tuple[str, ...]
    trailing: str
    blank: bool


class _Documentation(TypedDict):
    documentation: tuple[str, ...]
    apart: bool


class Context:
    """Gives spans, comments and depths to the nodes of one text."""

    def __init__(self, source: Source, comments: Comments) -> None:
        self.source = source
        self.comments = comments
        self.mistakes: list[Diagnostic] = []
        # Holds the nodes too, so that no later node reuses an id.
        self._depths: dict[int, tuple[int, Node]] = {}

    def span(self, parts: Parts) -> Span:
        """Returns the span from the first part that is not None to the last."""
        first = next(part for part in parts if part is not None)
        last = next(part for part in reversed(parts) if part is not None)
        return Span(self.source, start_of(first), end_of(last))

    def token_span(self, token: Token) -> Span:
        return Span(self.source, token.start_pos or 0, token.end_pos or 0)

    def nested(self, node: N, *children: Node | None) -> N:
        """Records the depth of a node and returns the node. Only nodes that can contain their own kind count.

        Raises:
            TooDeep: the node is more than `DEEPEST` levels deep."""
        depth = 1 + max((self.depth(child) for child in children), default=0)
        if depth > DEEPEST:
            raise TooDeep(node.span)
        self._depths[id(node)] = depth, node
        return node

    def replace_span(self, node: N, span: Span) -> N:
        """Returns the node with another span and the same depth."""
        moved = replace(node, span=span)
        self._depths[id(moved)] = self.depth(node), moved
        return moved

    def depth(self, node: Node | None) -> int:
        """Returns the recorded depth of a node, or 0."""
        return self._depths[id(node)][0] if id(node) in self._depths else 0

    def item_comments(self, span: Span) -> tuple[_Documentation, _Comment]:
        """Takes the comments of an item, and returns its `##` lines apart from the others."""
        comment = self.comments_of(span, moved=False)
        lines = list(comment["leading"])
        apart = bool(lines) and lines[-1] == ""
        block = len(lines) - apart
        while block > 0 and lines[block - 1] != "":
            block -= 1
        group = lines[block : len(lines) - apart]
        docs = [line for line in group if line.startswith("##")]
        apart = apart and bool(docs) and len(docs) == len(group)
        if not docs or (lines[-1] == "" and not apart):
            docs, rest = [], lines
        else:
            rest = lines[:block] + [line for line in group if not line.startswith("##")]
        # Comments from inside the item move above it, where `##` would make them documentation.
        moved = [f"# {line.lstrip('# ')}".rstrip() if line.startswith("##") else line for line in self._moved(span)]
        if moved:
            rest += moved + ([""] if apart else [])
        documentation: _Documentation = {
            "documentation": tuple(line[2:].removeprefix(" ") for line in docs),
            "apart": apart,
        }
        return documentation, {**comment, "leading": tuple(rest)}

    def with_comments(self, statics: tuple[S, ...]) -> tuple[S, ...]:
        """Returns statics with the comments above and beside them, where a `,` may stand between."""
        commented = []
        for static in statics:
            leading, _ = self.comments.above(static.span.start)
            comma = _COMMA.match(static.span.source.text, static.span.end)
            trailing = self.comments.beside(static.span.end if comma is None else comma.end())
            commented.append(replace(static, leading=leading, trailing=trailing) if leading or trailing else static)
        return tuple(commented)

    def closing_comments(self, statics: tuple[S, ...], end: int) -> tuple[str, ...]:
        """Takes the comments after the last static, before the bracket that closes them at `end`."""
        return tuple(filter(None, self.comments.within(statics[-1].span.end, end))) if statics else ()

    def comments_of(self, span: Span, moved: bool = True) -> _Comment:
        """Takes the comments above, beside and, if `moved`, inside a span."""
        leading, blank = self.comments.above(span.start)
        if moved:
            leading += self._moved(span)
        return {"leading": leading, "trailing": self.comments.beside(span.end), "blank": blank}

    def _moved(self, span: Span) -> tuple[str, ...]:
        """Takes the comments inside a span that belong to no node of their own."""
        return tuple(line for line in self.comments.within(span.start, span.end) if line)


class Section:
    """Builds the nodes of one section of the grammar. Public methods are named like the rules of `arch.lark`."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def _commented(self, kind: Callable[..., N], parts: Parts, **fields: object) -> N:
        """Builds a node of a kind from its fields, with the span of the parts and the comments there."""
        span = self._context.span(parts)
        return kind(**fields, span=span, **self._context.comments_of(span))
