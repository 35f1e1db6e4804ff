"""The progress of a run in the terminal, and the tables of its results."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from archlang.errors.terminal import Terminal, text_column
from archlang.errors.visible import visible
from archlang.plan.plan import published_text
from archlang.tasks.kit.metrics import LOWER_IS_BETTER, decimals
from archlang.tasks.kit.task import group_text
from archlang.train.record.schemas import ClaimResult, Metrics, Results

if TYPE_CHECKING:
    from archlang.train.score import Score  # imports torch

_SECONDS_BETWEEN_LINES = 10.0
_SECONDS_BETWEEN_REDRAWS = 0.5
# A group with more values, such as the length of a sentence, does not fit a table.
_MOST_GROUP_VALUES = 16
_BAR_WIDTH = 40  # characters


class ProgressDisplay:
    """A bar with loss, accuracy, steps per second and the remaining time; plain lines if the output is no terminal."""

    def __init__(self, console: Terminal, name: str) -> None:
        self._console = console
        self._name = name
        self._accuracy = ""
        self._latest: tuple[int, int, float, float, float, float | None] | None = None
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._last = time.monotonic()
        self._begun, self._first_step = self._last, 0

    @contextmanager
    def showing(self, total: int, done: int) -> Iterator[ProgressDisplay]:
        """Shows the bar of a run that has done `done` of `total` steps."""
        self._begun, self._first_step = time.monotonic(), done
        if not self._console.is_terminal:
            yield self
            return
        bar = Progress(
            text_column("{task.description}", style="bold"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            text_column("{task.fields[facts]}"),
            TimeRemainingColumn(),
            console=self._console,
        )
        with bar:
            self._bar = bar
            self._task = bar.add_task(self._name, total=total, completed=done, facts="")
            yield self
        self._bar = None

    def due(self) -> bool:
        """Returns whether the display is old enough to be updated."""
        return time.monotonic() - self._last > (
            _SECONDS_BETWEEN_LINES if self._bar is None else _SECONDS_BETWEEN_REDRAWS
        )

    def step(self, step: int, total: int, loss: float, rate: float, tokens: float, depth: float | None) -> None:
        """Shows a step.

        Args:
            rate: Steps per second.
            tokens: Tokens per second.
            depth: The mean steps of halting loops."""
        self._latest = step, total, loss, rate, tokens, depth
        # The line of the last step waits for its evaluation.
        if self._bar is not None or (self.due() and step < total):
            self._show(*self._latest)

    def _show(self, step: int, total: int, loss: float, rate: float, tokens: float, depth: float | None) -> None:
        self._last = time.monotonic()
        facts = f"loss {loss:.4f}{self._accuracy}  {rate:.1f} steps/s  {tokens:,.0f} tokens/s"
        facts += "" if depth is None else f"  depth {depth:.1f}"
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=step, facts=facts)
        else:
            # By the mean speed so far, with evaluations: that of the last steps depends on the length of their items.
            remaining = (total - step) * (self._last - self._begun) / max(step - self._first_step, 1)
            self._console.print(f"step {step}/{total}  {facts}  {remaining:.0f} s left")

    def scored(self, step: int, score: Score, since_best: int = 0) -> None:
        """Shows the first metric of an evaluation from now on, and how many evaluations have not improved the selecting
        metric, if there are any."""
        metric, value = next(iter(score.metrics.items()))
        self._accuracy = f"  {score.split}.{metric} {format_metric(metric, value)}"
        self._accuracy += f" ({since_best} since the best)" if since_best else ""
        if self._latest is not None and (self._bar is not None or step == self._latest[1]):
            self._show(*self._latest)


def showing_evaluation(console: Terminal | None) -> AbstractContextManager[object]:
    """Shows on a terminal that splits are evaluated."""
    return nullcontext() if console is None else console.working("evaluating every split")


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


def first_metrics(results: Results | None) -> dict[str, str]:
    """Returns the first metric of each split, such as `test.accuracy`, as text; empty if there are no results."""
    splits = {} if results is None else results.splits
    firsts = ((split, *metric) for split, result in splits.items() for metric in list(result.metrics.items())[:1])
    return {f"{split}.{metric}": format_metric(metric, value) for split, metric, value in firsts}


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


def format_metric(metric: str, value: float | None) -> str:
    """Returns a share in per cent, another metric as a number, and nothing for None and NaN."""
    if value is None or math.isnan(value):
        return ""
    return f"{value:.{decimals(metric)}f}" if metric in LOWER_IS_BETTER else f"{value:.1%}"
