"""The published results that a recipe's `claim` lines name."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from archlang.elaborate.static_arguments import plain
from archlang.errors import Report, Span, ignore
from archlang.plan import mistakes
from archlang.plan.measures import FRACTIONS, Measures, bad_metric, is_group, written_group
from archlang.plan.plan import PublishedResult
from archlang.plan.recipe import ResolvedRecipe, report_repeated
from archlang.plan.variations import read_table
from archlang.resolve.evaluate import Evaluator
from archlang.resolve.resolve import ResolvedFile
from archlang.syntax.printer import unparse
from archlang.syntax.tree import Claim, Expression, Name, Number, Range, Row, Setting, Unary
from archlang.types import Dim
from archlang.types.statics import StaticValue


def check_claims(recipe: ResolvedRecipe, measures: Measures | None) -> None:
    """Reports claims of no metric or of one that no run measures, without a number, or at unknown statics."""
    for claim in recipe.parts.claims:
        if len(claim.metric.parts) != 2:
            recipe.report(bad_metric(claim.metric))
        elif measures is not None:
            paths = [*(each.path.text for each in claim.at), *(each.path.text for each in recipe.parts.vary)]
            is_other_task = any(path.startswith("task.") for path in paths)
            of_claim = replace(measures, empty=()) if is_other_task else measures
            of_claim.check(claim.metric.span, claim.metric.text, recipe.report)
        if claim.metric.text.endswith(".loss") and (claim.index is not None or any(map(is_group, claim.at))):
            recipe.report(mistakes.measured_as_a_whole(claim.metric.span, claim.metric.text, "split"))
        report_repeated(claim.at, recipe.report)
        check_numbers(claim.metric.text, (claim.value, claim.deviation), recipe.report)
        for setting in claim.at:
            if measures is not None and is_group(setting) and setting.path.parts[0] in measures.splits:
                measures.check_group(setting.path, claim.metric.text, recipe.report)
            else:
                recipe.has_static(setting.path, also=("test", "valid"))


def check_numbers(
    metric: str,
    numbers: tuple[Expression | None, Expression | None],
    report: Report,
    *,
    most: float = 1,
    of_row: bool = False,
) -> bool:
    """Reports what is no number in a claim, a negative deviation, and, if the metric is a fraction, a number that is
    negative or larger than `most`. Returns whether both are numbers; a row may have `-` in place of one."""
    value, deviation = numbers
    wrong = [(number, False) for number in numbers if number is not None and literal(number) is None]
    if deviation is not None and (literal(deviation) or 0) < 0:
        wrong.append((deviation, True))
    for number, is_negative in wrong:
        span = number.span
        last_line = span.text.rpartition("\n")[2].lstrip()  # a `-` before it is no number of its own
        place = Span(span.source, span.end - len(last_line), span.end)
        report(mistakes.bad_claim(place, of_row, is_negative))
    if metric.rpartition(".")[2] in FRACTIONS:
        written = [number for number in numbers if isinstance(number, Number)]
        if value is not None and (literal(value) or 0) < 0:
            report(mistakes.negative_fraction(value.span, metric))
        elif any(number.value > most for number in written):
            report(mistakes.not_a_fraction([number.span for number in written], metric))
    return not wrong


def row_claims(file: ResolvedFile, recipe: str, point: Mapping[str, Setting]) -> Iterator[Claim]:
    """The numbers that the tables of a file claim for a recipe, as claims. A number is about the cell's point: the
    settings of its row and column, and those of `point` for the other varied statics. The best of several points has
    none of them, so it is left out."""
    for table in file.tables.values():
        rows = [part for part in table.parts if isinstance(part, Row) and part.runs and part.published]
        if not rows:
            continue
        parts = read_table(table, ignore)
        columns = parts.columns if parts.is_sound else ()
        for row in rows:
            assert row.published is not None, "chosen above"
            origin = table.origin if row.published.origin is None else row.published.origin
            for column, number in zip(columns, row.published.cells, strict=False):
                own = row.recipe or (column.recipe and column.recipe.text)
                if number.value is None or row.best_of or column.best_of or column.average or own != recipe:
                    continue
                settings = (*row.at, *column.at)
                at = {**point, **{setting.path.text: setting for setting in settings}}
                yield Claim(
                    metric=column.metric, median=row.published.median, index=column.index, value=number.value,
                    deviation=number.deviation, at=tuple(at.values()), origin=origin, span=number.span,
                )  # fmt: skip


def published_results(recipe: ResolvedRecipe, of_rows: Iterable[Claim]) -> Iterator[PublishedResult]:
    """The claims of a recipe, and those `of_rows`, with their numbers; claims without a number are left out."""
    evaluator = recipe.evaluator()
    own = len(recipe.parts.claims)
    for place, claim in enumerate((*recipe.parts.claims, *of_rows)):
        value = literal(claim.value)
        deviation = None if claim.deviation is None else literal(claim.deviation)
        if value is None:
            continue
        index = None
        if claim.index is not None:
            index = group_index(claim.index, claim.metric.text, evaluator, recipe.report)
        at: dict[str, StaticValue] = {}
        for setting in claim.at:
            parameter = recipe.parameter(setting.path.text)
            condition = plain(
                evaluator.value(setting.value, None) if parameter is None else recipe.value(parameter, setting.value)
            )
            if condition is not None:
                at[setting.path.text] = condition
        metric, is_of_row = claim.metric.text, place >= own
        written = written_number(claim.value, claim.deviation)
        yield PublishedResult(metric, index, value, deviation, at, claim.origin, claim.median, is_of_row, written)


def group_index(index: Expression, metric: str, evaluator: Evaluator, report: Report) -> int | None:
    """The number of a group, such as 10 of `test.accuracy[10]`; None, and a report, if it is none."""
    number = None if isinstance(index, Name | Range) else evaluator.value(index, "int")
    if isinstance(number, Dim) and number.constant is not None:
        return number.constant
    report(mistakes.not_a_group(index.span, metric))
    return None


def check_claimed_groups(recipe: ResolvedRecipe, measures: Measures) -> None:
    """Reports claims about groups that the split of their metric does not have at any point: all points have the same
    `measures`, unless the recipe or the claim sets statics of the task."""
    evaluator = recipe.evaluator()
    for claim in recipe.parts.claims:
        metric = claim.metric.text
        index = None if claim.index is None else group_index(claim.index, metric, evaluator, recipe.report)
        paths = [*(each.path.text for each in claim.at), *(each.path.text for each in recipe.parts.vary)]
        if any(path.startswith("task.") for path in paths):
            continue
        values = [
            (setting.path.text.partition(".")[2], written_group(setting, evaluator), setting.value.span)
            for setting in claim.at
            if is_group(setting)
        ]
        if claim.index is not None and index is not None:
            values.append((measures.breakdown, index, claim.index.span))
        for group, value, span in values:
            if value is not None and not measures.has_group(metric, group, value):
                recipe.report(measures.absent_group(span, metric, group, value))


def written_number(value: Expression, deviation: Expression | None) -> str:
    """Returns the number of a claim and its deviation with the digits of the program, such as `0.1310 ± 0.0020`."""
    return " ± ".join(unparse(number) for number in (value, deviation) if number is not None)


def literal(expression: Expression) -> float | None:
    """The number of a claim; None if it is not a literal, which the checks report."""
    match expression:
        case Number(value=value):
            return float(value)
        case Unary(operator="-", operand=operand):
            number = literal(operand)
            return None if number is None else -number
    return None
