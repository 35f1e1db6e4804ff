"""A run as a report: its curves, how it does by length or depth, its claims and settings."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from archlang.pages.html import render
from archlang.pages.reports.charts import Chart, Line, chart_svg
from archlang.pages.reports.text_table import TextTable
from archlang.record.archive import Known, known
from archlang.record.mistakes import damaged
from archlang.record.run_folder import read_json, read_text
from archlang.runs.progress import cost_of_loss, shown
from archlang.tasks.kit.metrics import LOWER_IS_BETTER
from archlang.train.selection import Alternative

_BAR = 40
_BLOCK = "█"


@dataclass(frozen=True, eq=False)
class RunReport:
    """What a run folder says. `lines` are those of metrics.jsonl; `results` is empty while the run goes on."""

    run: Known
    lines: tuple[Mapping[str, Any], ...]  # Any: JSON
    results: Mapping[str, Any]
    trained: Mapping[str, Sequence[int]]
    """by group, the values that training has seen"""

    @staticmethod
    def read(folder: Path) -> RunReport:
        """The report of a run folder.

        Raises:
            RunError: it is no run folder, or is damaged."""
        run = known(folder)
        data = read_json(folder, "data.json")
        lines = []
        for number, text in enumerate(_text_of(folder).splitlines(), 1):
            try:
                lines.append(json.loads(text))
            except ValueError as error:
                raise damaged(folder / "metrics.jsonl", f"line {number}: {error}") from error
        report = RunReport(run, tuple(lines), run.results or {}, {})
        try:
            report = replace(report, trained=dict(data["train"]["groups"]))
            list(report.charts()), report.measured(), report.claimed(), report.costs()
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise damaged(folder, f"what it says of the run cannot be understood ({error!r})") from error
        return report

    @property
    def title(self) -> str:
        return f"{self.run.recipe}: {self.run.model} on {self.run.task}, seed {self.run.seed}"

    @property
    def metrics(self) -> tuple[str, ...]:
        """The task's metrics, the most important first."""
        for split in self.results.get("splits", {}).values():
            return tuple(split["metrics"])
        skipped = ("step", "split", "loss")
        return tuple(name for line in self.lines if "split" in line for name in line if name not in skipped)[:1]

    @property
    def groups(self) -> tuple[str, ...]:
        """By what splits are broken down, the most important first; only what has several values."""
        splits = self.results.get("splits", {}).values()
        found: dict[str, set[str]] = {self.results.get("breakdown", ""): set()}
        for score in splits:
            for name, values in score["groups"].items():
                found.setdefault(name, set()).update(values)
        return tuple(name for name, values in found.items() if len(values) > 1)

    # Charts

    def charts(self) -> Iterator[Chart]:
        """Every chart that there are numbers for."""
        splits = list(dict.fromkeys(line["split"] for line in self.lines if "split" in line))
        like_train = self.results.get("in_distribution", ("train", "iid"))
        loss = [self._curve("train", None, "loss")]
        loss += [self._curve(split, split, "loss", split not in like_train) for split in splits]
        yield Chart("Loss", "step", "loss", _drawn(loss), logarithmic=True)
        for metric in self.metrics[:1]:
            curves = [self._curve(split, split, metric, split not in like_train) for split in splits]
            yield Chart(
                f"{_words(metric)} in training", "step", _words(metric), _drawn(curves), percent=_is_share(metric)
            )
        for group in self.groups:
            for metric in self.metrics[:1]:
                yield from self._by_group(group, metric)
            yield from self._depth_by_group(group)
        depth = [(line["step"], line["mean_depth"]) for line in self.lines if "mean_depth" in line]
        if depth:
            steps, values = zip(*depth, strict=True)
            yield Chart("Depth in training", "step", "mean steps of halting loops", (Line("depth", steps, values),))

    def _curve(self, name: str, split: str | None, value: str, dashed: bool = False) -> Line:
        points = [(line["step"], line[value]) for line in self.lines if line.get("split") == split and value in line]
        # What is no number is written as a text.
        points = [point for point in points if isinstance(point[1], int | float)]
        return Line(name, [x for x, _ in points], [y for _, y in points], dashed)

    def _by_group(self, group: str, metric: str) -> Iterator[Chart]:
        lines = []
        for split, score in self.results["splits"].items():
            values = score["groups"].get(group, {})
            points = sorted((int(value), one[metric]) for value, one in values.items() if one.get(metric) is not None)
            lines.append(Line(split, [x for x, _ in points], [y for _, y in points]))
        title, words = f"{_words(metric)} by {group}", _words(metric)
        seen, percent = self._seen(group), _is_share(metric)
        yield Chart(title, group, words, _drawn(lines), seen, percent=percent, marked=True)

    def _depth_by_group(self, group: str) -> Iterator[Chart]:
        lines = []
        for split, score in self.results["splits"].items():
            values = score.get("depth", {}).get("groups", {}).get(group, {})
            points = sorted((int(value), depth) for value, depth in values.items())
            lines.append(Line(split, [x for x, _ in points], [y for _, y in points]))
        if drawn := _drawn(lines):
            title = f"Mean steps by {group}"
            yield Chart(title, group, "mean steps of halting loops", drawn, self._seen(group), marked=True)

    def _seen(self, group: str) -> tuple[float, float] | None:
        values = self.trained.get(group, ())
        return (min(values), max(values)) if values else None

    # Tables

    def measured(self) -> TextTable:
        """Returns the loss and the metrics of each split."""
        splits = self.results.get("splits", {})
        has_depth = any("depth" in score for score in splits.values())
        headers = ["split", "items", "loss", *map(_words, self.metrics), *(["mean steps"] if has_depth else [])]
        rows = [
            [split, f"{score['items']:,}", f"{score['loss']:.4f}",
             *(shown(metric, score["metrics"].get(metric)) for metric in self.metrics),
             *([f"{score['depth']['mean']:.2f}"] if "depth" in score else [])]
            for split, score in splits.items()
        ]  # fmt: skip
        return TextTable("Measured", headers, rows)

    def claimed(self) -> TextTable:
        """Returns what papers claim beside what was measured."""
        rows = []
        for claim in self.results.get("claims", []):
            deviation = "" if claim["deviation"] is None else f" ± {claim['deviation']:.2g}"
            at = "".join(f", {name} = {value}" for name, value in claim["at"].items())
            measured = "not run" if claim["measured"] is None else f"{claim['measured']:.3f}"
            rows.append([claim["metric"] + at, f"{claim['value']:.3g}{deviation}", measured, claim["from"]])
        return TextTable("Claimed", ["metric", "claimed", "measured", "from"], rows)

    def costs(self) -> list[str]:
        """What stopping at the lowest loss would have cost, as sentences."""
        found = map(Alternative.read, self.results.get("selection", []))
        return [cost_of_loss(other) for other in found if other.is_worse]

    # Formats

    def html(self) -> str:
        """Returns the report as an HTML file.

        Raises:
            PageError: matplotlib is not installed."""
        run = self.run
        weights = f"{run.state} at step {run.step}; the weights are those of step {self.results.get('best_step', '?')}"
        return render(
            "report.html",
            title=self.title,
            subtitle=weights if self.results else run.state,
            measured=self.measured(),
            sentences=self.costs(),
            claimed=self.claimed(),
            charts=map(chart_svg, self.charts()),
            settings=TextTable("Settings", ["setting", "value"], [*run.settings.items()]),
        )

    def terminal(self) -> RenderableType:
        """Returns the report for a terminal: tables, and bars in place of the charts by length or depth."""
        parts: list[RenderableType] = [Text(self.title, "bold"), Text(f"{self.run.state} at step {self.run.step}")]
        parts += [table.terminal() for table in (self.measured(), self.claimed()) if table.rows]
        parts += map(Text, self.costs())
        for chart in self.charts():
            if chart.marked:
                parts.append(Text(f"\n{chart.title}", "bold"))
                parts += _bars(chart)
        return Group(*parts)


def _bars(chart: Chart) -> Iterator[Text]:
    highest = 1.0 if chart.percent else max((y for line in chart.lines for y in line.y), default=1.0)
    for line in chart.lines:
        for x, y in zip(line.x, line.y, strict=True):
            seen = chart.shaded is not None and chart.shaded[0] <= x <= chart.shaded[1]
            filled = _BLOCK * round(_BAR * y / highest) if highest > 0 else ""
            number = f"{y:.1%}" if chart.percent else f"{y:.2f}"
            mark = "  trained" if seen else ""
            yield Text.assemble(f"  {line.name:>8} {x:>6g} ", (f"{filled:<{_BAR}}", "cyan"), f" {number}{mark}")


def _drawn(lines: Sequence[Line]) -> tuple[Line, ...]:
    return tuple(line for line in lines if line.x)


def _is_share(metric: str) -> bool:
    return metric not in LOWER_IS_BETTER


def _words(metric: str) -> str:
    return metric.replace("_", " ")


def _text_of(folder: Path) -> str:
    """The lines so far. The last one may be half written, if the run goes on or was killed."""
    if not (folder / "metrics.jsonl").exists():
        return ""
    text = read_text(folder, "metrics.jsonl")
    return text[: text.rfind("\n") + 1]
