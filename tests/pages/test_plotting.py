"""Charts and heat maps draw names of other people as they are."""

import pytest

from archlang.pages.reports.charts import Chart, Curve, chart_svg

pytest.importorskip("matplotlib")


@pytest.mark.parametrize("name", ["$\\nonsense$", "\x1b[31m", "漢字", "<script>", "$", "--> <b>"])
def test_a_name_in_a_chart_is_neither_mathematics_nor_a_reason_to_stop(name: str) -> None:
    curves = (Curve(name, (1, 2), (0.1, 0.2)), Curve("test", (1, 2), (0.1, 0.2)))
    svg = chart_svg(Chart(name, name, name, curves))
    assert "<script>" not in svg
    assert "<b>" not in svg
    assert "test" in svg
