"""Diagnostics of recipes, tables and searches."""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from archlang.diagnostics import Diagnostic, Edit, Label
from archlang.diagnostics.edits import insertion, name_of_setting, static_set, without_item, without_lines
from archlang.diagnostics.names import did_you_mean, is_short, listed, misspelt
from archlang.diagnostics.percent import share_of
from archlang.graph.causality import Reason
from archlang.source import Span


def model_misfits_task(span: Span, model: str, task: str, problem: str, declared: Span, expected: Span) -> Diagnostic:
    message = f"the model `{model}` does not fit the task `{task}`: {problem}"
    labels = (Label(declared, f"`{model}` is declared here"), Label(expected, f"`{task}` is declared here"))
    remedy = "change the model's inputs or result, or choose another task"
    return Diagnostic("E0416", message, span, "does not fit", labels, remedy)


def sees_future(
    span: Span,
    model: str,
    task: str,
    culprit: str,
    reason: Reason,
    path: Sequence[str],
    labels: Iterable[Label],
    is_not_causal: bool,
    call: Span | None,
    has_one_length: bool,
) -> Diagnostic:
    """`is_not_causal` if the block at fault has a static `causal`, which is false, and `call` is where the block is
    named; `has_one_length` if all of its inputs have the same one."""
    message = f"`{model}` sees the future that `{task}` asks it to predict: {' -> '.join(path)}"
    remedy = _PAST_REMEDY[reason]
    if is_not_causal and reason in (Reason.READS_ALL, Reason.READS_ROWS):
        remedy = f"set `causal = true`, or {remedy}"
    if reason is Reason.READS_ALL and not has_one_length:
        # With `causal`, position i of the one would read the first i of the other, whatever they mean.
        remedy, call = "read a carried state before its update, or earlier positions only", None
    diagnostic = Diagnostic("E0501", message, span, f"`{culprit}` {reason.value}", tuple(labels), remedy)
    return diagnostic if call is None else diagnostic.with_edits(static_set(call, "causal", "true"))


_PAST_REMEDY = {
    Reason.READS_ALL: "read earlier positions only",
    Reason.READS_ROWS: "read the `lower_triangle` of the map",
    Reason.READS_FROM_THE_END: "reverse the result again, or read earlier positions only",
    Reason.READS_FROM_OUTSIDE: "read the chunk, or a carried state",
    Reason.HALTS_BY_ALL: "halt each position on its own, with `token_halt` or `global_halt[causal = true]`",
    Reason.MOVES_FOR_OTHERS: "update it in a separate loop; a state with the positions of the halting state "
    "is updated only where the halting state is",
    Reason.ENDS_WITH_THE_LAST: "read the state inside the scan, before its update",
}


def part_missing(span: Span, recipe: str, part: str, example: str, item: Span, line: str | None) -> Diagnostic:
    """`item` is the recipe, and `line` what it lacks; None if several lines are possible."""
    message = f"the recipe `{recipe}` has no `{part}`"
    diagnostic = Diagnostic("E0601", message, span, f"no `{part}`", remedy=f"add a line such as `{example}`")
    return diagnostic if line is None else diagnostic.with_edits(_last_line(item, line))


def _last_line(item: Span, line: str) -> Edit:
    """Returns the edit that adds a line at the end of a recipe or a table."""
    source, place = item.source, item.end - 1
    start, _ = source.line_bounds(source.position(place)[0])
    if source.text[start:place].strip():
        return insertion(source, place, f"{line} ")
    return insertion(source, start, f"    {line}\n")


def part_twice(span: Span, part: str, first: Span) -> Diagnostic:
    message = f"two `{part}` in one recipe"
    labels = (Label(first, f"first `{part}`"),)
    remedy = "delete one, or write a second recipe"
    diagnostic = Diagnostic("E0602", message, span, f"second `{part}`", labels, remedy)
    return diagnostic.with_edits(without_lines(span))


def no_recipe(span: Span) -> Diagnostic:
    remedy = "add `recipe name { task … model … train … }`"
    return Diagnostic("E0603", f"`{span.source.path}` has no recipe", span, "no recipe in this file", remedy=remedy)


def unknown_recipe(span: Span, name: str, possible: Iterable[str], path: str | None = None) -> Diagnostic:
    """`path` is that of the file which the command line names with the recipe."""
    possible = tuple(possible)
    message, remedy = f"unknown recipe `{name}`{_in_file(path)}", f"the recipes are {listed(possible)}"
    if not possible:
        remedy = "write `recipe name { … }` in this file; recipes of used files do not count"
    return misspelt(
        Diagnostic("E0604", message, span, "no such recipe", remedy=remedy), name, possible, is_guess=is_short(name)
    )


def bad_metric(span: Span, name: str) -> Diagnostic:
    message = f"`{name}` is not a metric of a split"
    remedy = "write the split and the metric: `test.accuracy`"
    diagnostic = Diagnostic("E0605", message, span, "not a metric", remedy=remedy)
    return diagnostic if "." in name else diagnostic.with_edits(insertion(span.source, span.start, "test."))


def unknown_split(
    span: Span, task: str, split: str, possible: tuple[str, ...], metric: str, selects: bool
) -> Diagnostic:
    """`metric` is one of the task, to write after a split. `selects`: the metric is that of `train.select`, which the
    recipe may have left to its default."""
    message = f"`{task}` has no split `{split}`" + (", by which `train.select` chooses the weights" if selects else "")
    chosen = "valid" if "valid" in possible else possible[-1]
    example = f"{chosen}.{metric}"
    remedy = f"set `select = {example}` in `train`" if selects else f"write a metric of its splits, such as `{example}`"
    diagnostic = Diagnostic("E0605", message, span, f"its splits are {listed(possible)}", remedy=remedy)
    return misspelt(diagnostic, split, possible)


def train_not_measured(span: Span, metric: str, possible: Sequence[str]) -> Diagnostic:
    """`possible` are the measured splits; empty if they are unknown."""
    message = "a run is not measured on the split `train`"
    label = f"the measured splits are {listed(possible)}" if possible else "not measured"
    remedy = f"write another split, such as `{possible[-1] if possible else 'test'}.{metric}`"
    return Diagnostic("E0605", message, span, label, remedy=remedy)


def unknown_metric(
    span: Span, task: str, split: str, metric: str, possible: tuple[str, ...], is_late: bool, selects: bool
) -> Diagnostic:
    """`is_late`: the metric is measured only at the end of a run, so it cannot select. `selects`: the metric is that of
    `train.select`, which the recipe may have left to its default."""
    message = f"`{metric}` is measured only at the end of a run" if is_late else f"`{task}` has no metric `{metric}`"
    if selects and not is_late:
        message += ", by which `train.select` chooses the weights"
    example = f"{split}.{possible[1] if len(possible) > 1 else possible[0]}"  # after the loss, the task's first metric
    remedy = f"set `select = {example}` in `train`" if selects else f"write one of its metrics, such as `{example}`"
    diagnostic = Diagnostic("E0605", message, span, f"the metrics are {listed(possible)}", remedy=remedy)
    return misspelt(diagnostic, metric, possible)


def unknown_run_metric(span: Span, metric: str, possible: Sequence[str]) -> Diagnostic:
    message, remedy = f"a run has no metric `{metric}`", f"write `run.{possible[0]}` or `run.{possible[1]}`"
    return misspelt(Diagnostic("E0605", message, span, "not measured", remedy=remedy), metric, possible)


def refused_by_task(span: Span, message: str, remedy: str) -> Diagnostic:
    return Diagnostic("E0618", message, span, "refused by the task", remedy=remedy)


def unknown_group(span: Span, task: str, path: str, metric: str, possible: list[str]) -> Diagnostic:
    message = f"`{metric}` is not broken down by `{path}` in `{task}`"
    remedy = f"write one of its groups, such as `{possible[0]}`"
    diagnostic = Diagnostic("E0312", message, span, f"its groups are {listed(possible)}", remedy=remedy)
    return misspelt(diagnostic, path, possible)


def absent_group(span: Span, task: str, split: str, group: str, values: Collection[int], is_share: bool) -> Diagnostic:
    """`values` are those of the group in the split, in per cent if `is_share`."""
    ordered = sorted(set(values))
    texts = [f"{value / 100:g}" if is_share else str(value) for value in ordered]
    if not ordered:
        label, remedy = f"the split has no `{group}`", "name another split"
    elif len(ordered) > 2 and ordered[-1] - ordered[0] == len(ordered) - 1:
        label = f"the values of `{group}` are {texts[0]} to {texts[-1]}"
        remedy = "write one of them, or change the statics of the task"
    else:
        shown = texts if len(texts) <= 8 else [*texts[:4], "…", texts[-1]]
        are = "value of `{}` is" if len(texts) == 1 else "values of `{}` are"
        label = f"the {are.format(group)} {', '.join(shown)}"
        remedy = "write one of them, or change the statics of the task"
    message = f"`{split}` of `{task}` has no items of `{group}` {span.text}"
    return Diagnostic("E0312", message, span, label, remedy=remedy)


def not_a_group(span: Span, metric: str) -> Diagnostic:
    message = f"`{span.text}` is not the number of a group"
    remedy = f"write one number for each column, as in `{metric}[10]`"
    return Diagnostic("E0312", message, span, "not an integer", remedy=remedy)


def no_stablemax(span: Span, task: str) -> Diagnostic:
    message = f"`stablemax` is a loss of classes, and the answers of `{task}` are sets or numbers"
    diagnostic = Diagnostic("E0622", message, span, "no such loss", remedy="delete the setting `loss`")
    return diagnostic.with_edits(_without_setting(span, "loss"))


def function_without_file(span: Span, setting: str, name: str, shipped: Sequence[str]) -> Diagnostic:
    message = f"`{setting}` names a function in a file of your own, and `{name}` names no file"
    remedy = f"write the file before the function, as in `mine.{name}`, or delete it for what the task has"
    diagnostic = Diagnostic("E0623", message, span, "no file", remedy=remedy)
    return misspelt(diagnostic, name, shipped) if span.text == name else diagnostic


def idle_setting(span: Span, name: str, reason: str) -> Diagnostic:
    diagnostic = Diagnostic("W0208", f"`{name}` has no effect: {reason}", span, "no effect", remedy="delete it")
    return diagnostic.with_edits(_without_setting(span, name))


def no_sign_sgd(span: Span, optimizer: str) -> Diagnostic:
    message = f"`{optimizer}` is of your own and moves every weight, so `sign_sgd` can move none"
    diagnostic = Diagnostic("E0621", message, span, "no such instance", remedy="choose another optimizer")
    return diagnostic.with_edits(_without_setting(span, "sign_sgd"))


def no_first_beta(span: Span, optimizer: str) -> Diagnostic:
    message = f"`onecycle` moves `beta1`, and `{optimizer}` does not have `beta1` and `beta2`"
    return Diagnostic("E0304", message, span, "no schedule of it", remedy="choose another schedule or optimizer")


def endless_warmup(span: Span, warmup: int, steps: int) -> Diagnostic:
    message = f"a run of {steps:_} steps ends before its warm-up of {warmup:_}, below the learning rate `lr`"
    remedy = "choose a `warmup` below `steps`"
    return Diagnostic("W0209", message, span, "longer than the run", remedy=remedy)


def trained_again(span: Span, path: str, times: int) -> Diagnostic:
    message = f"each row is trained {times} times, but `{path}` changes only what is evaluated"
    remedy = (
        "set it once, in the recipe, with all of its values, and let the columns name groups of the split, as in "
        "`columns test.accuracy at test.length in [8, 16]`"
    )
    return Diagnostic("W0210", message, span, "not of training", remedy=remedy)


def seed_out_of_bounds(span: Span, seed: int, highest: int) -> Diagnostic:
    remedy = f"choose a seed between 0 and {highest:_}"
    return Diagnostic("E0624", f"the seed is {seed}", span, "no seed of a run", remedy=remedy)


def empty_split(span: Span, task: str, split: str, selecting: Sequence[str] = ()) -> Diagnostic:
    """`selecting` are the metrics by which `train.select` could choose the weights instead."""
    message = f"the split `{split}` of `{task}` has no items"
    remedy = f"set `select = {selecting[0]}` in `train`" if selecting else "choose another split"
    return Diagnostic("E0625", message, span, "an empty split", remedy=f"{remedy}, or a larger size of the split")


def metric_twice(span: Span, metric: str) -> Diagnostic:
    message = f"two metrics of a run have the name `{metric}`"
    return Diagnostic("E0626", message, span, "a metric twice", remedy="leave out or rename one of the functions")


def no_smoothing(span: Span, name: str, task: str) -> Diagnostic:
    message = f"`{name}` changes a loss of classes, and the answers of `{task}` are sets, numbers or spans"
    diagnostic = Diagnostic("E0622", message, span, "has no effect", remedy=f"delete the setting `{name}`")
    return diagnostic.with_edits(_without_setting(span, name), is_safe=True)


def _without_setting(value: Span, name: str) -> Edit | None:
    """Returns the edit that deletes a setting of `train`, whose value is at a place; None if it is not written so."""
    written = name_of_setting(value, name)
    return None if written is None else without_item(written.to(value))


def group_in_row(span: Span, path: str) -> Diagnostic:
    message = f"`{path}` is a group of items, which a row cannot choose"
    return Diagnostic("E0312", message, span, "no such static", remedy="move it to the columns")


def measured_as_a_whole(span: Span, name: str, what: str) -> Diagnostic:
    message = f"`{name}` is measured on the whole {what} only"
    return Diagnostic("E0605", message, span, "has no groups", remedy="delete the group, or name another metric")


def claim_without_number(span: Span, *, of_row: bool = False) -> Diagnostic:
    remedy = f"write {_EXAMPLE_OF_ROW if of_row else _EXAMPLE_OF_CLAIM}"
    last_line = span.text.rpartition("\n")[2].lstrip()  # a `-` before it is no number of its own
    span = Span(span.source, span.end - len(last_line), span.end)
    return Diagnostic("E0606", "the value of a claim is not a number", span, "not a number", remedy=remedy)


_EXAMPLE_OF_CLAIM = '`claim test.accuracy = 0.84 ± 0.01 from "…"`'
_EXAMPLE_OF_ROW = "`claims 0.84 ± 0.01, …`, a number for each column, and `-` for a cell without one"


def negative_fraction(span: Span, metric: str) -> Diagnostic:
    message = f"`{metric}` is a fraction, from 0 to 1"
    return Diagnostic("E0606", message, span, "less than 0", remedy="write a number from 0 to 1")


def not_a_fraction(numbers: Sequence[Span], metric: str) -> Diagnostic:
    """`numbers` are the places of a number that is larger than 1, or whose deviation is, and of its deviation."""
    span = numbers[0].to(numbers[-1])
    is_percent = float(numbers[0].text.replace("_", "")) > 1
    shares = [share_of(number.text) if is_percent or index else number.text for index, number in enumerate(numbers)]
    message = f"`{metric}` is a fraction, from 0 to 1"
    remedy = f"write `{' ± '.join(shares)}`"
    diagnostic = Diagnostic("E0606", message, span, "greater than 1", remedy=remedy)
    if any(float(share) > 1 for share in shares):
        return replace(diagnostic, remedy="write a number from 0 to 1")
    return diagnostic.with_edits(*(Edit(number, share) for number, share in zip(numbers, shares, strict=True)))


def negative_deviation(span: Span, *, of_row: bool = False) -> Diagnostic:
    remedy = f"write {_EXAMPLE_OF_ROW if of_row else _EXAMPLE_OF_CLAIM}"
    last_line = span.text.rpartition("\n")[2].lstrip()  # a `-` before it is no number of its own
    span = Span(span.source, span.end - len(last_line), span.end)
    return Diagnostic("E0606", "the deviation of a claim is negative", span, "less than 0", remedy=remedy)


def nothing_to_search(span: Span, path: str, ends: tuple[Span, Span] | None = None) -> Diagnostic:
    """`ends` are the places of the ends of a range that would be right if they were exchanged."""
    message = f"this is not a search space for `{path}`"
    remedy = "write `model.heads in [1, 2, 4]`, `model.d in 32..256` or `train.lr in 1e-4..1e-2 log`"
    diagnostic = Diagnostic("E0613", message, span, "neither a list nor a rising range of numbers", remedy=remedy)
    if ends is None:
        return diagnostic
    low, high = ends
    return diagnostic.with_edits(Edit(low, high.text), Edit(high, low.text), is_safe=True)


def unknown_charge(span: Span, name: str, model: str, possible: Iterable[str], halts: bool) -> Diagnostic:
    possible = tuple(possible)
    charges = f"its charges are {listed(possible)}" if possible else f"add a line such as `charge {name} = …`"
    charges += "; the weight of the steps of its halting loops is `ponder`" if halts else ""
    message = f"`{model}` has no charge `{name}`"
    return misspelt(Diagnostic("E0617", message, span, "no such charge", remedy=charges), name, possible)


def no_step_results(span: Span, model: str, supervise: str) -> Diagnostic:
    message = (
        f"`supervise = {supervise}` scores the result of each step, but `{model}` does not return what a loop emits"
    )
    remedy = "return `y` of `y = repeat … { … emit … }` as it is, or delete `supervise`"
    diagnostic = Diagnostic("E0619", message, span, "no results of steps", remedy=remedy)
    return diagnostic.with_edits(_without_setting(span, "supervise"))


def no_weight_of_step(span: Span, supervise: str, block: str, halts: Span | None) -> Diagnostic:
    message = (
        f"`supervise = {supervise}` weighs the result of each step by the probability of halting there, but by "
        f"`{block}` each position halts separately, and the result has other positions or none"
    )
    labels = () if halts is None else (Label(halts, "halts here"),)
    remedy = "halt by a block that returns one probability for the sample, such as `global_halt`, or delete `supervise`"
    diagnostic = Diagnostic("E0620", message, span, "no probability of each result", labels, remedy)
    return diagnostic.with_edits(_without_setting(span, "supervise"))


def endless_patience(span: Span, patience: int, evaluations: int, has_steps: bool) -> Diagnostic:
    number = f"{evaluations} evaluation" if evaluations == 1 else f"{evaluations} evaluations"
    message = f"`patience = {patience}` never ends a run early: a run has {number}, the last of them at its end"
    remedy = "evaluate more often, with a smaller `every`, or set a smaller `patience`"
    if not has_steps:
        remedy = "set a smaller `patience`, or more epochs"
    return Diagnostic("W0205", message, span, "not exhausted before the end", remedy=remedy)


def unknown_instance(span: Span, name: str, model: str, possible: Iterable[str]) -> Diagnostic:
    message = f"`{model}` has no instance `{name}` that `sign_sgd` could move"
    remedy = f"name one in the model: `let {name} = embed[64]`"
    return misspelt(Diagnostic("E0621", message, span, "no such instance", remedy=remedy), name, possible)


def not_carried(span: Span, model: str) -> Diagnostic:
    message = f"`supervise = carried` continues a loop from step to step, but the steps of the loop of `{model}` differ"
    remedy = "use a `repeat` without `drawn` in place of this loop, or `supervise = every`"
    return Diagnostic("E0619", message, span, "not a `repeat` with a fixed number of steps", remedy=remedy)


def carried_number(span: Span, model: str) -> Diagnostic:
    message = f"`supervise = carried` keeps the states of each sample, but a state of the loop of `{model}` is a number"
    remedy = "begin the state with a value of the sample, as in `z = 1 + 0 * first(h)`, or use `supervise = every`"
    return Diagnostic("E0619", message, span, "a state is a number, the same for all samples", remedy=remedy)


def reads_targets(span: Span, model: str, block: str) -> Diagnostic:
    message = f"the result of `{model}` depends on the targets that `{block}` reads"
    remedy = "use its result only in `charge` lines, which exist in training only"
    return Diagnostic("E0511", message, span, "reads the targets of the task", remedy=remedy)


def no_weights(span: Span, recipe: str, model: str) -> Diagnostic:
    message = f"the recipe `{recipe}` has nothing to train: no result of `{model}` needs weights"
    remedy = "compute the result with a block that has weights, such as `linear`"
    return Diagnostic("E0640", message, span, "a model without weights", remedy=remedy)


def no_search(span: Span, recipe: str) -> Diagnostic:
    remedy = "add a line such as `search train.lr in 1e-4..1e-2 log`"
    return Diagnostic("E0614", f"the recipe `{recipe}` has nothing to tune", span, "no `search`", remedy=remedy)


def _in_file(path: str | None) -> str:
    return "" if path is None else f" in `{path}`"


def unknown_table(span: Span, name: str, possible: Iterable[str], path: str | None = None) -> Diagnostic:
    """`path` is that of the file which the command line names with the table."""
    possible = tuple(possible)
    remedy = f"the tables are {listed(possible)}" if possible else "add `table name { … }`"
    message = f"unknown table `{name}`{_in_file(path)}"
    return misspelt(Diagnostic("E0612", message, span, "no such table", remedy=remedy), name, possible)


def empty_table(span: Span, name: str, part: str, example: str, table: Span) -> Diagnostic:
    message = f"the table `{name}` has no {part}"
    diagnostic = Diagnostic("E0610", message, span, f"no `{part}`", remedy=f"add a line such as `{example}`")
    return diagnostic.with_edits(_last_line(table, example)) if part == "column" else diagnostic


def title_twice(span: Span, part: str, title: str, first: Span) -> Diagnostic:
    message = f"two {part}s have the title “{title}”"
    labels = (Label(first, f"first {part}"),)
    return Diagnostic("E0611", message, span, f"second {part}", labels, f"give each {part} a different title")


def row_contradicts_column(row: str, row_span: Span, column: str, column_span: Span, path: str) -> Diagnostic:
    message = f"the row “{row}” and the column “{column}” set `{path}` to different values"
    labels = (Label(row_span, f"the row “{row}”"),)
    remedy = f"set `{path}` in the row or in the column"
    diagnostic = Diagnostic("E0616", message, column_span, f"the column “{column}”", labels, remedy)
    return diagnostic.with_edits(without_item(column_span))


def unknown_base(span: Span, name: str, kind: str | None, possible: Iterable[str]) -> Diagnostic:
    """`kind` is what the name stands for, as `a model`; None if it stands for nothing."""
    if kind is None:
        return unknown_recipe(span, name, possible)
    message = f"`{name}` is {kind}, and a recipe takes its lines from another recipe"
    return Diagnostic("E0604", message, span, "not a recipe", remedy="name a recipe of this file after `from`")


def static_lost(span: Span, recipe: str, path: str, line: str, inherited: Span) -> Diagnostic:
    """`span` is the recipe's own task, model or optimizer, and `inherited` the path in the line `line` of its base."""
    word, _, name = path.partition(".")
    message = f"the recipe `{recipe}` takes `{path}` from its base, and its `{word}` has no such static"
    labels = (Label(inherited, f"`{recipe}` takes this line"),)
    remedy = f"write a line `{line}` without `{path}` in `{recipe}`, or another `{word}`"
    return Diagnostic("E0312", message, span, f"no static `{name}`", labels, remedy)


def cycle_of_recipes(span: Span, names: Sequence[str]) -> Diagnostic:
    message = f"recipes are based on each other: {' -> '.join(names)}"
    return Diagnostic("E0631", message, span, "closes the cycle", remedy="write one of them without `from`")


def wrong_number_of_claims(
    span: Span, row: str, count: int, columns: int, last: Span | None, *, others: int = 0
) -> Diagnostic:
    """`last` is the last of the numbers, if there are any. `others` is the count of further rows with as many."""
    verb = f"and {others} other {_plural('row', others)} claim" if others else "claims"
    message = f"the row “{row}” {verb} {count} {_plural('number', count)}, and the table has {columns} "
    message += _plural("column", columns)
    remedy = "write a number for each column in their order, and `-` for a cell without one"
    if others:
        remedy = f"{'add the missing' if count > columns else 'delete the superfluous'} column, or {remedy}"
    diagnostic = Diagnostic("E0632", message, span, "one for each column", remedy=remedy)
    if (commas := _decimal_commas(span)) and count - len(commas) == columns:
        points = [Edit(comma, ".") for comma in commas]
        example = re.sub(r"(\d),(?=\d)", r"\1.", span.text)
        return replace(diagnostic, remedy=f"did you mean `{example}`?").with_edits(*points)
    if count == 1 and last is not None and last.text.startswith("["):
        brackets = (
            Edit(Span(last.source, last.start, last.start + 1), ""),
            Edit(Span(last.source, last.end - 1, last.end), ""),
        )
        return replace(diagnostic, remedy="write the numbers without brackets").with_edits(*brackets)
    if count > columns or last is None or others:
        return diagnostic
    return diagnostic.with_edits(insertion(last.source, last.end, ", -" * (columns - count)))


def _decimal_commas(span: Span) -> list[Span]:
    """Returns the places of commas between digits, as in `1,00`."""
    places = (span.start + match.start() for match in re.finditer(r"(?<=\d),(?=\d)", span.text))
    return [Span(span.source, place, place + 1) for place in places]


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"


def not_varied(span: Span, path: str, recipe: str, possible: Iterable[str]) -> Diagnostic:
    possible = tuple(possible)
    message = f"the recipe `{recipe}` does not vary `{path}`, so there is no best value of it"
    if path == "seed":
        message = "a cell is the mean over the seeds, so there is no best seed"
    varied = f"it varies {listed(possible)}" if possible else f"add a line such as `vary {path} in […]`"
    return misspelt(Diagnostic("E0633", message, span, "not varied", remedy=varied), path, possible)


def column_twice(span: Span, title: str, first_title: str, first: Span) -> Diagnostic:
    message = f"the columns “{first_title}” and “{title}” show the same results"
    labels = (Label(first, "first column"),)
    return Diagnostic("E0611", message, span, "second column", labels, "delete one of them")


def claims_of_one_result(span: Span, recipe: str, metric: str, numbers: tuple[str, str], first: Span) -> Diagnostic:
    message = f"the claims for `{metric}` of `{recipe}` are {numbers[0]} and {numbers[1]}, from one source"
    labels = (Label(first, "first claim"),)
    remedy = "delete one of them, or name the table of the paper that each is from"
    return Diagnostic("E0637", message, span, "second claim of the same result", labels, remedy)


def no_averaged_row(span: Span, table: str, title: str, possible: Sequence[str]) -> Diagnostic:
    near = did_you_mean(title, possible)
    titles = ", ".join(f"“{name}”" for name in sorted({*possible}))
    remedy = f"its rows are {titles}" if near is None else f"did you mean “{near}”?"
    diagnostic = Diagnostic("E0636", f"`{table}` has no row “{title}”", span, "no row to average", remedy=remedy)
    if near is None:
        return diagnostic
    start = span.start + span.text.index(f'"{title}"') + 1
    return diagnostic.with_edits(Edit(Span(span.source, start, start + len(title)), near))


def settings_of_averages(span: Span, word: str) -> Diagnostic:
    message = f"`{word}` has no effect in a row whose columns are averages"
    remedy = "write it in the row of the same title of the table that is averaged"
    return Diagnostic("E0636", message, span, "no effect", remedy=remedy).with_edits(without_item(span))


def average_of_averages(span: Span, table: str) -> Diagnostic:
    message = f"the table `{table}` contains averages, which are not averaged again"
    return Diagnostic("E0634", message, span, "contains averages", remedy="name a table whose columns are metrics")


def average_of_metrics(span: Span, table: str, metrics: Sequence[str]) -> Diagnostic:
    message = f"the table `{table}` has columns of several metrics: {', '.join(f'`{metric}`' for metric in metrics)}"
    remedy = "average a table whose columns have one metric, or, by `at`, only its columns with one"
    return Diagnostic("E0639", message, span, "several metrics", remedy=remedy)


def cycle_of_averages(span: Span, tables: Sequence[str]) -> Diagnostic:
    """`tables` average each other; the first is also the last."""
    message = f"tables average each other: {' -> '.join(tables)}"
    if len(tables) == 2:
        message = f"the table `{tables[0]}` averages itself"
    return Diagnostic("E0634", message, span, "closes the cycle", remedy="name a table whose columns are metrics")


def no_such_column(span: Span, table: str, possible: Sequence[str]) -> Diagnostic:
    message = f"no column of the table `{table}` has these settings"
    remedy = f"its columns have {listed(possible)}" if possible else "delete what follows `at`: its columns have none"
    diagnostic = Diagnostic("E0635", message, span, "in no column", remedy=remedy)
    path, paths = span.text.partition("=")[0].strip(), {setting.partition(" = ")[0] for setting in possible}
    return diagnostic if path in paths else misspelt(diagnostic, path, paths)


def best_of_a_setting(span: Span, path: str, setting: Span) -> Diagnostic:
    message = f"`{path}` has one value here, so there is no best value of it"
    labels = (Label(setting, "set here"),)
    remedy = "delete the setting, or the static after `best of`"
    return Diagnostic("E0633", message, span, "not varied", labels, remedy).with_edits(without_item(span))


def too_many_varied(span: Span, count: int, limit: int, word: str = "vary") -> Diagnostic:
    subject = "this range has" if word == "vary" else "this has"
    message = f"{subject} {count:_} values; `{word}` takes at most {limit:_}"
    remedy = "write a smaller range, or list some of its values"
    return Diagnostic("E0615", message, span, "too many values", remedy=remedy)


def listed_twice(span: Span, path: str, first: Span) -> Diagnostic:
    message = f"`{path}` takes the value `{span.text}` twice"
    labels = (Label(first, "first time"),)
    diagnostic = Diagnostic("W0206", message, span, "second time", labels, "delete one of them")
    return diagnostic.with_edits(without_item(span), is_safe=True)


def claim_at_other_value(span: Span, path: str, varied: Span) -> Diagnostic:
    message = f"no point has this value: `vary` does not list it for `{path}`"
    labels = (Label(varied, f"`{path}` is varied here"),)
    remedy = "list the value after `vary`, or correct the claim"
    return Diagnostic("W0207", message, span, "not varied", labels, remedy)


def points_left_out(span: Span, name: str, what: str, checked: int, total: int) -> Diagnostic:
    """`what` is counted: points of a recipe, values to search, or cells of a table."""
    message = f"`{name}` has {total:_} {what}, and only {checked:_} of them were checked"
    remedy = "a mistake in one of the others is reported when it runs; reduce the number to check all"
    return Diagnostic("W0202", message, span, "too many to check", remedy=remedy)


def not_at_test(span: Span, path: str) -> Diagnostic:
    message = f"`{path}` has no effect at test: `test` sets statics of the model"
    word, _, name = path.partition(".")
    remedy = {
        "seed": "delete it, or write the seeds after `vary`",
        "task": f"delete it, or set `{name}` in the line `task`; the task's statics say what its splits hold",
        "train": f"delete it, or set `{name}` in the line `train`",
    }[word]
    return Diagnostic("E0638", message, span, "no effect", remedy=remedy).with_edits(without_item(span))
