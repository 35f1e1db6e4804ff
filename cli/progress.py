"""The progress of a run in the terminal: a bar, or plain lines if the output is no terminal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TimeRemainingColumn

from archlang.errors.terminal import Terminal, text_column
from archlang.tasks.kit.metrics import format_metric
from archlang.train.score import Score
from archlang.train.trainer import Watcher

_SECONDS_BETWEEN_LINES = 10.0
_SECONDS_BETWEEN_REDRAWS = 0.5


class ProgressDisplay(Watcher):
    """Loss, accuracy, steps per second and the remaining time."""

    def __init__(self, terminal: Terminal, name: str = "") -> None:
        self._terminal = terminal
        self._name = name
        self._accuracy = self._peak_share = ""
        self._latest: tuple[int, int, float, float, float, float | None] | None = None
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._last = time.monotonic()
        self._begun, self._first_step = self._last, 0

    def working(self, message: str) -> AbstractContextManager[object]:
        return self._terminal.working(message)

    def note(self, text: str) -> None:
        self._terminal.print(text)

    @contextmanager
    def running(self, total: int, done: int) -> Iterator[None]:
        self._begun, self._first_step = time.monotonic(), done
        if not self._terminal.is_terminal:
            yield
            return
        bar = Progress(
            text_column("{task.description}", style="bold"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            text_column("{task.fields[facts]}"),
            TimeRemainingColumn(),
            console=self._terminal,
        )
        with bar:
            self._bar = bar
            self._task = bar.add_task(self._name, total=total, completed=done, facts="")
            yield
        self._bar = None

    def due(self) -> bool:
        seconds = _SECONDS_BETWEEN_LINES if self._bar is None else _SECONDS_BETWEEN_REDRAWS
        return time.monotonic() - self._last > seconds

    def step(self, step: int, total: int, loss: float, rate: float, tokens: float, depth: float | None) -> None:
        self._latest = step, total, loss, rate, tokens, depth
        # The line of the last step waits for its evaluation.
        if self._bar is not None or (self.due() and step < total):
            self._show(*self._latest)

    def _show(self, step: int, total: int, loss: float, rate: float, tokens: float, depth: float | None) -> None:
        self._last = time.monotonic()
        facts = f"loss {loss:.4f}{self._accuracy}  {rate:.1f} steps/s  {tokens:,.0f} tokens/s{self._peak_share}"
        facts += "" if depth is None else f"  depth {depth:.1f}"
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=step, facts=facts)
        else:
            # By the mean speed so far, with evaluations: that of the last steps depends on the length of their items.
            remaining = (total - step) * (self._last - self._begun) / max(step - self._first_step, 1)
            self._terminal.print(f"step {step}/{total}  {facts}  {remaining:.0f} s left")

    def reached(self, peak_share: float) -> None:
        self._peak_share = f"  {peak_share:.1%} of the peak"

    def scored(self, step: int, score: Score, since_best: int = 0) -> None:
        metric, value = next(iter(score.metrics.items()))
        self._accuracy = f"  {score.split}.{metric} {format_metric(metric, value)}"
        self._accuracy += f" ({since_best} since the best)" if since_best else ""
        if self._latest is not None and (self._bar is not None or step == self._latest[1]):
            self._show(*self._latest)
