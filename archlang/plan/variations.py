"""The values that `vary` of a recipe and `columns` of a table list, and the points that a check plans of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice, product
from math import prod
from random import Random

from archlang.errors import Report, Span
from archlang.errors.effort import spend
from archlang.plan import mistakes
from archlang.plan.recipe import ResolvedRecipe, report_repeated
from archlang.resolve import mistakes as name_mistakes
from archlang.syntax import tree
from archlang.syntax.printer import unparse
from archlang.types.statics import Interval, StaticValue

# A range after `vary` has at most this many values.
MOST_VARIED = 10_000


@dataclass(frozen=True)
class VariedStatic:
    """A static that a recipe varies, with its values in the order of the recipe."""

    path: tree.Name
    values: tuple[tree.Expression, ...]

    @cached_property
    def settings(self) -> tuple[tree.Setting, ...]:
        return tuple(tree.Setting(path=self.path, value=value, span=value.span) for value in self.values)


def varied_statics(recipe: ResolvedRecipe) -> tuple[VariedStatic, ...]:
    """Every static that a recipe varies, once each; unknown paths are left out."""
    varied: dict[str, VariedStatic] = {}
    for variation in recipe.parts.vary:
        path, values = variation.path, variation.values
        if recipe.parameter(path.text) is None or path.text in varied:
            continue
        if isinstance(values, tree.ListOf):
            varied[path.text] = VariedStatic(path, values.items)
        elif isinstance(values, tree.Range):
            interval = recipe.evaluator().value(values, "range")
            if isinstance(interval, Interval):
                varied[path.text] = VariedStatic(path, _integers(recipe, interval, values.span))
    return tuple(varied.values())


def check_variations(recipe: ResolvedRecipe) -> None:
    """Reports unknown and repeated paths after `vary`, and paths without values."""
    report_repeated(recipe.parts.vary, recipe.report)
    for variation in recipe.parts.vary:
        path, values = variation.path, variation.values
        if (recipe.has_static(path) and not isinstance(values, tree.ListOf | tree.Range)) or (
            isinstance(values, tree.ListOf) and not values.items
        ):
            recipe.report(name_mistakes.nothing_to_vary(values.span, values.span.text.startswith("[")))


def ends_or_items(values: tree.Expression) -> tuple[tree.Expression, ...]:
    """The items of a list, or both ends of a range."""
    if isinstance(values, tree.ListOf):
        return values.items
    return (values.low, values.high) if isinstance(values, tree.Range) else ()


def values_by_path(recipe: ResolvedRecipe, varied: tuple[VariedStatic, ...]) -> dict[str, tuple[StaticValue, ...]]:
    """The evaluated values of each varied static by its dotted path."""
    values = {static.path.text: [recipe.static(static.path.text, each) for each in static.values] for static in varied}
    return {path: tuple(value for value in evaluated if value is not None) for path, evaluated in values.items()}


def _integers(recipe: ResolvedRecipe, interval: Interval, span: Span) -> tuple[tree.Expression, ...]:
    count = interval.high - interval.low + 1
    if count > MOST_VARIED:
        recipe.report(mistakes.too_many_varied(span, count, MOST_VARIED, "vary"))
    spend(min(count, MOST_VARIED))
    last = min(interval.high, interval.low + MOST_VARIED - 1)
    return tuple(tree.Number(value=n, text=str(n), span=span) for n in range(interval.low, last + 1))


@dataclass(frozen=True)
class TableParts:
    """The rows and columns of a table. `is_sound` is False if the values of its `columns` have a mistake."""

    table: tree.Table
    rows: tuple[tree.Row, ...]
    columns: tuple[tree.Column, ...]
    is_sound: bool


def read_table(table: tree.Table, report: Report) -> TableParts:
    """Returns the rows and columns of a table; reports `columns` without values, and with too many."""
    rows = tuple(part for part in table.parts if isinstance(part, tree.Row))
    columns: list[tree.Column] = []
    is_sound = True
    for part in table.parts:
        if isinstance(part, tree.Column):
            columns.append(_column(part))
        elif isinstance(part, tree.Columns):
            values = [_values(place, report) for place in part.at]
            count = prod(map(len, values))
            if count > MOST_VARIED:
                report(mistakes.too_many_varied(part.span, count, MOST_VARIED, "columns"))
            is_sound &= 0 < count <= MOST_VARIED
            if count <= MOST_VARIED:
                columns += _spread(part, values)
    return TableParts(table, rows, tuple(columns), is_sound)


def _spread(part: tree.Columns, values: Sequence[Sequence[tree.Setting]]) -> Iterator[tree.Column]:
    varied = [isinstance(place, tree.Variation) for place in part.at]
    for at in product(*values):
        spend()
        shown = [unparse(setting.value) for setting, is_shown in zip(at, varied, strict=True) if is_shown]
        title = ", ".join([part.title] * bool(part.title) + shown)
        yield _column(
            tree.Column(
                title=title, metric=part.metric, at=at, best_of=part.best_of, best_by=part.best_by, span=part.span
            )
        )


def _column(part: tree.Column) -> tree.Column:
    """A column whose metric has its recipe apart."""
    name, span = part.metric, part.metric.span
    if part.average or len(name.parts) != 3:
        return part
    dot = span.start + len(name.parts[0])
    recipe = tree.Name(parts=name.parts[:1], span=Span(span.source, span.start, dot))
    metric = tree.Name(parts=name.parts[1:], span=Span(span.source, dot + 1, span.end))
    return replace(part, recipe=recipe, metric=metric)


def _values(place: tree.Setting | tree.Variation, report: Report) -> Sequence[tree.Setting]:
    if isinstance(place, tree.Setting):
        return [place]
    match place.values:
        case tree.ListOf(items=items):
            values: Sequence[tree.Expression] = items
        case tree.Range(low=tree.Number(value=int(low)), high=tree.Number(value=int(high)), span=span):
            count = high - low + 1
            if count > MOST_VARIED:
                report(mistakes.too_many_varied(span, count, MOST_VARIED, "columns"))
                return []
            values = [tree.Number(value=n, text=str(n), span=span) for n in range(low, high + 1)]
        case _:
            values = ()
    if not values:
        report(name_mistakes.nothing_to_vary(place.values.span, place.values.span.text.startswith("[")))
    return [tree.Setting(path=place.path, value=value, span=value.span) for value in values]


# A check plans at most this many points of a recipe, values of a search, or cells of a table.
MOST_POINTS = 600


def spread(sizes: Sequence[int], most: int = MOST_POINTS) -> Iterator[tuple[int, ...]]:
    """Yields distinct indices into a grid with these sizes, the first corner first. If the grid has more than `most`
    points, yields a Latin hypercube sample of them: each index of each axis at least once, or as many as fit."""
    if prod(sizes) <= most:
        yield from product(*map(range, sizes))
        return
    axes = [_shuffled_indices(size, most, Random(axis)) for axis, size in enumerate(sizes)]
    first = (0,) * len(sizes)
    yield from islice(dict.fromkeys([first, *zip(*axes, strict=True)]), most)


def _shuffled_indices(size: int, count: int, random: Random) -> list[int]:
    indices = [index * (size - 1) // (count - 1) if size > count else index % size for index in range(count)]
    random.shuffle(indices)
    return indices
