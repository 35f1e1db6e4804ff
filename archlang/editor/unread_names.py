"""Words that may be names in text that cannot be read: a half-written line has no meaning yet."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from archlang.editor.document import Document
from archlang.editor.open_brackets import callee_before, open_brackets
from archlang.editor.symbols import INSTANCES, Names, Symbol
from archlang.graph.operations import LOSSES
from archlang.plan.unread_lines import unread_words
from archlang.source import Span
from archlang.syntax.tree import Choice, Definition, Extern, Missing, Node, Recipe, Table
from archlang.syntax.walk import children, walk

# The kinds of names that only the item knows which binds them.
LOCAL = ("value", "instance", "input", "size")
# The kinds of names that only their own file knows.
OF_FILE = ("recipe", "alias")
_PIECE = r'"[^"\r\n]*"|#[^\r\n]*|(?P<word>(?<!\w){}(?!\w))'
_PATH = re.compile(r"(?:\w+\.)*$")
_BINDS = re.compile(r"\s*=(?!=)")
# What follows a static in a place outside of its item: its value, or nothing yet.
_SET = re.compile(r"[ \t]*(?:=(?!=)|in\b|#|\r|$)", re.MULTILINE)
_RECIPE_NAME = re.compile(r'\s*row\s*"[^"\r\n]*"\s*')
_CHOICE = re.compile(r"\s*(?:task|model|train)\s+(?:\w+\.)*")


@dataclass(frozen=True)
class UnreadName:
    """A word without a meaning that may be a name. `mistake` is the place of a mistake that hides its meaning;
    `is_sure` says that the word can only be that name."""

    span: Span
    mistake: Span
    is_sure: bool


def unread_names(names: Names, symbol: Symbol) -> Iterator[UnreadName]:
    """Yields the words of a document that may mean a symbol, though the text is not read that says so."""
    text = _Unread(names, symbol)
    for word in text.words(symbol.name):
        if text.may_mean(word):
            yield UnreadName(word, text.mistake_of(word), text.is_sure(word))
    for word in text.words_elsewhere():
        yield UnreadName(word, text.mistake_of(word), False)


def unread_with_name(names: Names, symbol: Symbol, name: str) -> Span | None:
    """Returns a word on an unread line where a symbol is known that may be another name; None if there is none."""
    text = _Unread(names, symbol)
    return next((word for word in text.words(name) if not text.path(word) and text.is_unread(word)), None)


def unread_choice(document: Document, spans: tuple[Span, ...]) -> Span | None:
    """Returns a line that cannot be read and may choose another model, task or optimizer than the one whose statics
    some places name with a path, such as `model.d`; None if there is none."""
    if any(span.source.text[span.start - 1 : span.start] == "." for span in spans):
        for recipe in document.program.items:
            missing = [part for part in recipe.parts if isinstance(part, Missing)] if isinstance(recipe, Recipe) else []
            if isinstance(recipe, Recipe) and missing:
                known = {part.word for part in recipe.parts if isinstance(part, Choice)}
                words = unread_words(recipe) & ({"task", "model", "train"} if recipe.base else known)
                if words:
                    return missing[0].span
    return None


class _Unread:
    """The text of a document that is not read where a symbol is known."""

    def __init__(self, names: Names, symbol: Symbol) -> None:
        self._names, self._symbol = names, symbol
        self._document = names.document
        self._is_own_file = os.path.realpath(symbol.span.source.path) == self._document.real_path

    @cached_property
    def _own_place(self) -> tuple[int, int] | None:
        """The start and the end of the item of the document that contains the definition, with the text after it."""
        if not self._is_own_file:
            return None
        items = self._document.program.all_items
        starts = [item.span.start for item in items] + [len(self._document.text)]
        places = ((item.span.start, starts[number + 1]) for number, item in enumerate(items))
        return next(((start, end) for start, end in places if start <= self._symbol.span.start < end), None)

    @cached_property
    def _known(self) -> tuple[int, int]:
        """The start and the end of the text that knows the symbol."""
        return self._own_place or (0, 0) if self._symbol.kind in LOCAL else (0, len(self._document.text))

    @cached_property
    def _mistakes(self) -> list[Span]:
        """The places of the mistakes that hide uses of the symbol, those of the document first."""
        start, end = self._known
        mistakes = self._document.syntax_mistakes
        own = [span for span in mistakes if span.source.path == self._document.path]
        if self._symbol.kind in ("size", "instance"):
            return own
        if self._symbol.kind in (*LOCAL, *OF_FILE):
            return [span for span in own if start <= span.start <= end]
        items = [item.span for item in self._document.program.items]
        may_lack_use = any(not any(item.start <= span.start < item.end for item in items) for span in own)
        if self._is_own_file or may_lack_use or self._symbol.key[0] in self._document.used_paths:
            return own + [span for span in mistakes if span.source.path != self._document.path]
        return []

    def words(self, name: str) -> Iterator[Span]:
        """Yields the places of a name outside of strings and comments that have no meaning, if there are mistakes."""
        return self._words(name, *self._known)

    def words_elsewhere(self) -> Iterator[Span]:
        """Yields the words of unread lines outside of the item that binds the symbol which may be an attribute of a
        block's instance, or an instance in a setting."""
        if self._symbol.kind in ("size", "instance"):
            start, end = self._known
            for word in self._words(self._symbol.name, 0, len(self._document.text)):
                is_named = self.path(word) if self._symbol.kind == "size" else INSTANCES in self._line_before(word)
                if is_named and self.is_unread(word) and not start <= word.start < end:
                    yield word

    def _words(self, name: str, start: int, end: int) -> Iterator[Span]:
        if not self._mistakes:
            return
        for piece in re.finditer(_PIECE.format(re.escape(name)), self._document.text):
            if piece["word"] and start <= piece.start() < end and piece.start() not in self._meant:
                yield Span(self._document.source, piece.start(), piece.end())

    @cached_property
    def _meant(self) -> set[int]:
        """The starts of the words of the document that have a meaning."""
        return {place.span.start for place in self._names.occurrences}

    def path(self, word: Span) -> str:
        """Returns the names and dots before a word."""
        written = _PATH.search(self._line_before(word))
        return written[0] if written else ""

    def _line_before(self, word: Span) -> str:
        text = self._document.text
        return text[text.rfind("\n", 0, word.start) + 1 : word.start]

    def mistake_of(self, word: Span) -> Span:
        """Returns the line that cannot be read because of which a word has no meaning."""
        if self.is_unread(word):
            return word
        return min(self._mistakes, key=lambda span: (span.source.path != self._document.path, span.start > word.start))

    def is_unread(self, word: Span) -> bool:
        """Whether the line of a word is not read: it has no part of the tree, or a mistake."""
        return word.line not in self._read_lines

    @cached_property
    def _read_lines(self) -> set[int]:
        read, unread = set[int](), set[int]()
        for item in self._document.program.items:
            for node in walk(item):
                if isinstance(node, Missing):
                    unread.update(range(node.span.line, Span(node.span.source, node.span.end, node.span.end).line + 1))
                elif not children(node):
                    read.add(node.span.line)
            read.add(item.span.line)
        unread |= {span.line for span in self._mistakes if span.source.path == self._document.path}
        return read - unread

    def may_mean(self, word: Span) -> bool:
        """Whether a word without a meaning may be the symbol."""
        kind, path = self._symbol.kind, self.path(word)
        if kind in LOCAL:
            return not path and self.is_unread(word)
        if kind in OF_FILE:
            return not path
        if kind == "loss":
            return self.is_unread(word) and (not path or path.endswith(LOSSES))
        if kind == "static":
            return self._may_be_static(word, path)
        return self._declared(word) in (None, self._symbol.key)

    def _may_be_static(self, word: Span, path: str) -> bool:
        """Whether a word without a meaning may be the static that is the symbol: on a line that is read, only what
        chooses the block, the task or the optimizer may be hidden."""
        is_set = _SET.match(self._document.text, word.end) is not None
        item, is_inside = self._item_around(word), self._is_in_own_place(word)
        if is_inside and not path:
            return self.is_unread(word)
        if isinstance(item, Definition | Extern) and self._is_of_model:
            return False  # a block calls no model
        if self.is_unread(word) or not isinstance(item, Definition | Extern):
            return bool(path) or is_set
        if path:
            return word.start - len(path) not in self._meant
        return is_set and self._has_unknown_callee(word)

    @cached_property
    def _is_of_model(self) -> bool:
        """Whether the symbol is a static of a model."""
        own = [item for item in self._document.program.items if isinstance(item, Definition)]
        items = [*own, *(each.item for each in self._document.resolved.used.values())]
        models = [item for item in items if item.word == "model"]
        return any(static is self._symbol.static for item in models for static in item.signature.statics)

    def _has_unknown_callee(self, word: Span) -> bool:
        """Whether a word is between the brackets of a call of what is not known."""
        brackets = open_brackets(self._document.text, word.start)
        if not brackets or brackets[-1][0] != "[":
            return False
        name, item = callee_before(self._document, brackets[-1][1])
        return item is None and brackets[-1][1] - len(name) not in self._meant

    def _item_around(self, word: Span) -> Node | None:
        items = self._document.program.items
        return next((item for item in items if item.span.start <= word.start < item.span.end), None)

    def _declared(self, word: Span) -> tuple[str, int] | None:
        """Returns the key of the block or model that a word names with its path; None if it names none."""
        declaration = self._document.resolved.find(self.path(word) + word.text)
        return None if declaration is None else (os.path.realpath(declaration.span.source.path), declaration.span.start)

    def is_sure(self, word: Span) -> bool:
        """Whether a word of an unread line can only be the symbol."""
        if not self.is_unread(word):
            return False
        text, kind, before = self._document.text, self._symbol.kind, self._line_before(word)
        if kind == "alias":
            return text[word.end : word.end + 1] == "."
        if kind == "loss":
            return self._is_in_own_place(word) and before.strip() == "loss"
        item = self._item_around(word)
        if isinstance(item, Table):
            return kind == "recipe" and _RECIPE_NAME.fullmatch(before) is not None
        if isinstance(item, Recipe) and kind != "static":
            return _CHOICE.fullmatch(before) is not None and self._declared(word) == self._symbol.key
        if _BINDS.match(text, word.end) or not isinstance(item, Definition | Extern | Recipe):
            return self._is_static_of_call(word)
        if kind in LOCAL or (kind == "static" and self._is_in_own_place(word)):
            return not self.path(word) and self._is_only_one(word)
        return kind != "static" and self._declared(word) == self._symbol.key and self._is_only_one(word)

    def _is_in_own_place(self, word: Span) -> bool:
        start, end = self._own_place or (0, 0)
        return start <= word.start < end

    def _is_static_of_call(self, word: Span) -> bool:
        """Whether a word is set between the brackets after the block of the static."""
        brackets = open_brackets(self._document.text, word.start)
        if self._symbol.kind != "static" or not brackets or brackets[-1][0] != "[" or self.path(word):
            return False
        _, item = callee_before(self._document, brackets[-1][1])
        if item is None or not _BINDS.match(self._document.text, word.end):
            return False
        is_same_file = os.path.realpath(item.span.source.path) == self._symbol.key[0]
        return is_same_file and any(static.span.start == self._symbol.span.start for static in item.signature.statics)

    def _is_only_one(self, word: Span) -> bool:
        """Whether the item around a word binds no other name that is spelled so."""
        item = self._item_around(word)
        if not isinstance(item, Definition | Extern):
            return False
        return all(
            place.symbol.name != word.text or place.symbol.key == self._symbol.key for place in self._names.within(item)
        )
