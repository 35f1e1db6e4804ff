"""A page of all runs of a folder: a table to sort and filter, and the curves of chosen runs over each other."""

from __future__ import annotations

from collections.abc import Iterable

from archlang.reports.charts import COLOURS
from archlang.reports.html import render
from archlang.train.record.mistakes import RunError
from archlang.train.record.reading import read_metrics
from archlang.train.record.schemas import EvaluationMetrics
from archlang.train.record.summaries import RunSummary
from archlang.train.runs.progress import first_metrics

_Curves = dict[str, list[tuple[int, float]]]


def runs_page(folder: str, runs: Iterable[RunSummary]) -> str:
    """Returns the page as HTML. A run whose curves are damaged has none."""
    summaries = list(runs)
    measured = [first_metrics(run.results) for run in summaries]
    metrics = list(dict.fromkeys(name for of_run in measured for name in of_run))
    facts = ("folder", "recipe", "model", "task", "seed", "state", "step")
    rows = [
        [*(str(getattr(run, fact)) for fact in facts), *(of_run.get(name, "") for name in metrics)]
        for run, of_run in zip(summaries, measured, strict=True)
    ]
    curves = list(map(_curves, summaries))
    return render(
        "runs.html", title=f"Runs of {folder}", headers=[*facts, *metrics], rows=rows, curves=curves,
        colours=COLOURS[:6],
    )  # fmt: skip


def _curves(run: RunSummary) -> _Curves:
    curves: _Curves = {}
    try:
        lines = read_metrics(run.folder)
    except RunError:
        return {}
    for line in lines:
        values = {"train.loss": line.loss}
        if isinstance(line, EvaluationMetrics):
            values = {f"{line.split}.{name}": value for name, value in {"loss": line.loss, **line.metrics}.items()}
        for name, value in values.items():
            if value is not None:
                curves.setdefault(name, []).append((line.step, value))
    return curves
