"""The picture of a table."""

from pathlib import Path
from xml.dom import minidom

import pytest

from archlang.plan.plan import PublishedResult, TableCell, TableColumn, TableRow
from archlang.reports.pages import PageError
from archlang.reports.result_table import ResultTable
from archlang.reports.table_picture import write_table_picture
from archlang.train.runs.table import CellResult

pytest.importorskip("matplotlib")

ROWS = (TableRow("NDR", "ndr"), TableRow('<b> & "$x$"\x1b[31m', "plain"), TableRow("Not begun", "plain"))
COLUMNS = (
    TableColumn("12", "test.accuracy", groups={"length": 12}),
    TableColumn("20", "test.accuracy", groups={"length": 20}),
    TableColumn("Surprise", "test.perplexity"),
)
CLAIM = PublishedResult("test.accuracy", None, 0.9, 0.01, {}, "NDR, Table 1")


def picture(path: Path) -> str:
    """Writes the picture of a small table, and returns the texts of its SVG file, one on each line."""
    values: tuple[tuple[float, ...], ...] = ((1.0, 0.5), (0.5,), (2.5, 3.5), (0.25,), (), (4.0,), (), (), ())
    places = [(row, column) for row in ROWS for column in COLUMNS]
    cells = [
        CellResult(TableCell(row, column, (), CLAIM if number == 0 else None), dict(enumerate(values[number], 1)), ())
        for number, (row, column) in enumerate(places)
    ]
    write_table_picture(ResultTable.of("lengths", ROWS, COLUMNS, cells, changed={"train.steps": "20"}), path)
    if path.suffix != ".svg":
        return ""
    (root,) = minidom.parse(str(path)).getElementsByTagName("svg")
    texts = [element.firstChild for element in root.getElementsByTagName("text")]
    return "\n".join([root.getAttribute("aria-label"), *(str(text.nodeValue) for text in texts if text is not None)])


def test_a_picture_names_rows_columns_metrics_and_what_its_marks_are(tmp_path: Path) -> None:
    lines = picture(tmp_path / "folder" / "table.svg").splitlines()
    for text in ("lengths", "NDR", "12", "20", "accuracy", "perplexity", "Surprise", "the paper", "a seed"):
        assert text in lines
    assert any(line.startswith("Measured with train.steps = 20") for line in lines)
    assert "Not begun" not in lines


def test_a_picture_has_its_numbers_as_text_and_shows_titles_as_they_are(tmp_path: Path) -> None:
    description, *lines = picture(tmp_path / "table.svg").splitlines()
    assert description.startswith("lengths. NDR: 12 75.0 ± 35.4, paper 90.0 ± 1.0; 20 50.0 (1 seed); Surprise 3.00")
    assert '<b> & "$x$"\ufffd[31m: 12 25.0 (1 seed)' in description
    assert '<b> & "$x$"\ufffd[31m' in lines


@pytest.mark.parametrize(("suffix", "begin"), [("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_a_picture_can_be_a_png_or_a_pdf_without_a_date(tmp_path: Path, suffix: str, begin: bytes) -> None:
    picture(tmp_path / f"table.{suffix}")
    content = (tmp_path / f"table.{suffix}").read_bytes()
    assert content.startswith(begin)
    assert b"Date" not in content
    assert b"/Type3" not in content, "publishers refuse such fonts"


def test_a_picture_that_cannot_be_written_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(PageError, match="cannot be written"):
        picture(tmp_path / "file" / "table.svg")
