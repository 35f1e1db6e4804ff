"""What a run can measure: the splits and metrics of its task, and the user's own metrics."""

from dataclasses import dataclass

from archlang.diagnostics import Report
from archlang.plan import mistakes
from archlang.source import Span


@dataclass(frozen=True)
class Measures:
    """The splits of a task, and the metrics of a run. `selecting` are the metrics that `train.select` may name; the
    others are measured only at the end of a run. `splits` is empty if they depend on a user's file."""

    task: str
    splits: tuple[str, ...]
    metrics: tuple[str, ...]
    selecting: tuple[str, ...]

    def check(self, span: Span, text: str, report: Report, *, selects: bool = False) -> None:
        """Reports a metric of a split, such as `valid.accuracy`, that a run does not measure, or cannot select by."""
        split, _, metric = text.partition(".")
        metrics = self.selecting if selects else self.metrics
        if self.splits and split not in self.splits:
            report(mistakes.unknown_split(span, self.task, split, self.splits, metric, selects))
        elif metric not in metrics:
            is_late = metric in self.metrics
            report(mistakes.unknown_metric(span, self.task, split, metric, metrics, is_late, selects))
