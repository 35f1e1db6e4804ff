"""The progress of a run in the terminal, and the tables of its results."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from archlang.diagnostics.terminal import Terminal, text_column
from archlang.diagnostics.visible import visible
from archlang.record.schemas import Alternative, ClaimResult, Results
from archlang.tasks.kit.metrics import LOWER_IS_BETTER, decimals
from archlang.tasks.kit.task import group_text
from archlang.train.score import Score

_SECONDS_BETWEEN_LINES = 10.0
_SECONDS_BETWEEN_REDRAWS = 0.5
# A group with more values, such as the length of a sentence, does not fit a table.
_MOST_GROUP_VALUES = 16


class NoProgress:
    """Shows nothing."""

    def due(self) -> bool:
        return False

    def step(
        self, step: int, total: int, loss: float, rate: float, depth: float | None, spared: float | None = None
    ) -> None:
        pass

    def scored(self, step: int, score: Score, since_best: int = 0) -> None:
        pass


class ProgressDisplay:
    """A bar with loss, accuracy, steps per second and the remaining time; plain lines if the output is no terminal."""

    def __init__(self, console: Terminal, name: str) -> None:
        self._console = console
        self._name = name
        self._accuracy = ""
        self._spared: float | None = None
        self._latest: tuple[int, int, float, float, float | None] | None = None
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

    def step(
        self, step: int, total: int, loss: float, rate: float, depth: float | None, spared: float | None = None
    ) -> None:
        """Shows a step.

        Args:
            rate: Steps per second.
            depth: The mean steps of halting loops.
            spared: The share of the steps of halting loops that were not computed because samples had halted. If it is
                None, the previous share stays."""
        self._spared = self._spared if spared is None else spared
        self._latest = step, total, loss, rate, depth
        # The line of the last step waits for its evaluation.
        if self._bar is not None or (self.due() and step < total):
            self._show(*self._latest)

    def _show(self, step: int, total: int, loss: float, rate: float, depth: float | None) -> None:
        self._last = time.monotonic()
        facts = f"loss {loss:.4f}{self._accuracy}  {rate:.1f} steps/s"
        if depth is not None:
            facts += f"  depth {depth:.1f}"
            facts += f" ({self._spared:.0%} spared)" if self._spared else ""
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


def result_table(results: Results, trained: Mapping[str, Sequence[int]]) -> Table:
    """Returns a table of every metric by split, and below each split by the values of its groups.

    Args:
        trained: By group, the values that occur in the training split; they are marked, unless they are names."""
    table = Table(title="Measured", title_justify="left", header_style="bold")
    table.add_column("split")
    table.add_column("items", justify="right")
    if sampled := {name: split for name, split in results.splits.items() if 0 < split.written < split.items}:
        counts = ", ".join(f"{split.written:,} of {name}" for name, split in sampled.items())
        table.caption = f"exact match and oracle match are of answers that the model generated: {counts}"
    metrics = list(dict.fromkeys(metric for split in results.splits.values() for metric in split.metrics))
    for metric in metrics:
        table.add_column(metric.replace("_", " "), justify="right")
    for name, split in results.splits.items():
        table.add_row(name, str(split.items), *(format_metric(metric, split.metrics.get(metric)) for metric in metrics))
        for group, values in sorted(split.groups.items(), key=lambda pair: pair[0] != results.breakdown):
            if not 2 <= len(values) <= _MOST_GROUP_VALUES:
                continue
            for value, measured in values.items():
                mark = " (trained)" if value in trained.get(group, ()) and group not in results.group_names else ""
                cells = [format_metric(metric, measured.get(metric)) for metric in metrics]
                text = f"  {group} {group_text(results.group_names, group, value)}{mark}"
                table.add_row(Text(visible(text)), "", *cells)
    return table


def claim_table(claims: Sequence[ClaimResult]) -> Table:
    """Returns a table of what papers claim beside what was measured."""
    table = Table(title="Claimed", title_justify="left", header_style="bold")
    for name in ("metric", "claimed", "measured", "from"):
        table.add_column(name)
    for claim in claims:
        conditions = ", ".join(f"{name} = {value}" for name, value in claim.at.items())
        claimed = f"{claim.text} at {conditions}" if conditions else claim.text
        table.add_row(claim.metric, claimed, claim.measured_text, claim.origin)
    return table


def cost_of_lowest_loss(alternative: Alternative) -> str:
    """Returns a line about what selecting by the lowest loss would have cost."""
    split, metric = alternative.split, alternative.metric
    value, best = format_metric(metric, alternative.value), format_metric(metric, alternative.best)
    return (
        f"the lowest {split} loss is at step {alternative.step}, with {metric} {value}; "
        f"the best {split} {metric}, {best}, is at step {alternative.best_step}"
    )


def ended_early(step: int) -> str:
    """Returns a line about a run that patience has ended."""
    return f"the run ended early, at step {step}: its patience was exhausted"


def format_metric(metric: str, value: float | None) -> str:
    """Returns a share in per cent, another metric as a number, and nothing for None and NaN."""
    if value is None or math.isnan(value):
        return ""
    return f"{value:.{decimals(metric)}f}" if metric in LOWER_IS_BETTER else f"{value:.1%}"
