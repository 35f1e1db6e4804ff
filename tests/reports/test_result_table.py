"""A table of results in each format."""

import io
import json
import math
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest
from rich.console import Console

from archlang.plan.plan import Plan, PublishedResult, TableCell, TableColumn, TableRow
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


def test_a_terminal_that_is_too_narrow_shows_the_columns_in_parts() -> None:
    columns = [TableColumn(f"Task {number}", "test.accuracy") for number in range(12)]
    cells = [measured(ROWS[1], column, 0.25 + number / 100) for number, column in enumerate(columns)]
    file = io.StringIO()
    Console(width=80, file=file).print(terminal_table(ResultTable.of("t", ROWS[1:2], columns, cells)))
    text = file.getvalue()
    assert text.count("Trans") == 2
    assert all(f"Task {number}" in text and f"{25 + number}.0" in text for number in range(12))


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


def test_latex_is_a_table_with_a_caption_and_the_best_mean_of_each_column_in_bold() -> None:
    columns = (TableColumn("A_1 & 100 %", "test.accuracy"), TableColumn("Loss", "test.loss"))
    cells = [measured(ROWS[0], columns[0], 0.5, 0.7), measured(ROWS[0], columns[1], 2.0)]
    cells += [measured(ROWS[1], columns[0], 0.9), measured(ROWS[1], columns[1], 1.5)]
    lines = latex(ResultTable.of("field_1", ROWS[:2], columns, cells)).splitlines()
    assert lines[1:3] == ["\\begin{table}", "\\centering"]
    assert lines[3] == ("\\caption{field\\_1: mean $\\pm$ standard deviation over 2 seeds; the best mean is bold.}")
    assert lines[6] == " & A\\_1 \\& 100 \\% & Loss \\\\"
    assert lines[8:10] == [
        "NDR & 60.0 $\\pm$ 14.1 & 2.00 (1 seed) \\\\",
        "Trans\\textbar{}former & \\textbf{90.0 (1 seed)} & \\textbf{1.50 (1 seed)} \\\\",
    ]
    assert [line.partition("{")[2] for line in lines if "begin{" in line] == ["table}", "tabular}{lrr}"]
    assert lines[-3:] == ["\\bottomrule", "\\end{tabular}", "\\end{table}"]


def test_the_caption_of_latex_counts_the_missing_runs_once(table: ResultTable) -> None:
    assert "Missing runs" not in latex(table)
    plans = tuple(cast(Plan, SimpleNamespace(seed=seed, graph=None, problems=())) for seed in (1, 2, 3))
    cells = [CellResult(TableCell(ROWS[0], column, plans, None), {1: 0.5}, (2, 3)) for column in COLUMNS]
    text = latex(ResultTable.of("t", ROWS[:1], COLUMNS, cells))
    assert "Missing runs: 2." in text
    assert "textbf" not in text, "there is nothing better than a single row"


def test_a_failure_that_the_card_predicts_is_marked_and_compared_with_the_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("archlang.reports.result_table.failures", lambda graph, problems: tuple(problems))
    plans = tuple(
        cast(Plan, SimpleNamespace(seed=1, recipe="r", graph=None, problems=each)) for each in (("parity",), ())
    )
    column = TableColumn("Parity", "test.accuracy")
    cells = [
        CellResult(TableCell(ROWS[0], column, plans[:1], None), {1: 0.5}, ()),
        CellResult(TableCell(ROWS[1], column, plans[:1], None), {1: 1.0}, ()),
        CellResult(TableCell(ROWS[2], column, plans[1:], None), {1: 0.5}, ()),
        CellResult(TableCell(ROWS[0], column, plans[:1], None), {}, (1,)),
    ]
    rows = (*ROWS[:3], replace(ROWS[0], title="waits"))
    table = ResultTable.of(
        "t", rows, (column,), [*cells[:3], replace(cells[3], cell=replace(cells[3].cell, row=rows[3]))]
    )
    assert [cell.lines[-1] for cell in table.cells] == [
        "card: fails ✓",
        "card: fails ✗",
        "50.0 (1 seed)",
        "card: fails",
    ]
    assert "Of 2 with a result 1 came true (✓: below 99%)." in table.sentences()[0]
    assert latex(table).count("$^\\dagger$") == 3
    records = json.loads(json_table(table))["cells"]
    assert [each["predicted_failure"] for each in records] == [["parity"], ["parity"], [], ["parity"]]
    assert [each["came_true"] for each in records] == [True, False, None, None]


def test_latex_has_a_line_for_each_row(table: ResultTable) -> None:
    text = latex(table)
    assert text.count("\\\\") == 1 + len(ROWS)
    assert "Trans\\textbar{}former & " in text
    assert "DNC (no such block) & absent & " in text
    assert "NDR & \\textbf{99.3 $\\pm$ 1.2} \\; (100.0 $\\pm$ 1.0) & 3.00 $\\pm$ 0.71 (2 seeds) \\\\" in text


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
    assert json.loads(json_table(costly))["cost"] == {"runs": 3, "core_hours": 1.25, "gpu_hours": 0.0, "untimed": 0}
    assert "core-hours" not in latex(costly) + markdown(table)


def test_rows_are_compared_over_the_seeds_that_both_have(table: ResultTable) -> None:
    first, second, *_ = (comparison.sentence() for comparison in table.comparisons())
    assert first.endswith("NDR − Trans|former = +50.0 over 1 pairs of seeds, p = 1.000 (paired permutation test).")
    assert second == "Surprise: NDR and Trans|former have no seed in common."
    assert {first, second} <= {*table.sentences()}


def test_a_difference_has_an_interval_and_costs_are_not_compared() -> None:
    columns = (COLUMNS[0], TableColumn("Parameters", "run.parameters"))
    cells = [measured(ROWS[0], columns[0], 0.9, 0.8), measured(ROWS[0], columns[1], 10, 10)]
    cells += [measured(ROWS[1], columns[0], 0.7, 0.7), measured(ROWS[1], columns[1], 20, 20)]
    table = ResultTable.of("t", ROWS[:2], columns, cells, compared=[(ROWS[0], ROWS[1])])
    (comparison,) = table.comparisons()
    assert comparison.interval == pytest.approx((0.1, 0.2))
    assert "NDR − Trans|former = +15.0 [10.0, 20.0] over 2 pairs of seeds" in comparison.sentence()
    assert table.at(ROWS[0], columns[1]).lines == ["10"]


def test_columns_are_power_laws_of_the_fitted_one() -> None:
    rows = [TableRow(f"d = {d}", "r") for d in (1, 2, 4)]
    columns = (
        TableColumn("Size", "run.parameters"), TableColumn("Loss", "test.loss"), TableColumn("Right", "test.accuracy"),
    )  # fmt: skip
    values = {"run.parameters": [1e2, 1e3, 1e4], "test.loss": [4.0, 2.0, 1.0], "test.accuracy": [0.5, 0.75, 1.0]}
    cells = [
        measured(row, column, *[values[column.metric][index]] * 2)
        for index, row in enumerate(rows)
        for column in columns
    ]
    table = ResultTable.of("t", rows, columns, cells, fitted="Size")
    assert table.sentences()[-2:] == [
        "Loss ≈ 16 · Size^-0.30 [-0.30, -0.30], R² = 1.00 (power law).",
        "1 − Right: no power law in Size, which needs three sizes with positive numbers.",
    ]
    assert list(json.loads(json_table(table))["fits"]) == ["Loss"]
    assert not replace(table, fitted=None).fits()
