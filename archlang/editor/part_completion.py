"""What can be written in the lines of a recipe or a table: items, statics with their values, metrics and keywords."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from archlang.editor.completion_options import Completion, choices, of_item, of_static, static_values
from archlang.editor.document import Document
from archlang.editor.recipe_facts import RecipeFacts, recipes_of
from archlang.graph.card import COSTS
from archlang.syntax.stack import read_prefix
from archlang.syntax.tokens import LINE_WORDS, TABLE_WORDS, unclosed
from archlang.syntax.tree import Column, Columns, Recipe, Table

if TYPE_CHECKING:
    from lark import Token

_PART = re.compile(rf"(?:^|(?<=[{{}}]))[ \t]*(?=(?:{'|'.join(LINE_WORDS)})[ \t\"])", re.MULTILINE)
# The keywords within a line, by their terminals.
_CLAUSES = {
    **{word.upper(): word for word in ("from", "at", "of", "by", "claims", "absent", "median", "log", "in")},
    "BEST": "best of",
    "AVERAGE": "average of",
}
_NAMES = ("NAME", "DOTTED")
# The terminals before lists, all but the last of paths.
_LISTS = ("VARY", "SEARCH", "TEST", "AT", "OF", "CLAIMS")
_MEASURED = ("CLAIM", "COLUMN", "COLUMNS")
_BEFORE_METRICS = (("MEDIAN", "CLAIM"), ("STRING", "COLUMN"), ("STRING", "COLUMNS"))


def part_completions(document: Document, header: int, brace: int | None, offset: int) -> Iterator[Completion]:
    """Yields what can be written at an offset in a recipe or a table whose word is at `header` and whose `{` is at
    `brace`; None for an offset in the header."""
    text = document.text
    is_table = text.startswith("table", header)
    begins = [] if brace is None else [match.end() for match in _PART.finditer(text, brace + 1, offset)]
    begin = begins[-1] if begins else offset
    item = "table t {" if is_table else "recipe r {"
    is_line_start = not text[text.rfind("\n", 0, offset) + 1 : offset].strip() or offset == begin
    prefix = read_prefix(text[header:offset] if brace is None else item + text[begin:offset])
    if prefix is None and is_line_start:
        prefix = read_prefix(item)  # the line before is half-written
    if prefix is None:
        return
    tokens = prefix.tokens if brace is None else prefix.tokens[3:]
    place = _Place(document, item_with_header(document, header), tokens)
    names = [*place.names()]
    yield from names
    if brace is not None and not names and is_line_start:
        words = (word for word in LINE_WORDS if is_table == (word in TABLE_WORDS))
        yield from (Completion(word, "keyword") for word in words)
    for terminal, clause in _CLAUSES.items():
        # After a value, `in` compares.
        if terminal in prefix.accepted and (terminal != "IN" or place.is_after_path()):
            yield Completion(clause, "keyword")


def item_with_header(document: Document, header: int) -> Recipe | Table | None:
    """Returns the recipe or the table whose word is at an offset; None if it cannot be parsed."""
    items = (item for item in document.program.items if isinstance(item, Recipe | Table))
    return next((item for item in items if item.span.start <= header < item.name_span.start), None)


@dataclass(frozen=True)
class _Place:
    """A place after some tokens of a part of a recipe or a table, or of its header; `item` is the recipe or table."""

    document: Document
    item: Recipe | Table | None
    tokens: Sequence[Token]

    def names(self) -> Iterator[Completion]:
        """Yields the names that can stand here."""
        last, before, outer = self._terminal(-1), self._terminal(-2), self._before_open_bracket()
        path = self._path_of_value(outer)
        list_word = next((token.type for token in reversed(outer) if token.type in _LISTS), "")
        if path is not None:
            word, _, name = path.partition(".")
            if (named := self._recipes.item(word)) is not None:
                yield from static_values(self.document, named, name, self._recipes)
        elif len(outer) < len(self.tokens):
            # Statics, or the number of a group.
            if last == "LSQB" and outer[-1] is self._metric_of_line() and self._terminal(0) in _MEASURED:
                yield from (Completion(number, "group") for number in self._recipes.group_numbers(str(outer[-1])))
        elif last in ("TASK", "MODEL", "TRAIN"):
            yield from choices(self.document, str(self.tokens[-1]))
        elif (last == "FROM" and self._terminal(0) == "RECIPE") or (last, before) == ("STRING", "ROW"):
            recipes = self.document.resolved.recipes.values()
            yield from (of_item(recipe.name, recipe) for recipe in recipes if recipe is not self.item)
        elif (last, before) == ("OF", "AVERAGE"):
            resolved = self.document.resolved
            names = (
                name for name in (*resolved.tables, *resolved.used_tables) if self.item is not resolved.tables.get(name)
            )
            yield from (Completion(name, "table") for name in names)
        elif last in ("CLAIM", "COLUMNS", "BY") or (last, before) in _BEFORE_METRICS:
            yield from (Completion(metric, "metric") for metric in self._recipes.metrics)
        elif last in ("WHERE", "COMMA") and self._terminal(0) == "WHERE":
            yield from (Completion(cost, "metric") for cost in COSTS)
        elif last in _LISTS or last == "COMMA":
            yield from self._paths(list_word)

    def is_after_path(self) -> bool:
        """Whether a path stands before, whose values can follow `in`."""
        return self._terminal(-1) in _NAMES and self._terminal(-2) in (*_LISTS, "COMMA")

    def _paths(self, list_word: str) -> Iterator[Completion]:
        """Yields the paths that can stand in the list after a word."""
        token = self._metric_of_line()
        metric = str(token or "")
        is_average = any(token.type == "AVERAGE" for token in self.tokens)
        averaged = self.document.resolved.find_table(metric) if is_average else None
        if list_word == "OF":
            yield from (Completion(path, "static") for path in self._recipes.varied)
        elif averaged is not None:
            columns = [part for part in averaged[1].parts if isinstance(part, Column | Columns)]
            yield from (Completion(setting.path.text, "static") for column in columns for setting in column.at)
        elif list_word != "CLAIMS":
            if self._terminal(0) in _MEASURED:
                yield from (Completion(group, "group") for group in self._recipes.groups(metric.partition(".")[0]))
            statics = self._recipes.statics.items()
            is_test = list_word == "TEST"  # which sets statics of the model
            yield from (of_static(path, static) for path, static in statics if not is_test or path.startswith("model."))

    @property
    def _recipes(self) -> RecipeFacts:
        """The recipe around the place, of the row, or of all rows."""
        file = self.document.resolved
        recipe = file.recipes.get(str(self.tokens[2])) if self._terminal(0) == "ROW" else None
        return recipes_of(file, recipe or self.item)

    def _metric_of_line(self) -> Token | None:
        return next((token for token in self.tokens if token.type in _NAMES), None)

    def _terminal(self, index: int) -> str:
        return self.tokens[index].type if -len(self.tokens) <= index < len(self.tokens) else ""

    def _before_open_bracket(self) -> Sequence[Token]:
        first = next((token.start_pos for token in unclosed(self.tokens)), None)
        return self.tokens if first is None else [token for token in self.tokens if (token.start_pos or 0) < first]

    def _path_of_value(self, outer: Sequence[Token]) -> str | None:
        if len(outer) < 3 or outer[-1].type not in ("EQUAL", "IN") or outer[-3].type not in (*_LISTS, "COMMA"):
            return None
        is_in_list = len(outer) < len(self.tokens) and self._terminal(-1) in ("LSQB", "COMMA")
        is_value = outer[-1].type == "EQUAL" and len(outer) == len(self.tokens)
        return str(outer[-2]) if is_in_list or is_value else None
