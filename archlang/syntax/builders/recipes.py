"""Builds recipes and tables."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from archlang.source import Span
from archlang.syntax import mistakes, tree
from archlang.syntax.builders.context import LineTaken, Section
from archlang.syntax.builders.parts import Group, N, Parts, end_of, nodes_of, nodes_of_kind, start_of
from archlang.syntax.words import PART_WORDS

_PART_ON_NEW_LINE = re.compile(rf"[\r\n][ \t]*({'|'.join(PART_WORDS)})\Z")


class Recipes(Section):
    """Recipes, tables and their parts."""

    def recipe(self, parts: Parts) -> tree.Recipe:
        base = parts[3]
        fields = {} if base is None else {"base": str(base), "base_span": self._context.token_span(base)}
        return self._item(
            tree.Recipe, parts, (tree.Choice, tree.AtTest, tree.Vary, tree.Search, tree.Claim, tree.Missing), fields
        )

    def table(self, parts: Parts) -> tree.Table:
        fields = {} if parts[3] is None else {"origin": parts[3][1:-1]}
        return self._item(tree.Table, parts, (tree.Row, tree.Column, tree.Columns, tree.Missing), fields)

    def _item(
        self,
        kind: Callable[..., N],
        parts: Parts,
        part_kinds: tuple[type[tree.Node], ...],
        fields: Mapping[str, object],
    ) -> N:
        _, name, _, _, opener, *rest = parts
        span = self._context.span(parts)
        closing = self._context.comments.within(opener.end_pos, span.end, follows=len(rest) > 1)
        documentation, comment = self._context.item_comments(span)
        return kind(
            name=str(name),
            name_span=self._context.token_span(name),
            parts=tuple(part for part in rest if isinstance(part, part_kinds)),
            closing=closing,
            span=span,
            **fields,
            **documentation,
            **comment,
        )

    def row(self, parts: Parts) -> tree.Row:
        _, title, recipe, _, at, best_of, published = parts
        return self._table_part(
            tree.Row,
            parts,
            title=title[1:-1],
            recipe=str(recipe),
            recipe_span=self._context.token_span(recipe),
            at=at or (),
            best_of=nodes_of_kind(tree.Name, best_of),
            published=published,
        )

    def absent_row(self, parts: Parts) -> tree.Row:
        _, title, _, why, published = parts
        if not why[1:-1].strip():
            self._context.mistakes.append(
                mistakes.empty_text(self._context.token_span(why), "the reason after `absent`")
            )
        return self._table_part(tree.Row, parts, title=title[1:-1], why=why[1:-1], published=published)

    def published_row(self, parts: Parts) -> tree.Row:
        _, title, published = parts
        return self._table_part(tree.Row, parts, title=title[1:-1], published=published)

    def column(self, parts: Parts) -> tree.Column:
        _, title, metric, _, index, _, _, at, best_of = parts
        fields = {"index": index, "at": at or (), "best_of": nodes_of_kind(tree.Name, best_of)}
        return self._table_part(tree.Column, parts, title=title[1:-1], metric=metric, **fields)

    def average_column(self, parts: Parts) -> tree.Column:
        _, title, _, _, table, _, at = parts
        return self._table_part(tree.Column, parts, title=title[1:-1], metric=table, average=True, at=at or ())

    def columns(self, parts: Parts) -> tree.Columns:
        _, title, metric, _, *spread, best_of = parts
        return self._table_part(
            tree.Columns,
            parts,
            title="" if title is None else title[1:-1],
            metric=metric,
            at=tuple(part for part in spread if isinstance(part, tree.Setting | tree.Variation)),
            best_of=nodes_of_kind(tree.Name, best_of),
        )

    def best_of(self, parts: Parts) -> Group:
        return Group(nodes_of(parts), start_of(parts[0]), end_of(parts[-1]))

    def published(self, parts: Parts) -> tree.Published:
        _, median, *_, origin = parts
        cells = tuple(part for part in parts if isinstance(part, tree.CellNumber))
        return tree.Published(
            cells=cells,
            median=median is not None,
            origin=None if origin is None else origin[1:-1],
            span=self._context.span(parts),
        )

    def number_of_cell(self, parts: Parts) -> tree.CellNumber:
        value, _, deviation = parts
        return tree.CellNumber(value=value, deviation=deviation, span=self._context.span(parts))

    def no_number(self, parts: Parts) -> tree.CellNumber:
        return tree.CellNumber(span=self._context.span(parts))

    def _table_part(self, kind: Callable[..., N], parts: Parts, **fields: Any) -> N:  # Any: fields of the node
        """The parser hands over settings as a tuple, whose last one ends the part."""
        word, title, *_ = parts
        if title is not None and not title[1:-1].strip():
            self._context.mistakes.append(
                mistakes.empty_text(self._context.token_span(title), f"the title of a `{word}`")
            )
        present = [part for part in parts if part is not None]
        last = present[-1]
        end = last[-1].span.end if isinstance(last, tuple) and not isinstance(last, Group) else end_of(last)
        span = Span(self._context.source, start_of(parts[0]), end)
        return kind(span=span, **fields, **self._context.comments_of(span))

    def choice(self, parts: Parts) -> tree.Choice:
        word, value = parts
        if isinstance(value, tree.Call):
            statics = self._context.with_comments(value.statics)
            value = replace(value, statics=statics, closing=self._context.closing_comments(statics, value.span.end))
        return self._commented(tree.Choice, parts, word=str(word), value=value)

    def at_test(self, parts: Parts) -> tree.AtTest:
        _, settings = parts
        span = Span(self._context.source, start_of(parts[0]), settings[-1].span.end)
        return tree.AtTest(settings=settings, span=span, **self._context.comments_of(span))

    def vary(self, parts: Parts) -> tree.Vary:
        variations = tuple(part for part in parts if isinstance(part, tree.Variation))
        return self._commented(tree.Vary, parts, variations=variations)

    def variation(self, parts: Parts) -> tree.Variation:
        path, _, values = parts
        return tree.Variation(path=path, values=values, span=self._span_of_value(parts))

    def search(self, parts: Parts) -> tree.Search:
        sought = tuple(part for part in parts if isinstance(part, tree.Sought))
        return self._commented(tree.Search, parts, sought=sought)

    def sought(self, parts: Parts) -> tree.Sought:
        path, _, values, log = parts
        return tree.Sought(path=path, values=values, log=log is not None, span=self._span_of_value(parts))

    def claim(self, parts: Parts) -> tree.Claim:
        _, median, metric, _, index, _, _, value, _, deviation, _, at, *_, origin = parts
        fields = {
            "metric": metric,
            "median": median is not None,
            "index": index,
            "value": value,
            "deviation": deviation,
            "at": at or (),
        }
        return self._commented(tree.Claim, parts, **fields, origin=origin[1:-1])

    def settings(self, parts: Parts) -> tuple[tree.Node, ...]:
        first, *others = parts
        return nodes_of(parts) if isinstance(first, tree.Node) else first + nodes_of(others)

    def setting(self, parts: Parts) -> tree.Setting:
        path, _, value = parts
        return tree.Setting(path=path, value=value, span=self._span_of_value(parts))

    def _span_of_value(self, parts: Parts) -> Span:
        """Returns the span of a path and its value.

        Raises:
            LineTaken: the value ends with the first word of a line of a recipe or a table."""
        span = self._context.span(parts)
        if _PART_ON_NEW_LINE.search(span.text):
            raise LineTaken
        return span
