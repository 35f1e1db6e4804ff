"""Builds recipes and tables."""

from collections.abc import Callable

from archlang.source import Span
from archlang.syntax import tree
from archlang.syntax.builders.context import Section
from archlang.syntax.builders.parts import N, Parts, nodes_of, start_of


class Recipes(Section):
    """Recipes, tables and their parts."""

    def recipe(self, parts: Parts) -> tree.Recipe:
        return self._item(tree.Recipe, parts, (tree.Choice, tree.AtTest, tree.Vary, tree.Search, tree.Claim))

    def table(self, parts: Parts) -> tree.Table:
        return self._item(tree.Table, parts, (tree.Row, tree.Column))

    def _item(self, kind: Callable[..., N], parts: Parts, part_kinds: tuple[type[tree.Node], ...]) -> N:
        _, name, opener, *rest = parts
        span = self._context.span(parts)
        closing = self._context.comments.within(opener.end_pos, span.end, follows=len(rest) > 1)
        documentation, comment = self._context.item_comments(span)
        return kind(
            name=str(name),
            name_span=self._context.token_span(name),
            parts=tuple(part for part in rest if isinstance(part, part_kinds)),
            closing=closing,
            span=span,
            **documentation,
            **comment,
        )

    def row(self, parts: Parts) -> tree.Row:
        _, title, *rest, _, at = parts
        span = self._row_span(parts)
        recipe, why = (rest[0], "") if len(rest) == 1 else (None, rest[1][1:-1])
        return tree.Row(
            title=title[1:-1],
            recipe=None if recipe is None else str(recipe),
            recipe_span=None if recipe is None else self._context.token_span(recipe),
            why=why,
            at=at or (),
            span=span,
            **self._context.comments_of(span),
        )

    def column(self, parts: Parts) -> tree.Column:
        _, title, metric, _, index, _, _, at = parts
        span = self._row_span(parts)
        return tree.Column(
            title=title[1:-1], metric=metric, index=index, at=at or (), span=span, **self._context.comments_of(span)
        )

    def _row_span(self, parts: Parts) -> Span:
        """From the first word to the last setting, which the parser hands over as a tuple."""
        *_, at = parts
        return Span(self._context.source, start_of(parts[0]), at[-1].span.end) if at else self._context.span(parts)

    def choice(self, parts: Parts) -> tree.Choice:
        word, value = parts
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
        return tree.Variation(path=path, values=values, span=self._context.span(parts))

    def search(self, parts: Parts) -> tree.Search:
        sought = tuple(part for part in parts if isinstance(part, tree.Sought))
        return self._commented(tree.Search, parts, sought=sought)

    def sought(self, parts: Parts) -> tree.Sought:
        path, _, values, log = parts
        return tree.Sought(path=path, values=values, log=log is not None, span=self._context.span(parts))

    def claim(self, parts: Parts) -> tree.Claim:
        _, metric, _, index, _, _, value, _, deviation, _, at, *_, origin = parts
        fields = {"metric": metric, "index": index, "value": value, "deviation": deviation, "at": at or ()}
        return self._commented(tree.Claim, parts, **fields, origin=origin[1:-1])

    def settings(self, parts: Parts) -> tuple[tree.Node, ...]:
        first, *others = parts
        return nodes_of(parts) if isinstance(first, tree.Node) else first + nodes_of(others)

    def setting(self, parts: Parts) -> tree.Setting:
        path, _, value = parts
        return tree.Setting(path=path, value=value, span=self._context.span(parts))
