"""Templates: every value is text, and no string ends the script around it."""

import subprocess
import sys
from pathlib import Path

import jinja2
import numpy as np
import pytest

import archlang
from archlang.reports.inspection.heatmap import Heatmap, HeatmapFrame
from archlang.reports.inspection.inspect import Inspection
from archlang.reports.pages import render
from archlang.reports.run_results import TextTable
from archlang.train.runs.prediction import Answer

EVIL = "</script><script>alert(1)</script><img src=x onerror='a' \"b\">"
GUTLB = Path(archlang.__file__).parent / "recipes" / "gutlb.arch"


def test_markup_in_an_inspection_is_text() -> None:
    frame = HeatmapFrame(EVIL, (EVIL,), (EVIL,), np.zeros((1, 1, 1)))
    panel = Heatmap(EVIL, EVIL, EVIL, EVIL, EVIL, (EVIL, EVIL), (frame, frame), source=EVIL)
    page = Inspection(EVIL, EVIL, {EVIL: (EVIL,)}, (Answer(EVIL, EVIL, 0.5, EVIL),), (panel,), 1.0).html()
    assert "<img" not in page
    assert "alert(1)<" not in page
    assert page.count("</script>") == 1


def test_markup_in_a_report_is_text() -> None:
    table = TextTable(EVIL, [EVIL], [[EVIL]])
    page = render(
        "report.html", title=EVIL, subtitle=EVIL, measured=table, sentences=[EVIL], claimed=table, charts=(),
        settings=table, card=EVIL,
    )  # fmt: skip
    assert "<img" not in page
    assert "<script" not in page


def test_a_value_that_a_template_lacks_raises() -> None:
    with pytest.raises(jinja2.UndefinedError):
        render("report.html", title="only a title")


def test_a_picture_in_the_terminal_needs_no_jinja() -> None:
    program = (
        "import sys\n"
        "from archlang.cli.app import app\n"
        f"app(['viz', {str(GUTLB)!r}], standalone_mode=False)\n"
        "assert not {'jinja2', 'markupsafe'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
