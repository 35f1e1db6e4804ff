"""The rows and columns of a table, with a column for each combination of the values that `columns` lists."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

from archlang.diagnostics import Report
from archlang.diagnostics.effort import spend
from archlang.names import mistakes as name_mistakes
from archlang.plan import mistakes
from archlang.plan.variations import MOST_VARIED
from archlang.syntax.expression_text import expression_text
from archlang.syntax.tree import Column, Columns, Expression, ListOf, Number, Range, Row, Setting, Table, Variation


@dataclass(frozen=True)
class TableParts:
    """The rows and columns of a table. `is_sound` is False if the values of its `columns` have a mistake, or a line
    could not be read."""

    table: Table
    rows: tuple[Row, ...]
    columns: tuple[Column, ...]
    is_sound: bool


def read_table(table: Table, report: Report) -> TableParts:
    """Returns the rows and columns of a table; reports `columns` without values, and with too many."""
    rows = tuple(part for part in table.parts if isinstance(part, Row))
    columns: list[Column] = []
    is_sound = table.is_whole
    for part in table.parts:
        if isinstance(part, Column):
            columns.append(part)
        elif isinstance(part, Columns):
            values = [_values(place, report) for place in part.at]
            count = prod(map(len, values))
            if count > MOST_VARIED:
                report(mistakes.too_many_varied(part.span, count, MOST_VARIED, "columns"))
            is_sound &= 0 < count <= MOST_VARIED
            if count <= MOST_VARIED:
                columns += _spread(part, values)
    return TableParts(table, rows, tuple(columns), is_sound)


def _spread(part: Columns, values: Sequence[Sequence[Setting]]) -> Iterator[Column]:
    varied = [isinstance(place, Variation) for place in part.at]
    for at in product(*values):
        spend()
        shown = [expression_text(setting.value) for setting, is_shown in zip(at, varied, strict=True) if is_shown]
        title = ", ".join([part.title] * bool(part.title) + shown)
        yield Column(title=title, metric=part.metric, at=at, best_of=part.best_of, span=part.span)


def _values(place: Setting | Variation, report: Report) -> Sequence[Setting]:
    if isinstance(place, Setting):
        return [place]
    match place.values:
        case ListOf(items=items):
            values: Sequence[Expression] = items
        case Range(low=Number(value=int(low)), high=Number(value=int(high)), span=span):
            count = high - low + 1
            if count > MOST_VARIED:
                report(mistakes.too_many_varied(span, count, MOST_VARIED, "columns"))
                return []
            values = [Number(value=n, text=str(n), span=span) for n in range(low, high + 1)]
        case _:
            values = ()
    if not values:
        report(name_mistakes.nothing_to_vary(place.values.span, place.values.span.text.startswith("[")))
    return [Setting(path=place.path, value=value, span=value.span) for value in values]
