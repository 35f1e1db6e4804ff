"""What can be written in a block, a model or an `extern`: words that the grammar accepts there, and names in scope."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING

from archlang.editor.completion_options import Completion, allowed_values, blocks, named_items, of_item
from archlang.editor.document import Document
from archlang.editor.names_in_scope import item_around, lengths, names_in_scope
from archlang.editor.open_brackets import loop_start, open_brackets
from archlang.elaborate import task_pages
from archlang.elaborate.binding import SIZES_OF_TYPES, TASK_SIZES
from archlang.elaborate.calls import gives_probabilities
from archlang.elaborate.signature_check import CAVEATS
from archlang.elaborate.static_arguments import parameter_kind
from archlang.errors import Span
from archlang.graph.facts import ACTS, POSITIONS, PROBLEMS, QUANTITIES, RECORDS
from archlang.resolve.resolve import GRADIENT
from archlang.resolve.values import KINDS
from archlang.syntax.grammar import spellings
from archlang.syntax.stack import Prefix, read_prefix
from archlang.syntax.tokens import CLAUSE_WORDS, ITEM_WORDS, STATEMENT_WORDS
from archlang.syntax.tree import Definition, Extern, StaticParameter
from archlang.types.causality import MANNERS

if TYPE_CHECKING:
    from lark import Token

# Keywords with the one that must follow.
_PAIRS = {"drawn": "drawn by", "stops": "stops gradients", "depends": "depends on", "cuts": "cuts evenly"}
# How many lines before a place are read, if the item before them cannot be parsed.
_MOST_LINES = 12
_COMPARED = re.compile(r"([A-Za-z_]\w*)\s*(?:[!=]=|\bin\s*\[(?:[^\]\[\n]*,)?)\s*$")
_EXTERN = re.compile(r"extern\s+(block|task|optimizer|settings)\b")
_NUMERIC = ("int", "float", None)
# The kinds of statics that a static of a kind can be set to; all if the kind is unknown.
_FITTING: Mapping[str | None, Collection[str | None]] = {**{kind: (kind, None) for kind in KINDS}, "float": _NUMERIC}
# The clauses and lists whose parts a comma separates.
_LISTS = ("CARRY", "READS", "RECORDS", "ACTS", "DEMANDS", "COSTS", "GIVES", "SIZES", "MAPS", "LSQB", "LPAR")


def definition_completions(
    document: Document, header: int, offset: int, kind: str | None = None
) -> Iterator[Completion]:
    """Yields what can be written at an offset of a block, a model or an `extern` whose word is at `header`, or between
    items. `kind` is that of the static whose value is written, None for an unknown one."""
    prefix = _prefix(document.text, header, offset)
    if prefix is not None:
        place = _DefinitionPlace(document, offset, prefix, kind)
        yield from place.names()
        yield from (Completion(_PAIRS.get(word, word), "keyword") for word in place.keywords())


def _prefix(text: str, header: int, offset: int) -> Prefix | None:
    """Returns what the grammar says of the text before an offset; without the lines before that cannot be parsed."""
    if (prefix := read_prefix(text[header:offset])) is not None:
        return prefix
    braces = [place for bracket, place in open_brackets(text, offset) if bracket == "{"]
    extern = _EXTERN.match(text, header)
    head = "block b() -> t {" if braces else f"extern {extern[1]} b() -> t " if extern else "block b() -> t "
    first = braces[-1] + 1 if braces else header
    if braces and (prefix := read_prefix(head + text[first:offset])) is not None:
        return prefix
    start = offset
    for _ in range(_MOST_LINES):
        start = text.rfind("\n", first, start)
        if start < 0:
            break
        if (prefix := read_prefix(head + text[start:offset])) is not None:
            return prefix
    return None


@dataclass(frozen=True)
class _DefinitionPlace:
    """A place of a document after the tokens of a prefix. `kind` is that of the static whose value is written there,
    None for an unknown one."""

    document: Document
    offset: int
    prefix: Prefix
    kind: str | None

    # Keywords

    def keywords(self) -> Iterator[str]:
        """Yields the keywords that can stand here."""
        accepted, begins_line = self._accepted, self._begins_line
        if "USE" in self.prefix.accepted and begins_line:
            yield from (word for word in accepted if word in CLAUSE_WORDS)
            yield from ITEM_WORDS
        elif "LET" in self.prefix.accepted and (begins_line or self._terminal(-1) in ("LBRACE", "RBRACE")):
            misplaced = "return" if self._loop is not None else "emit"
            yield from (word for word in STATEMENT_WORDS if word in accepted and word != misplaced)
            yield from (word for word in ("scan", "else") if word in accepted)
        elif begins_line and "PYTHON" in self.prefix.accepted:
            yield from (word for word in accepted if word in (*CLAUSE_WORDS, "when"))
        else:
            yield from (word for word in accepted if self._may_stand(word))

    def _may_stand(self, word: str) -> bool:
        """Whether a keyword that the grammar accepts can stand on a line that has begun."""
        names = names_at(self.prefix.pending)
        if word in ("true", "false"):
            is_value = self._terminal(-1) in ("EQUAL", "__ANON_2", "__ANON_3") and self._kind in (None, "bool")
            return names is NameKind.STATICS and is_value
        if word == "in" and not {"NUMBER", "PLUS"} & {*self.prefix.accepted}:
            return True  # of a loop, or of `random in training`: no value and no operator can follow
        if word in ("and", "or", "in", "not"):
            around = enclosing(self.prefix.pending, ("WHERE", "IF", "WHEN", "LSQB", "REPEAT", "STACK", "TRUNCATED"))
            return (
                names is NameKind.STATICS and around in ("WHERE", "IF", "WHEN", "LSQB") and self._kind in (None, "bool")
            )
        if word in ("scan", "else") and "LET" in self.prefix.accepted:
            return False  # they begin the next statement
        if word == "settings":
            return False  # only archlang's own files declare them
        if word in STATEMENT_WORDS or word in ITEM_WORDS:
            return "LET" not in self.prefix.accepted and "USE" not in self.prefix.accepted
        return True

    @cached_property
    def _loop(self) -> Span | None:
        """The innermost loop around the place, up to the place; None outside of loops."""
        start = loop_start(self.document.text, self.offset)
        return None if start is None else Span(self.document.source, start, self.offset)

    @cached_property
    def _accepted(self) -> list[str]:
        words = spellings()
        return sorted(words[name] for name in self.prefix.accepted if words.get(name, "").isalpha())

    @cached_property
    def _begins_line(self) -> bool:
        text = self.document.text
        return not text[text.rfind("\n", 0, self.offset) + 1 : self.offset].strip()

    # Names

    def names(self) -> Iterator[Completion]:
        """Yields the names that can stand here, the nearest first."""
        accepted = self.prefix.accepted
        if "NAME" not in accepted:
            return
        if "LET" in accepted:
            if self._begins_line or self._terminal(-1) in ("LBRACE", "RBRACE"):
                yield from self._updates()
        elif "NUMBER" in accepted:
            yield from self._of_expression(names_at(self.prefix.pending))
        else:
            yield from self._of_clause()

    def _updates(self) -> Iterator[Completion]:
        """Yields the names that the loop around the place can update: those that are bound outside of it."""
        if self._loop is not None:
            states = self._symbols("value", "input", outside=self._loop)
            yield from (replace(each, word=f"{each.word} <- ") for each in states)

    def _of_expression(self, names: NameKind) -> Iterator[Completion]:
        kind = self._compared_kind or self._kind
        item = item_around(self.document, self.offset)
        if names in (NameKind.VALUES, NameKind.STAGES) and isinstance(item, Extern) and item.body is not None:
            yield from self._symbols("value", "input", "static")
            yield Completion(task_pages.LENGTH, "value", "the length that a split asks of an item")
            yield from (Completion(name, "block", meaning) for name, meaning in task_pages.meanings().items())
            return
        match names:
            case NameKind.VALUES:
                yield from self._symbols("value", "input", "instance", "static", "size", kinds=(*_NUMERIC, "block"))
                yield from blocks(self.document)
                yield Completion(GRADIENT, "keyword", "The gradient of a loss by a value: `gradient(loss, value)`.")
            case NameKind.STATICS:
                yield from (Completion(word, "word") for word in self._compared_words())
                yield from self._symbols("static", *(("size",) if kind in _NUMERIC else ()), kinds=_FITTING.get(kind))
                if kind == "block":
                    yield from self._symbols("instance")
                    yield from blocks(self.document)
            case NameKind.DIMENSIONS | NameKind.COSTS:
                yield from self._symbols("size", "static", kinds=("int", None), with_lengths=True)
                if names is NameKind.COSTS:
                    yield Completion(POSITIONS, "size")
            case NameKind.STAGES | NameKind.BLOCKS:
                yield from self._blocks(with_instances=names is NameKind.STAGES)
        is_model = getattr(item, "word", "") == "model"
        if is_model and names in (NameKind.VALUES, NameKind.STATICS, NameKind.DIMENSIONS) and kind in _NUMERIC:
            yield from (Completion(size, "size") for size in TASK_SIZES[::2])

    def _of_clause(self) -> Iterator[Completion]:
        """Yields the names where no number can stand."""
        last, before = self._terminal(-1), self._terminal(-2)
        around = enclosing(self.prefix.pending, _LISTS)
        names = names_at(self.prefix.pending)
        if last in ("PIPE", "BY") or (last == "EQUAL" and names is NameKind.BLOCKS):
            yield from self._of_blocks(names)
        elif last == "COLON":
            words = KINDS if around == "LSQB" else SIZES_OF_TYPES
            yield from (Completion(word, "type") for word in words)
        elif last == "ARROW" or (last == "ELSE" and around != "READS"):
            yield from (Completion(word, "type") for word in SIZES_OF_TYPES)
        elif around == "READS" and (last == "ELSE" or (last == "NAME" and before in ("READS", "COMMA"))):
            yield from (Completion(word, "word") for word in MANNERS)
        elif last == "HALTING" or around == "CARRY":
            carried = {str(token) for token in self._tokens_since("CARRY")}
            yield from (each for each in self._symbols("value", "input") if each.word not in carried)
        elif self._takes_input(last, around):
            yield from self._symbols("input")
        elif last in _WORDS_AFTER:
            yield from (Completion(word, "word") for word in _WORDS_AFTER[last])
        elif last == "COMMA" and around in _WORDS_AFTER:
            yield from (Completion(word, "word") for word in _WORDS_AFTER[around])

    def _takes_input(self, last: str, around: str) -> bool:
        """Whether the name of an input stands next: in `reads x`, `maps query(x)`, `records gate = x` or `y: t = x`."""
        if around == "LPAR":
            return last == "EQUAL" or (last == "LPAR" and enclosing(self.prefix.pending, ("MAPS",)) != "")
        return around == "READS" or (around, last) == ("RECORDS", "EQUAL")

    def _of_blocks(self, names: NameKind) -> Iterator[Completion]:
        if names not in (NameKind.HALTING, NameKind.DRAWING):
            yield from self._blocks(with_instances=names is NameKind.STAGES)
            return
        yield from self._symbols("instance", "static", kinds=("block",))
        fits = gives_probabilities if names is NameKind.HALTING else _draws
        for name, item in named_items(self.document):
            if isinstance(item, Extern) and fits(item):
                yield of_item(name, item)

    def _blocks(self, with_instances: bool) -> Iterator[Completion]:
        yield from self._symbols("static", *(("instance",) if with_instances else ()), kinds=("block",))
        yield from blocks(self.document)

    def _symbols(
        self,
        *words: str,
        kinds: Collection[str | None] | None = None,
        with_lengths: bool = False,
        outside: Span | None = None,
    ) -> Iterator[Completion]:
        """Yields the names in scope that are one of some things; of the statics those of some kinds, or all. With
        `outside`, without the names that are bound there."""
        document = self.document
        hidden = () if with_lengths else lengths(document, self.offset)
        item = item_around(document, self.offset)
        types = document.types_of(item) if isinstance(item, Definition | Extern) else {}
        for symbol in names_in_scope(document, self.offset):
            is_unfit = (
                kinds is not None
                and symbol.static is not None
                and parameter_kind(symbol.static, document.resolved) not in kinds
            )
            if symbol.kind not in words or is_unfit or (outside is not None and outside.contains(symbol.span)):
                continue
            if symbol.kind != "size" or symbol.name not in hidden:
                kind = types.get((symbol.span.start, symbol.span.end))
                yield Completion(symbol.name, symbol.kind, str(kind) if kind is not None else symbol.kind)

    def _compared_words(self) -> tuple[str, ...]:
        item = item_around(self.document, self.offset)
        static = self._compared_static
        return allowed_values(item, static) if static and isinstance(item, Definition | Extern) else ()

    @cached_property
    def _compared_static(self) -> StaticParameter | None:
        text, item = self.document.text, item_around(self.document, self.offset)
        compared = _COMPARED.search(text, text.rfind("\n", 0, self.offset) + 1, self.offset)
        statics = item.signature.statics if isinstance(item, Definition | Extern) else ()
        return next((each for each in statics if compared and each.name == compared[1]), None)

    @property
    def _compared_kind(self) -> str | None:
        """The kind of the static with which the place is compared, if it is a symbol."""
        static = self._compared_static
        is_symbol = static is not None and parameter_kind(static, self.document.resolved) == "symbol"
        return "symbol" if is_symbol else None

    @property
    def _kind(self) -> str | None:
        """The kind of the static whose value is written here; None if it is unknown."""
        if self._terminal(-1) == "EQUAL" and self._terminal(-3) == "COLON":
            return str(self.prefix.tokens[-2])
        return self.kind

    def _tokens_since(self, terminal: str) -> Sequence[Token]:
        tokens = self.prefix.tokens
        start = max((index for index, token in enumerate(tokens) if token.type == terminal), default=len(tokens))
        return tokens[start:]

    def _terminal(self, index: int) -> str:
        tokens = self.prefix.tokens
        return str(tokens[index].type) if -len(tokens) <= index < len(tokens) else ""


# The words that the grammar takes for names, but of which few have a meaning, by the terminal before them.
_WORDS_AFTER = {
    "ON": CAVEATS[:3],
    "WITH": ("training",),
    "COSTS": tuple(f"{quantity} = " for quantity in QUANTITIES),
    "GIVES": tuple(f"{size} = " for size in TASK_SIZES),
    "RECORDS": RECORDS,
    "ACTS": ACTS,
    "DEMANDS": PROBLEMS,
}


def _draws(item: Extern) -> bool:
    """Whether an `extern block` draws the number of steps of a loop."""
    result = item.signature.result
    return not item.signature.inputs and result is not None and result.span.text == "seq[1, 1]"


# What an expression may name, by the tokens before it

Pending = Sequence["Token | str"]


class NameKind(Enum):
    """The names that can stand at a place."""

    NONE = "none"
    VALUES = "values, and what computes them"
    STATICS = "statics and sizes"
    DIMENSIONS = "sizes, lengths included"
    COSTS = "sizes, lengths included, and the number of positions"
    STAGES = "blocks and their instances"
    BLOCKS = "blocks"
    HALTING = "blocks that decide when a loop halts"
    DRAWING = "blocks that draw a number of steps"


_STATIC = ("WHERE", "IF", "WHEN", "REPEAT", "STACK", "TRUNCATED", "INTO", "GIVES", "SIZES")
_VALUE = ("RETURN", "EMIT", "UPDATE", "LOSS", "LBRACE")
_NAMES = ("NAME", "DOTTED")


def names_at(pending: Pending) -> NameKind:
    """Returns what an expression after some tokens may name; `pending` are those of the rules that are not complete."""
    skipped = 0  # `when` of conditionals whose `else` follows
    for index in range(len(pending) - 1, -1, -1):
        terminal, before = _terminal(pending, index), _terminal(pending, index - 1)
        if terminal == "ELSE":
            skipped += 1
        elif terminal == "WHEN" and skipped:
            skipped -= 1
        elif terminal == "LPAR" and before in ("name", "statics"):
            return NameKind.VALUES
        elif terminal == "LSQB" and before in ("AFTER", "name", *_NAMES):
            is_type = before in _NAMES and _terminal(pending, index - 2) in ("COLON", "ARROW", "ELSE")
            return NameKind.DIMENSIONS if is_type else NameKind.STATICS
        elif terminal == "IN" and any(_terminal(pending, index - back) in ("SCAN", "EXPERTS") for back in (2, 3)):
            return NameKind.VALUES  # of a loop: a variable, and what is before it, stand between
        elif terminal == "IN" and enclosing(pending[:index], ("SCAN", "LBRACE")) == "SCAN":
            return NameKind.VALUES  # of a further sequence
        elif terminal in _SINGLE:
            return _SINGLE[terminal]
        elif terminal == "BY":
            return _after_by(pending, index)
    return NameKind.NONE


def enclosing(pending: Pending, terminals: Sequence[str]) -> str:
    """Returns the innermost of some terminals that the rules which are not complete contain, empty if there is none."""
    for index in range(len(pending) - 1, -1, -1):
        if (terminal := _terminal(pending, index)) in terminals:
            return terminal
    return ""


def _after_by(pending: Pending, index: int) -> NameKind:
    if _terminal(pending, index - 1) == "DRAWN":
        return NameKind.DRAWING
    return NameKind.HALTING if any(_terminal(pending, index - at) == "HALTING" for at in (2, 4)) else NameKind.VALUES


def _terminal(pending: Pending, index: int) -> str:
    symbol = pending[index] if index >= 0 else ""
    return getattr(symbol, "type", str(symbol))


_SINGLE = {
    **dict.fromkeys(_STATIC, NameKind.STATICS),
    **dict.fromkeys(_VALUE, NameKind.VALUES),
    "PIPE": NameKind.STAGES,
    "LET": NameKind.BLOCKS,
    "COSTS": NameKind.COSTS,
    "MAPS": NameKind.STATICS,
    "RECORDS": NameKind.STATICS,
    "ACTS": NameKind.STATICS,
    "READS": NameKind.STATICS,
}
