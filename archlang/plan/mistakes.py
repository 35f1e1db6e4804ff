"""Diagnostics of recipes, tables and searches."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from archlang.errors import Diagnostic, Edit, Label, Span
from archlang.errors.edits import static_set
from archlang.errors.messages import Message, Messages
from archlang.errors.names import listed, misspelt, share_of
from archlang.graph.causality import Leak, Reason

_rows = Messages("archlang.plan")


def __getattr__(name: str) -> Message:
    return _rows.__getattr__(name)


def sees_future(
    span: Span,
    model: str,
    task: str,
    culprit: str,
    leak: Leak,
    path: Sequence[str],
    labels: Iterable[Label],
    is_not_causal: bool,
    call: Span | None,
    has_one_length: bool,
) -> Diagnostic:
    """`is_not_causal` if the block at fault has a static `causal`, which is false, and `call` is where the block is
    named; `has_one_length` if all of its inputs have the same one."""
    message = f"`{model}` sees the future that `{task}` asks it to predict: {' -> '.join(path)}"
    remedy = _PAST_REMEDY[leak.reason].format(leak.rate)
    if is_not_causal and leak.reason in (Reason.READS_ALL, Reason.READS_ROWS):
        remedy = f"set `causal = true`, or {remedy}"
    if leak.reason is Reason.READS_ALL and not has_one_length:
        # With `causal`, position i of the one would read the first i of the other, whatever they mean.
        remedy, call = "read a carried state before its update, or earlier positions only", None
    diagnostic = Diagnostic("E0501", message, span, f"`{culprit}` {leak.reason.value}", tuple(labels), remedy)
    return diagnostic if call is None else diagnostic.with_edits(static_set(call, "causal", "true"))


_PAST_REMEDY = {
    Reason.READS_ALL: "read earlier positions only",
    Reason.READS_ROWS: "read the `lower_triangle` of the map",
    Reason.READS_FROM_THE_END: "reverse the result again, or read earlier positions only",
    Reason.READS_GROUPS: "bring its positions back to those of the input with `hold[{}]` or a larger one",
    Reason.READS_FROM_OUTSIDE: "read the chunk, or a carried state",
    Reason.HALTS_BY_ALL: "halt each position on its own, with `token_halt` or `global_halt[causal = true]`",
    Reason.MOVES_FOR_OTHERS: "update it in a separate loop; a state with the positions of the halting state "
    "is updated only where the halting state is",
    Reason.DIFFERENTIATES_ALL: "read the value in the loss at each position only, as with "
    "`detach` in what reads it elsewhere, write attention as a block instead of maps, or take the gradient in a scan",
    Reason.ENDS_WITH_THE_LAST: "read the state inside the scan, before its update",
}


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


def no_such_column(span: Span, table: str, possible: Sequence[str]) -> Diagnostic:
    message = f"no column of the table `{table}` has these settings"
    remedy = f"its columns have {listed(possible)}" if possible else "delete what follows `at`: its columns have none"
    diagnostic = Diagnostic("E0635", message, span, "in no column", remedy=remedy)
    path, paths = span.text.partition("=")[0].strip(), {setting.partition(" = ")[0] for setting in possible}
    return diagnostic if path in paths else misspelt(diagnostic, path, paths)
