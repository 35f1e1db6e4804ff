"""A table of results in each format."""

import io
import json
import math
from dataclasses import replace

import pytest
from rich.console import Console

from archlang.plan.plan import PublishedResult, TableCell, TableColumn, TableRow
from archlang.reports.result_table import TEXT_FORMATS, ResultTable, json_table, latex, markdown, terminal_table
from archlang.train.runs.table import CellResult, TimeSpent

ROWS = (TableRow("NDR", "ndr"), TableRow("Trans|former", "plain"), TableRow("DNC", None, "no such block"))
COLUMNS = (TableColumn("Longer", "test.accuracy"), TableColumn("Surprise", "test.perplexity"))
CLAIM = PublishedResult("test.accuracy", None, 1.0, 0.01, {}, "NDR, Table 1")


def measured(row: TableRow, column: TableColumn, *values: float, missing: tuple[int, ...] = ()) -> CellResult:
    claim = CLAIM if (row, column) == (ROWS[0], COLUMNS[0]) else None
    return CellResult(TableCell(row, column, (), claim), dict(enumerate(values, 1)), missing)


@pytest.fixture
def table() -> ResultTable:
    cells = [
        measured(ROWS[0], COLUMNS[0], 1.0, 0.98, 1.0),
        measured(ROWS[0], COLUMNS[1], 2.5, 3.5),
        measured(ROWS[1], COLUMNS[0], 0.5),
        measured(ROWS[1], COLUMNS[1], missing=(1, 2)),
        measured(ROWS[2], COLUMNS[0]),
        measured(ROWS[2], COLUMNS[1]),
    ]
    return ResultTable.of("table1", ROWS, COLUMNS, cells, compared=[(ROWS[0], ROWS[1])])


def shown_by_terminal(table: ResultTable) -> str:
    file = io.StringIO()
    Console(width=200, file=file, force_terminal=False).print(terminal_table(table))
    return file.getvalue()


def test_the_terminal_shows_results_claims_and_missing_runs(table: ResultTable) -> None:
    text = shown_by_terminal(table)
    for expected in (
        "99.3 ± 1.2", "2/3 solved", "paper 100.0 ± 1.0: reproduced ✓", "50.0 (1 seed)", "not run", "no such block",
        "3.00 ± 0.71 (2 seeds)",
    ):  # fmt: skip
        assert expected in text


@pytest.mark.parametrize(
    ("column", "written", "median", "shown"),
    [
        (0, "0.98", False, "98"),
        (0, "0.9850 ± 0.0020", False, "98.50 ± 0.20"),
        (0, "1 ± 0.1", True, "median 100 ± 10"),
        (1, "12.345 ± 0.1", False, "12.345 ± 0.1"),
    ],
)
def test_a_cell_shows_a_claim_with_its_digits(column: int, written: str, median: bool, shown: str) -> None:
    claim = replace(CLAIM, metric=COLUMNS[column].metric, written=written, median=median)
    cell = measured(ROWS[0], COLUMNS[column])
    result = ResultTable.of("t", ROWS[:1], COLUMNS, [replace(cell, cell=replace(cell.cell, claim=claim))]).cells[0]
    assert result.claimed == shown


def test_a_cell_of_a_group_without_items_says_so() -> None:
    cell = replace(measured(ROWS[0], COLUMNS[0]), has_no_group=True)
    table = ResultTable.of("table1", ROWS[:1], COLUMNS[:1], [cell])
    (result,) = table.cells
    for text in (shown_by_terminal(table), *(format_table(table) for format_table in TEXT_FORMATS.values())):
        assert "no such group" in text
    assert result.lines == ["no such group", "paper 100.0 ± 1.0: no such group"]


def test_markdown_has_a_line_for_each_row_and_escapes_its_bars(table: ResultTable) -> None:
    lines = markdown(table).splitlines()
    assert lines[0] == "|  | Longer | Surprise |"
    assert lines[1] == "| --- | ---: | ---: |"
    assert lines[3].startswith("| Trans\\|former | 50.0 (1 seed) | not run |")
    assert lines[4] == "| DNC (no such block) | absent | absent |"


def test_latex_has_a_line_for_each_row(table: ResultTable) -> None:
    text = latex(table)
    assert text.count("\\\\") == 1 + len(ROWS)
    assert "Trans\\textbar{}former & " in text
    assert "DNC (no such block) & absent & " in text
    assert "NDR & 99.3 $\\pm$ 1.2 \\; (100.0 $\\pm$ 1.0) & 3.00 $\\pm$ 0.71 (2 seeds) \\\\" in text


@pytest.mark.parametrize(
    ("values", "missing", "shown"),
    [
        ((0.6, 0.62), (3,), "61.0 ± 1.4 (2 of 3 seeds)"),
        ((0.6, math.nan), (), "60.0 (1 of 2 seeds)"),
        ((0.6, 0.62), (), "61.0 ± 1.4 (2 seeds)"),
        ((0.6, 0.6, 0.6), (), "60.0 ± 0.0"),
    ],
)
def test_every_format_has_the_number_of_seeds_where_it_differs(
    values: tuple[float, ...], missing: tuple[int, ...], shown: str
) -> None:
    """It differs from what is planned, or from that of another cell."""
    cells = [measured(ROWS[0], COLUMNS[0], *values, missing=missing), measured(ROWS[1], COLUMNS[0], 0.5, 0.6, 0.7)]
    table = ResultTable.of("t", ROWS[:2], COLUMNS[:1], cells)
    for text in (shown_by_terminal(table), markdown(table), latex(table).replace("$\\pm$", "±")):
        assert shown in text
        assert shown in text.replace(f"{shown} (", "")
    assert json.loads(json_table(table))["cells"][0]["seeds"] == sum(map(math.isfinite, values))


def test_json_holds_the_cells(table: ResultTable) -> None:
    cells = json.loads(json_table(table))["cells"]
    assert cells[0]["values"] == {"1": 1.0, "2": 0.98, "3": 1.0}
    assert cells[0]["verdict"] == "reproduced"
    assert cells[3]["missing"] == [1, 2]


@pytest.mark.parametrize(
    ("metric", "ending"), [("accuracy", "how many seeds reached 99%."), ("squared_error", "how many seeds there are.")]
)
def test_only_fractions_have_seeds_that_reached_a_share(metric: str, ending: str) -> None:
    column = TableColumn("Result", f"test.{metric}")
    table = ResultTable.of("t", ROWS[:1], [column], [measured(ROWS[0], column, 0.5, 0.25)])
    assert [line.endswith(ending) for line in table.sentences()] == [True]


def test_changed_settings_are_named_beside_the_claims(table: ResultTable) -> None:
    assert not any("Measured with" in line for line in table.sentences())
    changed = ResultTable.of(
        "table1", ROWS, COLUMNS, [cell.measured for cell in table.cells], changed={"train.steps": "100"}
    )
    assert changed.sentences()[0] == (
        "Measured with train.steps = 100; the claims are for the recipes without these settings."
    )
    assert "train.steps = 100" in markdown(changed)
    assert json.loads(json_table(changed))["changed"] == {"train.steps": "100"}


def test_a_table_ends_with_the_cost_of_its_runs_in_formats_that_are_read(table: ResultTable) -> None:
    costly = replace(table, spent=TimeSpent(3, core_hours=1.25))
    assert costly.sentences()[-1].startswith("Cost: at most 1.25 core-hours of training in 3 finished runs")
    assert "1.25 core-hours" in markdown(costly).splitlines()[-1]
    assert json.loads(json_table(costly))["cost"] == {"runs": 3, "core_hours": 1.25, "gpu_hours": 0.0}
    assert "core-hours" not in latex(costly) + markdown(table)


def test_rows_are_compared_over_the_seeds_that_both_have(table: ResultTable) -> None:
    first, second = (comparison.sentence() for comparison in table.comparisons())
    assert first.endswith("NDR − Trans|former = +50.0 over 1 pairs of seeds, p = 1.000 (paired permutation test).")
    assert second == "Surprise: NDR and Trans|former have no seed in common."
    assert {first, second} <= {*table.sentences()}
