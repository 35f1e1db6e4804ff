"""What a run shows while it goes on, and the table at its end."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from archlang.record.schemas import Alternative
from archlang.runs.claims import Comparison
from archlang.tasks.kit.metrics import LOWER_IS_BETTER
from archlang.train.score import Score

# On a terminal that cannot be redrawn, a line every so many seconds is enough.
_SECONDS = 10.0
# A bar that can be redrawn moves so often.
_REDRAWN = 0.5
# A split is broken down by what has few values: lengths of sentences, say, are too many for a table.
_MOST_GROUPS = 16


class Silent:
    """Shows nothing."""

    def due(self) -> bool:
        return False

    def step(
        self, step: int, total: int, loss: float, rate: float, depth: float | None, spared: float | None = None
    ) -> None:
        pass

    def scored(self, step: int, score: Score) -> None:
        pass


class Display:
    """A bar with loss, accuracy, steps per second and the time left; plain lines where there is no terminal."""

    def __init__(self, console: Console, name: str) -> None:
        self._console = console
        self._name = name
        self._accuracy = ""
        self._spared: float | None = None
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._last = time.monotonic()

    @contextmanager
    def showing(self, total: int, done: int) -> Iterator[Display]:
        if not self._console.is_terminal:
            yield self
            return
        bar = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[facts]}"),
            TimeRemainingColumn(),
            console=self._console,
        )
        with bar:
            self._bar = bar
            self._task = bar.add_task(self._name, total=total, completed=done, facts="")
            yield self
        self._bar = None

    def due(self) -> bool:
        """Whether it is time to show something again."""
        return time.monotonic() - self._last > (_SECONDS if self._bar is None else _REDRAWN)

    def step(
        self, step: int, total: int, loss: float, rate: float, depth: float | None, spared: float | None = None
    ) -> None:
        """`spared` is the share of the steps of halting loops that nobody had to compute, if it is known."""
        self._spared = self._spared if spared is None else spared
        facts = f"loss {loss:.4f}{self._accuracy}  {rate:.1f} steps/s"
        if depth is not None:
            facts += f"  depth {depth:.1f}"
            facts += f" ({self._spared:.0%} spared)" if self._spared else ""
        if self._bar is not None and self._task is not None:
            self._last = time.monotonic()
            self._bar.update(self._task, completed=step, facts=facts)
        elif self.due() or step == total:
            self._last = time.monotonic()
            left = (total - step) / rate if rate else math.nan
            self._console.print(f"step {step}/{total}  {facts}  {left:.0f} s left", markup=False)

    def scored(self, step: int, score: Score) -> None:
        metric, value = next(iter(score.metrics.items()))
        self._accuracy = f"  {score.split}.{metric} {shown(metric, value)}"


class Measuring:
    """A line while splits are measured, and a bar while a model writes the answers of one by itself; both are gone when
    all is measured."""

    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self._task: TaskID | None = None
        bar.add_task("measuring every split", total=None)

    def written(self, split: str, done: int, total: int) -> None:
        """So many answers of a split are written of all that are to be."""
        if self._task is None:
            self._task = self._bar.add_task(f"writing answers of {split}", total=total)
        self._bar.update(self._task, completed=done)
        if done == total:
            self._bar.remove_task(self._task)
            self._task = None


@contextmanager
def measuring(console: Console | None) -> Iterator[Measuring | None]:
    """Shows on a terminal that splits are measured."""
    if console is None or not console.is_terminal:
        yield None
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=24), MofNCompleteColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console, transient=True) as bar:
        yield Measuring(bar)


def result_table(
    scores: Sequence[Score], breakdown: str, metrics: Sequence[str], trained: Mapping[str, Sequence[int]]
) -> Table:
    """Every metric by split, and below each split by its groups, `breakdown` first; values that were trained on are
    marked."""
    table = Table(title="Measured", title_justify="left", header_style="bold")
    table.add_column("split")
    table.add_column("items", justify="right")
    if some := [score for score in scores if 0 < score.written < score.items]:
        said = ", ".join(f"{score.written:,} of {score.split}" for score in some)
        table.caption = f"exact match and oracle match are those of answers that the model wrote by itself: {said}"
    for metric in metrics:
        table.add_column(metric.replace("_", " "), justify="right")
    for score in scores:
        table.add_row(score.split, str(score.items), *(shown(metric, score.metrics.get(metric)) for metric in metrics))
        for group, values in sorted(score.groups.items(), key=lambda pair: pair[0] != breakdown):
            if not 2 <= len(values) <= _MOST_GROUPS:
                continue
            for value, measured in values.items():
                mark = " (trained)" if value in trained.get(group, ()) else ""
                cells = [shown(metric, measured.get(metric)) for metric in metrics]
                table.add_row(f"  {group} {value}{mark}", "", *cells)
    return table


def claim_table(comparisons: Sequence[Comparison]) -> Table:
    """What papers claim beside what was measured."""
    table = Table(title="Claimed", title_justify="left", header_style="bold")
    for name in ("metric", "claimed", "measured", "from"):
        table.add_column(name)
    for one in comparisons:
        claim = one.claim
        claimed = f"{claim.value:.3g}" + (f" ± {claim.deviation:.2g}" if claim.deviation is not None else "")
        if one.conditions:
            claimed += " at " + ", ".join(f"{name} = {value}" for name, value in one.conditions.items())
        measured = "not run" if one.measured is None else f"{one.measured:.3f}"
        table.add_row(one.metric, claimed, measured, claim.origin)
    return table


def cost_of_loss(other: Alternative) -> str:
    """What stopping at the lowest loss would have cost, as a line."""
    there, best = shown(other.metric, other.value), shown(other.metric, other.best)
    return f"at its lowest {other.split} loss (step {other.step}) {other.metric} is {there}, not {best}"


def shown(metric: str, value: float | None) -> str:
    """A share in per cent; what is no share as a number."""
    if value is None or math.isnan(value):
        return ""
    return f"{value:.2f}" if metric in LOWER_IS_BETTER else f"{value:.1%}"
