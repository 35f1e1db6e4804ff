"""The results of a run as tables of text: what was measured, and beside it what papers claim."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from archlang.errors.visible import visible
from archlang.plan.plan import published_text
from archlang.tasks.kit.metrics import format_metric
from archlang.tasks.kit.task import group_text
from archlang.train.record.schemas import ClaimResult, Metrics, Results

# A group with more values, such as the length of a sentence, does not fit a table.
_MOST_GROUP_VALUES = 16
_BAR_WIDTH = 40  # characters


@dataclass(frozen=True)
class TextTable:
    """Rows of text below headers. A table without rows is not shown."""

    title: str
    headers: Sequence[str]
    rows: Sequence[Sequence[str]]

    def terminal(self) -> Table:
        table = Table(title=self.title, title_justify="left", header_style="bold")
        for header, *cells in zip(self.headers, *self.rows, strict=True):
            has_numbers = all(not cell or cell[0].isdigit() for cell in cells)
            table.add_column(header, justify="right" if has_numbers else "left")
        for row in self.rows:
            table.add_row(*map(Text, row))
        return table


def result_table(results: Results, trained: Mapping[str, Sequence[int]] | None = None) -> TextTable:
    """Returns a table of the loss, every metric and the mean steps of halting loops by split.

    Args:
        trained: By group, the values that occur in the training split. With them, the values of its groups are below
            each split in place of its loss, and these are marked, unless they are names."""
    metrics = list(dict.fromkeys(metric for split in results.splits.values() for metric in split.metrics))
    has_steps = any(split.depth is not None for split in results.splits.values())
    has_loss, rows = trained is None, list[list[str]]()

    def add(title: str, items: str, loss: float | None, measured: Metrics, steps: float | None) -> None:
        numbers = [format_metric(metric, measured.get(metric)) for metric in metrics]
        rows.append([title, items, *([_decimals(loss, 4)] * has_loss), *numbers, *([_decimals(steps, 2)] * has_steps)])

    for name, split in results.splits.items():
        depth = split.depth
        add(name, f"{split.items:,}", split.loss, split.metrics, None if depth is None else depth.mean)
        groups = () if trained is None else sorted(split.groups.items(), key=lambda pair: pair[0] != results.breakdown)
        for group, values in groups:
            if not 2 <= len(values) <= _MOST_GROUP_VALUES:
                continue
            steps = {} if depth is None else depth.groups.get(group, {})
            for value, measured in values.items():
                is_marked = trained and value in trained.get(group, ()) and group not in results.group_names
                text = f"  {group} {group_text(results.group_names, group, value)}{' (trained)' if is_marked else ''}"
                add(visible(text), "", None, measured, steps.get(value))
        for least, loss in split.contexts.items() if trained is not None else ():
            tokens = "1 token" if least == 1 else f"{least:,} to {2 * least - 1:,} tokens"
            add(f"  after {tokens}", "", None, {"perplexity": None if loss is None else math.exp(min(loss, 700))}, None)
    names = [metric.replace("_", " ") for metric in metrics]
    headers = ["split", "items", *(["loss"] * has_loss), *names, *(["mean steps"] * has_steps)]
    return TextTable("Measured", headers, rows)


def _decimals(value: float | None, count: int) -> str:
    return "" if value is None else f"{value:.{count}f}"


def bar_line(label: str, share: float, number: str) -> Text:
    """Returns a line with a bar for a share of the longest one. Every bar that is not empty is visible."""
    blocks = "█" * max(round(_BAR_WIDTH * share), share > 0)
    return Text.assemble(f"  {label} ", (f"{blocks:<{_BAR_WIDTH}}", "cyan"), f" {number}")


def claim_table(claims: Sequence[ClaimResult]) -> TextTable:
    """Returns a table of what papers claim beside what was measured."""
    rows = []
    for claim in claims:
        claimed = claim.text or published_text(claim.value, claim.deviation, claim.median)
        if claim.at:
            claimed += f" at {', '.join(f'{name} = {value}' for name, value in claim.at.items())}"
        rows.append([claim.metric, claimed, claim.measured_text, claim.origin])
    return TextTable("Claimed", ["metric", "claimed", "measured", "from"], rows)


def result_notes(results: Results) -> list[str]:
    """Returns a line if the model generated some answers only, if patience has ended the run, and for each metric that
    selecting by the lowest loss would make worse."""
    ended, notes = results.ended_early, []
    sampled = {name: split for name, split in results.splits.items() if 0 < split.written < split.items}
    if sampled:
        counts = ", ".join(f"{split.written:,} of {name}" for name, split in sampled.items())
        notes.append(f"exact match and oracle match are of answers that the model generated: {counts}")
    if ended is not None:
        notes.append(f"the run ended early, at step {ended}: its patience was exhausted")
    for each in filter(lambda alternative: alternative.is_worse, results.selection):
        value, best = format_metric(each.metric, each.value), format_metric(each.metric, each.best)
        notes.append(
            f"the lowest {each.split} loss is at step {each.step}, with {each.metric} {value}; "
            f"the best {each.split} {each.metric}, {best}, is at step {each.best_step}"
        )
    return notes
