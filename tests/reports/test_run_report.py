"""Reports of runs and tables: pages and terminals show what the run folders contain."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np
import pytest
from markupsafe import escape
from rich.console import Console
from typer.testing import CliRunner

from archlang.cli.app import app
from archlang.graph.card import card
from archlang.plan.from_file import plan_recipe
from archlang.reports.charts import Chart, Curve, chart_svg, draw, metric_chart
from archlang.reports.run_report import RunReport
from archlang.train.record.mistakes import RunError
from tests.tiny_run import TASK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PROGRAM = """
model tiny[d = 8](x: tokens[n]) -> logits[classes] {
    h = embed[d](x)
    repeat 3 halting h by global_halt[threshold = 0.9] { h <- norm(h + linear[d](h)) }
    return linear[classes](mean(h))
}

recipe tiny {
    task  TASK
    model tiny
    train adamw[lr = 1e-2, batch = 8, steps = 4, every = 2]
    claim test.accuracy[5] = 0.97 ± 0.02 from "somebody, Table 1"
}

table both {
    row    "tiny" tiny
    column "5" test.accuracy[5]
    column "6" test.accuracy[6]
}
""".replace("TASK", TASK)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    (folder / "tiny.arch").write_text(PROGRAM)
    asked = ["train", str(folder / "tiny.arch"), "--device", "cpu", "--out", str(folder / "run")]
    assert CliRunner().invoke(app, asked).exit_code == 0
    return folder


def copied(place: Path, folder: Path, *more: str) -> Path:
    """Copies the files that describe the run."""
    folder.mkdir()
    for name in ("run.json", "data.json", *more):
        (folder / name).write_text((place / "run" / name).read_text())
    return folder


def printed(report: RunReport) -> str:
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(report.terminal())
    return console.export_text()


def test_names_of_groups_are_the_ticks_of_a_chart_and_the_labels_of_bars() -> None:
    curve = Curve("test", [0, 1], [0.5, 1.0])
    chart = metric_chart("accuracy", "label", [curve], (0, 1), names=("bad $x$", "good"))
    assert [chart.text_of(x) for x in curve.x] == ["bad $x$", "good"]
    assert chart.shaded is None
    assert "<svg" in chart_svg(chart)


def drawn(chart: Chart) -> Axes:
    pyplot = pytest.importorskip("matplotlib.figure", reason="the extra `view` is not installed")
    axes: Axes = pyplot.Figure().subplots()
    draw(axes, chart)
    return axes


def test_classes_are_points_and_seeds_have_a_spread() -> None:
    curve = Curve("test", [0, 1], [0.5, 1.0], deviations=[0.1, 0.2])
    chart = metric_chart("accuracy", "label", [curve], None, names=("bad", "good"))
    axes = drawn(chart)
    assert [line.get_linestyle() for line in axes.lines if line.get_marker() == "D"] == ["None"]
    assert "deviation over seeds" in axes.get_ylabel()
    (bars,) = axes.collections
    np.testing.assert_allclose(np.asarray(bars.get_paths()[1].vertices), np.array([[1, 0.8], [1, 1.2]]), rtol=1e-6)


def test_a_noisy_curve_is_smoothed_before_its_points_and_named_in_a_legend() -> None:
    y = [1.0 + step % 2 for step in range(100)]
    axes = drawn(Chart("Loss", "step", "loss", (Curve("train", range(100), y),)))
    raw, smoothed = (np.asarray(line.get_ydata(), dtype=np.float64) for line in axes.lines)
    assert raw.tolist() == y
    assert np.ptp(smoothed[4:-4]) < 0.2
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["train"]


def charts_of(place: Path) -> dict[str, Chart]:
    return {chart.title: chart for chart in RunReport.read(place / "run").charts()}


def test_curves_are_the_lines_of_metrics_jsonl(place: Path) -> None:
    charts = charts_of(place)
    lines = [json.loads(text) for text in (place / "run" / "metrics.jsonl").read_text().splitlines()]
    train = next(curve for curve in charts["Loss"].curves if curve.name == "train")
    assert list(train.y) == [line["loss"] for line in lines if "split" not in line]
    valid = next(curve for curve in charts["accuracy by step"].curves if curve.name == "valid")
    assert list(valid.x) == [line["step"] for line in lines if line.get("split") == "valid"]


def test_accuracy_by_length_shades_the_trained_range(place: Path) -> None:
    chart = charts_of(place)["accuracy by length"]
    results = json.loads((place / "run" / "results.json").read_text())
    test = next(curve for curve in chart.curves if curve.name == "test")
    assert list(test.x) == [5, 6]
    assert list(test.y) == [results["splits"]["test"]["groups"]["length"][x]["accuracy"] for x in ("5", "6")]
    assert chart.shaded is not None
    assert chart.shaded[1] == 3


def test_mean_steps_by_length_are_those_of_results_json(place: Path) -> None:
    values = [y for curve in charts_of(place)["Mean steps by length"].curves for y in curve.y]
    assert values
    assert all(0 <= value <= 3 for value in values)
    results = json.loads((place / "run" / "results.json").read_text())
    split = results["splits"]["test"]
    groups = split["depth"]["groups"]["length"]
    assert min(groups.values()) <= split["depth"]["mean"] <= max(groups.values())


def test_the_page_is_self_contained_and_deterministic(place: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra `view` is not installed")
    page = RunReport.read(place / "run").html()
    assert page == RunReport.read(place / "run").html()
    assert "default-src 'none'" in page
    links = set(re.findall(r"(?:src|href)=\"([^\"]*)\"", page))
    assert all(link.startswith("#") for link in links), links
    ids = re.findall(r'\bid="([^"]*)"', page)
    assert len(ids) == len(set(ids))
    for text in ("somebody, Table 1", "train.lr", "Accuracy by length", "Mean steps by length"):
        assert text in page


def test_the_card_of_a_run_is_that_of_its_program(place: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra `view` is not installed")
    shown = RunReport.read(place / "run").card()
    assert shown == card(plan_recipe(place / "tiny.arch").graph).text()
    assert "computes functions in uniform TC⁰ only" in shown
    assert f"<pre>{escape(shown)}</pre>" in RunReport.read(place / "run").html()
    assert RunReport.read(copied(place, tmp_path / "without_graph")).card() == ""


def test_the_charts_are_one_picture(place: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra `view` is not installed")
    for path in ("run", "tiny.arch"):
        result = CliRunner().invoke(app, ["report", str(place / path), "-o", str(tmp_path / "charts.svg")])
        assert result.exit_code == 0
        svg = (tmp_path / "charts.svg").read_text()
        ElementTree.fromstring(svg)
        assert "Accuracy by length" in svg or path == "tiny.arch"


def test_a_terminal_shows_tables_and_bars(place: Path) -> None:
    text = printed(RunReport.read(place / "run"))
    assert "tiny: tiny on ctl, seed 1" in text
    assert "somebody, Table 1" in text
    assert re.search(r"test +5 █* +\d+\.\d%", text)


def test_an_unfinished_run_has_curves(place: Path, tmp_path: Path) -> None:
    folder = copied(place, tmp_path / "run")
    (folder / "metrics.jsonl").write_text((place / "run" / "metrics.jsonl").read_text()[:-20])
    report = RunReport.read(folder)
    assert [chart.title for chart in report.charts()][:1] == ["Loss"]
    assert "stopped" in printed(report)


def test_a_damaged_line_of_metrics_jsonl_is_named(place: Path, tmp_path: Path) -> None:
    folder = copied(place, tmp_path / "run")
    (folder / "metrics.jsonl").write_text(
        '{"step": 1, "loss": 2.5, "lr": 0.1}\nnot json\n{"step": 2, "loss": 2.0, "lr": 0.1}\n'
    )
    with pytest.raises(RunError, match="line 2"):
        RunReport.read(folder)


@pytest.mark.slow
def test_the_page_of_a_table_shows_its_finished_runs(place: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra `view` is not installed")
    runs = tmp_path / "runs"
    run: Callable[..., Any] = CliRunner().invoke
    program = str(place / "tiny.arch")
    assert run(app, ["table", program, "--out", str(runs), "--seeds", "2", "--device", "cpu"]).exit_code == 0
    result = run(app, ["report", program, "--runs", str(runs), "--seeds", "2"])
    assert result.exit_code == 0, result.output
    page = (runs / "report.html").read_text()
    for text in ("paper 97", "solved", "Accuracy by length, test"):
        assert text in page


def test_a_table_without_finished_runs_is_not_run(place: Path, tmp_path: Path) -> None:
    result = CliRunner().invoke(
        app, ["report", str(place / "tiny.arch"), "--runs", str(tmp_path / "none"), "--no-page"]
    )
    assert result.exit_code == 0
    assert "not run" in result.output
