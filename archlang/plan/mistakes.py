"""Diagnostics of recipes, tables and searches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from archlang.diagnostics import Diagnostic, Label
from archlang.diagnostics.names import listed, suggest
from archlang.graph.causality import Reason
from archlang.source import Span


def model_misfits_task(span: Span, model: str, task: str, problem: str, declared: Span, wanted: Span) -> Diagnostic:
    return Diagnostic(
        "E0416",
        f"the model `{model}` does not fit the task `{task}`: {problem}",
        span,
        "does not fit",
        (Label(declared, f"`{model}` is declared here"), Label(wanted, f"`{task}` is declared here")),
        "change the model's inputs or result, or choose another task",
    )


def sees_future(
    span: Span, model: str, task: str, culprit: str, reason: Reason, path: Sequence[str], labels: Iterable[Label]
) -> Diagnostic:
    return Diagnostic(
        "E0501",
        f"`{model}` sees the future that `{task}` asks it to predict: {' -> '.join(path)}",
        span,
        f"`{culprit}` {reason.value}",
        tuple(labels),
        _PAST_REMEDY[reason],
    )


_PAST_REMEDY = {
    Reason.READS_ALL: "set `causal = true` if it has that static, or read earlier positions only",
    Reason.READS_FROM_THE_END: "reverse the result again, or read earlier positions only",
    Reason.READS_FROM_OUTSIDE: "read the chunk, or a carried state",
    Reason.HALTS_BY_ALL: "halt each position on its own, with `token_halt` or `global_halt[causal = true]`",
    Reason.MOVES_FOR_OTHERS: "update it in a separate loop; a state with the positions of the halting state "
    "is updated only where the halting state is",
    Reason.ENDS_WITH_THE_LAST: "read the state inside the scan, before its update",
}


def part_missing(span: Span, recipe: str, part: str, example: str) -> Diagnostic:
    return Diagnostic(
        "E0601",
        f"the recipe `{recipe}` has no `{part}`",
        span,
        f"no `{part}`",
        remedy=f"add a line such as `{example}`",
    )


def part_twice(span: Span, part: str, first: Span) -> Diagnostic:
    return Diagnostic(
        "E0602",
        f"two `{part}` in one recipe",
        span,
        f"second `{part}`",
        (Label(first, f"first `{part}`"),),
        "delete one, or write a second recipe",
    )


def no_recipe(span: Span) -> Diagnostic:
    return Diagnostic(
        "E0603",
        f"`{span.source.path}` has no recipe",
        span,
        "no recipe in this file",
        remedy="add `recipe name { task … model … train … }`",
    )


def unknown_recipe(span: Span, name: str, possible: Iterable[str]) -> Diagnostic:
    possible = tuple(possible)
    return Diagnostic(
        "E0604",
        f"unknown recipe `{name}`",
        span,
        "no such recipe",
        remedy=suggest(name, possible, f"the recipes are {listed(possible)}"),
    )


def bad_metric(span: Span, name: str) -> Diagnostic:
    return Diagnostic(
        "E0605",
        f"`{name}` is not a metric of a split",
        span,
        "not a metric",
        remedy="write the split and the metric: `test.accuracy`",
    )


def claim_without_number(span: Span) -> Diagnostic:
    return Diagnostic(
        "E0606",
        "the value of a claim is not a number",
        span,
        "not a number",
        remedy='write `claim test.accuracy = 0.84 ± 0.01 from "…"`',
    )


def nothing_to_search(span: Span, path: str) -> Diagnostic:
    return Diagnostic(
        "E0613",
        f"this is not a search space for `{path}`",
        span,
        "neither a list nor a rising range of numbers",
        remedy="write `model.heads in [1, 2, 4]`, `model.d in 32..256` or `train.lr in 1e-4..1e-2 log`",
    )


def no_search(span: Span, recipe: str) -> Diagnostic:
    return Diagnostic(
        "E0614",
        f"the recipe `{recipe}` has nothing to tune",
        span,
        "no `search`",
        remedy="add a line such as `search train.lr in 1e-4..1e-2 log`",
    )


def unknown_table(span: Span, name: str, possible: Iterable[str]) -> Diagnostic:
    possible = tuple(possible)
    return Diagnostic(
        "E0612",
        f"unknown table `{name}`",
        span,
        "no such table",
        remedy=suggest(name, possible, f"the tables are {listed(possible)}" if possible else "add `table name { … }`"),
    )


def empty_table(span: Span, name: str, part: str, example: str) -> Diagnostic:
    return Diagnostic(
        "E0610",
        f"the table `{name}` has no {part}",
        span,
        f"no `{part}`",
        remedy=f"add a line such as `{example}`",
    )


def title_twice(span: Span, part: str, title: str, first: Span) -> Diagnostic:
    return Diagnostic(
        "E0611",
        f"two {part}s have the title “{title}”",
        span,
        f"second {part}",
        (Label(first, f"first {part}"),),
        f"give each {part} a different title",
    )


def too_many_varied(span: Span, count: int, limit: int) -> Diagnostic:
    return Diagnostic(
        "E0615",
        f"this range has {count:_} values; `vary` takes at most {limit:_}",
        span,
        "too many values",
        remedy="write a smaller range, or list some of its values",
    )


def points_left_out(span: Span, name: str, what: str, checked: int, total: int) -> Diagnostic:
    """`what` is counted: points of a recipe, values to search, or cells of a table."""
    return Diagnostic(
        "W0202",
        f"`{name}` has {total:_} {what}, and only {checked:_} of them were checked",
        span,
        "too many to check",
        remedy="a mistake in one of the others is reported when it runs; reduce the number to check all",
    )
