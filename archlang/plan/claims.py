"""The published results that a recipe's `claim` lines name."""

from collections.abc import Iterator

from archlang.elaborate.static_arguments import plain
from archlang.names.evaluate import Evaluator
from archlang.plan import mistakes
from archlang.plan.measures import Measures
from archlang.plan.plan import PublishedResult
from archlang.plan.recipe import ResolvedRecipe, report_repeated
from archlang.syntax.tree import Expression, Number, Unary
from archlang.types import Dim
from archlang.types.statics import StaticValue


def check_claims(recipe: ResolvedRecipe, measures: Measures | None) -> None:
    """Reports claims of no metric or of one that no run measures, without a number, or at unknown statics."""
    for claim in recipe.parts.claims:
        if len(claim.metric.parts) != 2:
            recipe.report(mistakes.bad_metric(claim.metric.span, claim.metric.text))
        elif measures is not None:
            measures.check(claim.metric.span, claim.metric.text, recipe.report)
        report_repeated((setting.path for setting in claim.at), recipe.report)
        for number in filter(None, (claim.value, claim.deviation)):
            if not isinstance(number, Number | Unary):
                recipe.report(mistakes.claim_without_number(number.span))
        for setting in claim.at:
            recipe.has_static(setting.path, also=("test", "valid"))


def published_results(recipe: ResolvedRecipe) -> Iterator[PublishedResult]:
    """The claims of a recipe with their numbers; claims without a number are left out."""
    evaluator = recipe.evaluator()
    for claim in recipe.parts.claims:
        value = _number(claim.value, evaluator)
        deviation = None if claim.deviation is None else _number(claim.deviation, evaluator)
        if value is None:
            continue
        index = None if claim.index is None else evaluator.value(claim.index, "int")
        at: dict[str, StaticValue] = {}
        for setting in claim.at:
            parameter = recipe.parameter(setting.path.text)
            condition = plain(
                evaluator.value(setting.value, None) if parameter is None else recipe.value(parameter, setting.value)
            )
            if condition is not None:
                at[setting.path.text] = condition
        group = index.constant if isinstance(index, Dim) else None
        yield PublishedResult(claim.metric.text, group, value, deviation, at, claim.origin)


def _number(expression: Expression, evaluator: Evaluator) -> float | None:
    """The number of a claim; None if it is not a literal, which `check_claims` reports."""
    value = evaluator.value(expression, "float") if isinstance(expression, Number | Unary) else None
    if isinstance(value, Dim):
        return None if value.constant is None else float(value.constant)
    return value if isinstance(value, float) else None
