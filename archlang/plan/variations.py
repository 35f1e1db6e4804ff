"""The values that a recipe's `vary` lists."""

from dataclasses import dataclass

from archlang.diagnostics.effort import spend
from archlang.elaborate.static_arguments import plain
from archlang.names import mistakes as name_mistakes
from archlang.plan import mistakes
from archlang.plan.recipe import ResolvedRecipe, report_repeated
from archlang.source import Span
from archlang.syntax.expression_text import expression_text
from archlang.syntax.tree import Expression, ListOf, Name, Number, Range, Setting
from archlang.types.statics import Interval, StaticValue

# A range after `vary` has at most this many values.
MOST_VARIED = 10_000


@dataclass(frozen=True)
class VariedStatic:
    """A static that a recipe varies, with its values in the order of the recipe."""

    path: Name
    values: tuple[Expression, ...]

    def setting(self, index: int) -> Setting:
        value = self.values[index]
        return Setting(path=self.path, value=value, span=value.span)


def varied_statics(recipe: ResolvedRecipe) -> tuple[VariedStatic, ...]:
    """Every static that a recipe varies, once each; unknown paths are left out."""
    varied: dict[str, VariedStatic] = {}
    for variation in recipe.parts.vary:
        path, values = variation.path, variation.values
        if recipe.parameter(path.text) is None or path.text in varied:
            continue
        if isinstance(values, ListOf):
            varied[path.text] = VariedStatic(path, values.items)
        elif isinstance(values, Range):
            interval = recipe.evaluator().value(values, "range")
            if isinstance(interval, Interval):
                varied[path.text] = VariedStatic(path, _integers(recipe, interval, values.span))
    return tuple(varied.values())


def check_variations(recipe: ResolvedRecipe) -> None:
    """Reports unknown and repeated paths after `vary`, and paths without values."""
    report_repeated(recipe.parts.vary, recipe.report)
    for variation in recipe.parts.vary:
        path, values = variation.path, variation.values
        if (recipe.has_static(path) and not isinstance(values, ListOf | Range)) or (
            isinstance(values, ListOf) and not values.items
        ):
            recipe.report(name_mistakes.nothing_to_vary(values.span, values.span.text.startswith("[")))
        check_repeated_values(recipe, path, values)


def check_repeated_values(recipe: ResolvedRecipe, path: Name, values: Expression) -> None:
    """Warns of values that the list of a `vary` or a `search` has twice."""
    parameter = recipe.parameter(path.text)
    first: dict[str, Expression] = {}
    for item in values.items if isinstance(values, ListOf) and parameter is not None else ():
        spend()
        # Equal numbers may be written differently, as 1e-3 and 0.001.
        value = None if parameter is None else plain(recipe.value(parameter, item))
        text = expression_text(item) if value is None else str(value)
        if first.setdefault(text, item) is not item:
            recipe.report(mistakes.listed_twice(item.span, path.text, first[text].span))


def values_by_path(recipe: ResolvedRecipe, varied: tuple[VariedStatic, ...]) -> dict[str, tuple[StaticValue, ...]]:
    """The evaluated values of each varied static by its dotted path."""
    values: dict[str, tuple[StaticValue, ...]] = {}
    for static in varied:
        parameter = recipe.parameter(static.path.text)
        assert parameter is not None, "unknown paths are left out"
        evaluated = [plain(recipe.value(parameter, expression)) for expression in static.values]
        values[static.path.text] = tuple(value for value in evaluated if value is not None)
    return values


def _integers(recipe: ResolvedRecipe, interval: Interval, span: Span) -> tuple[Expression, ...]:
    """The integers of a range, at most `MOST_VARIED`."""
    count = interval.high - interval.low + 1
    if count > MOST_VARIED:
        recipe.report(mistakes.too_many_varied(span, count, MOST_VARIED, "vary"))
    spend(min(count, MOST_VARIED))
    last = min(interval.high, interval.low + MOST_VARIED - 1)
    return tuple(Number(value=n, text=str(n), span=span) for n in range(interval.low, last + 1))
