"""Parses a text again after a change: only changed items are parsed, and the trees of the others are moved."""

from collections import Counter
from dataclasses import dataclass, field, replace

from archlang.diagnostics import Diagnostic
from archlang.source import Source, Span
from archlang.syntax.parser import ParsedItem, join, parse_item, parse_sound, read_tokens, split
from archlang.syntax.tree import Program
from archlang.syntax.walk import walk


class _Piece:
    """A parsed item, and all of its spans, which move with it."""

    def __init__(self, source: Source, start: int, parsed: ParsedItem) -> None:
        self._source, self._start, self.parsed = source, start, parsed
        spans: dict[int, Span] = {}
        for item in parsed.nodes:
            for node in walk(item):
                spans |= {id(value): value for value in vars(node).values() if isinstance(value, Span)}
        for each in parsed.mistakes:
            edits = (*each.edits, *each.alternatives)
            places = (each.span, *(label.span for label in each.labels), *(edit.span for edit in edits))
            spans |= {id(span): span for span in places}
        self._spans = [*spans.values()]

    def move(self, source: Source, start: int) -> None:
        """Moves the spans to where the item starts in another text. The trees of the text before are not valid any
        more: copying them takes longer than parsing."""
        if start == self._start and source is self._source:
            return
        distance, set_attribute = start - self._start, object.__setattr__
        for span in self._spans:
            set_attribute(span, "source", source)
            if distance:
                set_attribute(span, "start", span.start + distance)
                set_attribute(span, "end", span.end + distance)
        self._start, self._source = start, source
        # Python 3.14 keeps the hash that a tuple had before its spans moved.
        mistakes = (
            replace(each, labels=(*each.labels,), edits=(*each.edits,), alternatives=(*each.alternatives,))
            for each in self.parsed.mistakes
        )
        self.parsed = replace(self.parsed, mistakes=tuple(mistakes))


_Key = tuple[str, bool, bool, int]


@dataclass
class Pieces:
    """The items of the last text that was parsed, by their texts, and by how often each was there before."""

    _pieces: dict[_Key, _Piece] = field(default_factory=dict)

    def parse(self, source: Source) -> tuple[Program, tuple[Diagnostic, ...]]:
        """Returns what `parse_tolerantly` does."""
        excess, code, comments = read_tokens(source)
        if excess is not None:
            return Program(items=(), source=source), (excess,)
        previous, self._pieces = self._pieces, {}
        counts: Counter[str] = Counter()
        start = 0
        for item in split(code, comments):
            last = max(item.tokens[-1].end_pos or 0, *(each.end_pos or 0 for each in item.comments[-1:]), 0)
            end = len(source.text) if item.is_last else last
            text = source.text[start:end]
            counts[text] += 1
            key = text, item.is_last, start == 0, counts[text]
            piece = previous.get(key) or _Piece(source, start, parse_item(source, item))
            piece.move(source, start)
            self._pieces[key] = piece
            start = end
        parsed = [piece.parsed for piece in self._pieces.values()]
        if not parsed or any(each.mistakes for each in parsed):
            whole = parse_sound(source, code, comments)  # the word of an item may be a name
            if whole is not None:
                return join(source, [whole])
        return join(source, parsed)
