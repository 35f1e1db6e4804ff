"""Pages in a real browser: no errors, no network, no overflow, and keys work."""

from typing import Any

import numpy as np
import pytest

from archlang.reports.charts import Chart, Curve, chart_svg
from archlang.reports.inspection.heatmap import Heatmap, HeatmapFrame
from archlang.reports.inspection.inspect import Inspection
from archlang.reports.pages import render
from archlang.reports.run_results import TextTable
from archlang.train.runs.prediction import Answer

pytestmark = pytest.mark.browser
WIDTHS = (1280, 400)


def inspection(columns: int = 12) -> Inspection:
    names = tuple(f"{i} token{i}" for i in range(columns))
    random = np.random.default_rng(0)
    frames = tuple(HeatmapFrame(f"step {i + 1}", names, names, random.random((3, columns, columns))) for i in range(4))
    gate = HeatmapFrame("", ("step 1", "step 2"), names, random.random((1, 2, columns)))
    return Inspection(
        "test 7", "ndr", {"x": names}, tuple(Answer(name, "a", 0.5, "b") for name in names),
        (
            Heatmap("Gate: g", "How far.", "depth", "position", "gate", ("all",), (gate,)),
            Heatmap("Attention: a", "How much.", "query", "key", "weight", ("max over heads", "head 0", "head 1"),
                    frames, high=1.0, source="line 4: attention[heads = 2](h)"),
        ), 2.5,
    )  # fmt: skip


def pixels(view: Any, index: int) -> str:
    url: str = view.locator("canvas.map").nth(index).evaluate("canvas => canvas.toDataURL()")
    return url


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
@pytest.mark.parametrize("columns", [1, 12, 300])
def test_an_inspection_fits_the_window(open_page: Any, columns: int, width: int, scheme: str) -> None:
    view = open_page(inspection(columns).html(), width, scheme)
    assert view.evaluate("document.documentElement.scrollWidth") <= width
    for element in view.locator("h1, h2, p, section, .controls").all():
        box = element.bounding_box()
        assert box is None or box["x"] + box["width"] <= width + 1


@pytest.mark.parametrize("width", WIDTHS)
def test_a_small_map_is_as_large_as_the_page_allows(open_page: Any, width: int) -> None:
    view = open_page(inspection(3).html(), width)
    box = view.locator("canvas.map").nth(1).bounding_box()
    section = view.locator("section").nth(2).bounding_box()
    assert box["width"] > min(0.9 * section["width"], 3 * 120)
    assert box["x"] + box["width"] <= section["x"] + section["width"]
    assert box["height"] <= 800


def test_a_map_is_stretched_to_its_largest_value_when_asked(open_page: Any) -> None:
    names = ("0 a", "1 b")
    gate = HeatmapFrame("", ("step 1",), names, np.array([[[0.0, 0.1]]]))
    panel = Heatmap("Gate: g", "How far.", "depth", "position", "gate", ("all",), (gate,), high=1.0)
    view = open_page(Inspection("test 7", "ndr", {"x": names}, (), (panel,), None).html())
    before = pixels(view, 0)
    assert view.locator(".high").inner_text() == "1"
    view.get_by_label("stretch").check()
    assert view.locator(".high").inner_text() == "0.1"
    assert pixels(view, 0) != before


def test_the_settings_of_a_report_are_folded(open_page: Any) -> None:
    empty = TextTable("", [], [])
    view = open_page(
        render(
            "report.html", title="Report", subtitle="", measured=empty, sentences=(), claimed=None, charts=[],
            settings=TextTable("Settings", ["setting", "value"], [["model.d", "64"]]),
        )
    )  # fmt: skip
    assert not view.get_by_text("model.d").is_visible()
    view.get_by_text("Settings").click()
    assert view.get_by_text("model.d").is_visible()


def test_the_slider_changes_the_map_and_its_label(open_page: Any) -> None:
    view = open_page(inspection().html())
    before = pixels(view, 1)
    assert view.locator(".frame").inner_text() == "step 1"
    view.locator("input[type=range]").focus()
    view.keyboard.press("ArrowRight")
    assert view.locator(".frame").inner_text() == "step 2"
    assert pixels(view, 1) != before


def test_a_head_can_be_chosen(open_page: Any) -> None:
    view = open_page(inspection().html())
    before = pixels(view, 1)
    view.locator("select").select_option("head 1")
    assert pixels(view, 1) != before


def test_a_selected_cell_shows_its_value(open_page: Any) -> None:
    shown = inspection()
    view = open_page(shown.html())
    canvas = view.locator("canvas.map").nth(1)
    canvas.focus()
    for key in ("ArrowDown", "ArrowDown"):
        view.keyboard.press(key)
    reading = view.locator("section").nth(2).locator("output").inner_text()
    value = shown.panels[1].frames[0].values[0, 1, 0]
    assert reading.startswith("1 token1 × 0 token0: ")
    assert abs(float(reading.rsplit(" ", 1)[1]) - value) < 1 / 200
    canvas.hover()
    assert view.locator("section").nth(2).locator("output").inner_text() != reading


def test_a_map_has_a_description_for_screen_readers(open_page: Any) -> None:
    view = open_page(inspection().html())
    label = view.locator("canvas.map").nth(1).get_attribute("aria-label")
    assert label.startswith("Attention: a, step 1, max over heads: 12 rows (query) and 12 columns (key).")


def test_a_panel_is_saved_as_a_png(open_page: Any) -> None:
    view = open_page(inspection().html())
    with view.expect_download() as download:
        view.locator(".save").nth(1).click()
    assert download.value.suggested_filename == "Attention_a.png"


@pytest.mark.parametrize("width", WIDTHS)
def test_charts_and_tables_fit_the_window(open_page: Any, width: int) -> None:
    pytest.importorskip("matplotlib", reason="the extra `view` is not installed")
    chart = Chart("Accuracy by length", "length", "accuracy", (Curve("test", [1, 2], [0.5, 1.0]),), (1, 1), marked=True)
    wide = TextTable("Measured", [f"column {i}" for i in range(30)], [["98.2 ± 1.3\npaper 97.0"] * 30])
    report = render(
        "report.html", title="Report", subtitle="", measured=wide, sentences=(), claimed=None,
        charts=[chart_svg(chart)], settings=None,
    )  # fmt: skip
    view = open_page(report, width)
    assert view.evaluate("document.documentElement.scrollWidth") <= width
    box = view.locator("svg[role=img]").bounding_box()
    assert 0 < box["width"] <= width
