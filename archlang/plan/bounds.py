"""The bounds of a recipe: what a sample of its model may cost at most."""

from collections.abc import Mapping
from dataclasses import replace

from archlang.elaborate.static_arguments import plain
from archlang.errors.effort import spend
from archlang.graph.card import COSTS, DEFAULT_LENGTH, cost_at
from archlang.graph.graph import Graph
from archlang.plan import mistakes
from archlang.plan.recipe import SEED, ResolvedRecipe
from archlang.plan.recipe_graph import report_at_point
from archlang.syntax.tree import CostBound, Setting

_LENGTH, _LIMIT = replace(SEED, name="length"), replace(SEED, name="limit", kind="float")


def check_bounds(recipe: ResolvedRecipe, graph: Graph, point: Mapping[str, Setting]) -> None:
    """Reports the bounds that the model of a point exceeds; `point` are the settings that are not those of the lines of
    the recipe."""
    model, own = recipe.parts.choices.get("model"), recipe.parts.recipe.span
    is_of_base = not all(own.contains(bound.span) for bound in recipe.parts.bounds)
    report = report_at_point(recipe, point, model.value.span if model is not None and is_of_base else None)
    nodes = sum(1 for _ in graph.region.walk())
    for bound in recipe.parts.bounds:
        if (read := read_bound(recipe, bound)) is None:
            continue
        spend(nodes)
        cost, length, limit = bound.cost.text, *read
        measured = cost_at(graph, cost, length)
        if measured.value is None:
            report(mistakes.unknown_cost(bound.cost.span, cost, graph.name, measured.unknown))
        elif measured.value > limit:
            place = "" if cost == "parameters" else f" at {length:,} positions"
            value, most = f"{measured.value:,}", f"{limit:,.15g}"
            report(mistakes.over_bound(bound.span, cost, graph.name, value, most, place, measured.largest))


def read_bound(recipe: ResolvedRecipe, bound: CostBound) -> tuple[int, float] | None:
    """The length and the limit of a bound; None, and a report, if one of them is wrong, or the cost is unknown."""
    cost = bound.cost
    if cost.text not in COSTS:
        recipe.report(mistakes.no_such_cost(cost.span, cost.text, COSTS))
        return None
    if cost.text == "parameters" and bound.length is not None:
        recipe.report(mistakes.no_cost_of_a_length(bound.length.span))
        return None
    limit = plain(recipe.value(_LIMIT, bound.limit))
    length = DEFAULT_LENGTH if bound.length is None else plain(recipe.value(_LENGTH, bound.length))
    if isinstance(length, int) and length < 1:
        recipe.report(mistakes.no_length(bound.span, cost.text))
    elif isinstance(length, int) and isinstance(limit, int | float):
        return length, limit
    return None
