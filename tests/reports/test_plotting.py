"""Charts and heat maps draw names of other people as they are."""

import pytest

from archlang.reports.charts import Chart, Curve, chart_svg

pytest.importorskip("matplotlib")


@pytest.mark.parametrize("name", ["$\\nonsense$", "\x1b[31m", "漢字", "<script>", "$", "--> <b>"])
def test_a_name_in_a_chart_is_neither_mathematics_nor_a_reason_to_stop(name: str) -> None:
    curves = (Curve(name, (1, 2), (0.1, 0.2)), Curve("test", (1, 2), (0.1, 0.2)))
    svg = chart_svg(Chart(name, name, name, curves))
    assert "<script>" not in svg
    assert "<b>" not in svg
    assert "test" in svg


@pytest.mark.parametrize("losses", [(2.0, 0.7), (2.0, 0.0007)])
def test_a_logarithmic_axis_has_numbers_and_no_formulas(losses: tuple[float, float]) -> None:
    svg = chart_svg(Chart("Loss", "step", "loss", (Curve("train", (1, 2), losses),), logarithmic=True))
    assert "mathdefault" not in svg
    assert ">1</text>" in svg
