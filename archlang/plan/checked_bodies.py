"""The items of a file that have been checked, so that after a change only others are checked again."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from archlang.elaborate.elaborator import elaborate
from archlang.errors import Diagnostic, Report
from archlang.errors.effort import Memo
from archlang.errors.source import Span
from archlang.plan.statics import model_sizes
from archlang.resolve.resolve import Declaration, ResolvedFile
from archlang.resolve.unused import unused_names
from archlang.resolve.values import Bound
from archlang.syntax.tree import Conditional, Definition, If, Item, Recipe, Row, Table, Use
from archlang.syntax.walk import walk
from archlang.types import Type

_WORD = re.compile(r"[A-Za-z_]\w*")

# Values, blocks and statics without a definition.
_UNKNOWN_NAMES = ("E0201", "E0202", "E0313")

# A key-stroke adds few bodies, and a body few kilobytes.
_MOST_BODIES = 5_000

# The texts of a body and of the blocks that it may use, and the number of what `use` lines bring in.
_Key = tuple[str, tuple[str, ...], int]
# The types of the values of a body, by the start and the end of their places, counted from the start of the block.
_Types = Mapping[tuple[int, int], Type]


@dataclass(frozen=True)
class _Texts:
    """The texts of the blocks and models of a file by name, and of all items, and the number of what `use` lines bring
    in."""

    blocks: Mapping[str, str]
    items: Mapping[str, str]
    context: int


@dataclass
class CheckedBodies:
    """The checked bodies of the last texts of a file. A body without mistakes is not checked again as long as its text,
    and the texts of the blocks that it uses, stay."""

    _bodies: Memo[_Types] = field(default_factory=lambda: Memo(_MOST_BODIES))
    _words: Memo[frozenset[str]] = field(default_factory=lambda: Memo(_MOST_BODIES))
    _files: Memo[_Texts] = field(default_factory=lambda: Memo(20))
    _contexts: dict[tuple[str, ...], int] = field(default_factory=dict)
    _sound: frozenset[_Key] = frozenset()

    def check(self, declaration: Declaration, report: Report) -> _Types:
        """Reports the mistakes in the body of a block or model. Returns the types of its values, by their places from
        its start."""
        mistakes: list[Diagnostic] = []

        def note(diagnostic: Diagnostic) -> None:
            mistakes.append(diagnostic)
            report(diagnostic)

        item, texts = declaration.item, self._of(declaration.file)
        key = _text(item), self._reached_texts(_text(item), texts.blocks, {item.name}), texts.context
        return self._bodies.get(key, lambda: self._elaborate(declaration, note), lambda: not mistakes)

    def is_sound(self, item: Recipe | Table, file: ResolvedFile) -> bool:
        """Returns whether a recipe or a table, and all items that it names, are those of a file without mistakes."""
        return bool(self._sound) and self._key_of_plan(item, file) in self._sound

    def keep_sound(self, file: ResolvedFile) -> None:
        """Keeps the recipes and tables of a file without mistakes."""
        items = [item for item in file.program.items if isinstance(item, Recipe | Table)]
        self._sound = frozenset(self._key_of_plan(item, file) for item in items)

    def _key_of_plan(self, item: Recipe | Table, file: ResolvedFile) -> _Key:
        texts, text = self._of(file), _text(item)
        if isinstance(item, Recipe):  # its claims must agree with those of the tables' rows about it
            tables = (each for each in file.program.items if isinstance(each, Table))
            named = (table for table in tables if item.name in self._words_of(_text(table)))
            # A setting may have an effect only in a recipe based on it.
            derived = (each for each in file.program.items if isinstance(each, Recipe) and each.base == item.name)
            text = "".join([text, *(_text_about(table, item.name) for table in named), *map(_text, derived)])
        return text, self._reached_texts(text, texts.items, set()), texts.context

    def _elaborate(self, declaration: Declaration, report: Report) -> _Types:
        item = declaration.item
        assert isinstance(item, Definition)
        types: dict[tuple[int, int], Type] = {}
        mistakes: list[Diagnostic] = []
        place = item.span

        def observe(span: Span, kind: Type) -> None:
            if span.source is place.source and place.start <= span.start and span.end <= place.end:
                types.setdefault((span.start - place.start, span.end - place.start), kind)

        def note(diagnostic: Diagnostic) -> None:
            mistakes.append(diagnostic)
            report(diagnostic)

        ambient = model_sizes({}) if item.word == "model" else {}
        elaborate(declaration, {}, ambient, declaration.span, note, generic=True, observe=observe)
        if any(isinstance(node, If | Conditional) for node in walk(item)):
            for diagnostic in _unknown_names(declaration, ambient, {each.span for each in mistakes}):
                note(diagnostic)
        if not any(each.is_error for each in mistakes):  # else a misspelt name may be meant
            for diagnostic in unused_names(item):
                report(diagnostic)
        return types

    def _reached_texts(self, text: str, texts: Mapping[str, str], skipped: set[str]) -> tuple[str, ...]:
        return tuple(texts[name] for name in self._reached(text, texts, skipped))

    def _reached(self, text: str, texts: Mapping[str, str], skipped: set[str]) -> list[str]:
        """Returns the names of the items that a text names, and of those that they name, except the skipped ones."""
        reached, pending = set(skipped), [text]
        while pending:
            for name in self._words_of(pending.pop()) & texts.keys() - reached:
                reached.add(name)
                pending.append(texts[name])
        return sorted(reached - skipped)

    def _of(self, file: ResolvedFile) -> _Texts:
        def texts() -> _Texts:
            uses = [item.span.text for item in file.program.items if isinstance(item, Use)]
            context = self._contexts.setdefault((*uses, *_used_texts(file)), len(self._contexts))
            items: dict[str, str] = {}
            for each in file.program.items:
                if not isinstance(each, Use):  # a recipe may have the name of its model
                    items[each.name] = items.get(each.name, "") + _text(each)
            blocks = {name: _text(declaration.item) for name, declaration in file.own.items()}
            return _Texts(blocks, items, context)

        return self._files.get(file, texts)

    def _words_of(self, text: str) -> frozenset[str]:
        return self._words.get(text, lambda: frozenset(_WORD.findall(text)))


def _unknown_names(declaration: Declaration, ambient: Mapping[str, Bound], reported: set[Span]) -> Iterator[Diagnostic]:
    """Yields the mistakes in names of the branches that the defaults of a block's statics exclude."""
    found: list[Diagnostic] = []
    elaborate(declaration, {}, ambient, declaration.span, found.append, generic=True, every_branch=True)
    place = declaration.item.span
    for each in found:
        is_within = each.span.source is place.source and place.start <= each.span.start < place.end
        if each.code in _UNKNOWN_NAMES and is_within and each.span not in reported:
            yield each


def _used_texts(file: ResolvedFile) -> Iterator[str]:
    """Yields the texts of the files that a file uses, directly or not."""
    seen, pending = {id(file)}, [file]
    while pending:
        user = pending.pop()
        declared = (declaration.file for declaration in user.used.values())
        for used in (*declared, *(each for each, _ in user.used_tables.values())):
            if id(used) not in seen:
                seen.add(id(used))
                pending.append(used)
                yield used.program.source.text


def _text(item: Item) -> str:
    """Returns the text of an item, with a mark if it has syntax mistakes: the tree without the lines that could not be
    read, of an editor, has the same text."""
    return item.span.text if item.is_whole else item.span.text + "\0"


def _text_about(table: Table, recipe: str) -> str:
    """Returns the text of a table without the rows of other recipes, on which the claims about a recipe depend."""
    parts = (part for part in table.parts if not isinstance(part, Row) or part.recipe == recipe)
    return "\n".join([table.name, table.origin, *(part.span.text for part in parts)])
