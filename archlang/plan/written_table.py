"""The plan of a `table` of the language."""

from collections.abc import Sequence
from contextlib import suppress

from archlang.diagnostics.effort import TooMuchWork
from archlang.elaborate.static_arguments import plain
from archlang.names.evaluate import Evaluator
from archlang.names.values import Unknown
from archlang.plan import mistakes
from archlang.plan.cells import CellPlanner, is_group, settings_text
from archlang.plan.grid import spread
from archlang.plan.plan import Plan
from archlang.plan.recipe import report_repeated
from archlang.plan.table import TableColumn, TablePlan, TableRow
from archlang.source import Span
from archlang.syntax.expression_text import expression_text
from archlang.syntax.tree import Column, Row, Setting, Table
from archlang.types import Dim


def check_table(cells: CellPlanner, table: Table) -> None:
    """Checks the rows and columns of a table, without its cells."""
    if not _is_sound(cells, table):
        return
    rows, columns = _rows_and_columns(table)
    for column in columns:
        _resolve_column(cells, column)
    for recipe in dict.fromkeys(row.recipe for row in rows if row.recipe is not None):
        cells.has_statics(recipe, [setting for column in columns for setting in column.at])
    for row in rows:
        if row.recipe is not None:
            cells.has_statics(row.recipe, row.at)
    for settings in (*(row.at for row in rows), *(column.at for column in columns)):
        report_repeated((setting.path for setting in settings), cells.report)
    for row in rows:
        for setting in filter(is_group, row.at):
            cells.report(mistakes.group_in_row(setting.path.span, setting.path.text))


def check_cells(cells: CellPlanner, table: Table) -> None:
    """Checks the cells of a table within the step budget, those with equal settings once; a warning counts those left
    out."""
    if not _is_sound(cells, table):
        return
    rows, columns = _rows_and_columns(table)
    by_row = {(row.recipe, settings_text(row.at)): (row.recipe, row.at) for row in rows if row.recipe is not None}
    by_column: dict[tuple[tuple[str, str], ...], list[Column]] = {}
    for column in columns:
        by_column.setdefault(settings_text(column.at), []).append(column)
    row_settings, column_settings = list(by_row.values()), list(by_column.values())
    total = len(row_settings) * len(column_settings)
    checked = 0
    with suppress(TooMuchWork):
        for row_index, column_index in spread([len(row_settings), len(column_settings)]):
            recipe, at = row_settings[row_index]
            plan = cells.plan(recipe, (*at, *column_settings[column_index][0].at))
            for column in column_settings[column_index]:
                _check_metric(cells, plan, column)
            checked += 1
    if checked < total:
        cells.report(mistakes.points_left_out(table.name_span, table.name, "different cells", checked, total))


def plan_written_table(cells: CellPlanner, table: Table) -> TablePlan | None:
    """The plan of a table; None, and a report, if it has a mistake."""
    if not _is_sound(cells, table):
        return None
    rows, columns = _rows_and_columns(table)
    resolved_columns = tuple(_resolve_column(cells, column) for column in columns)
    resolved_rows = tuple(TableRow(row.title, row.recipe, row.why) for row in rows)
    planned = [
        cells.cell(resolved_row, resolved_column, (*row.at, *column.at))
        for row, resolved_row in zip(rows, resolved_rows, strict=True)
        for column, resolved_column in zip(columns, resolved_columns, strict=True)
    ]
    for cell, column in zip(planned, columns * len(rows), strict=True):
        _check_metric(cells, cell.plans[0] if cell and cell.plans else None, column)
    sound = tuple(cell for cell in planned if cell is not None)
    if len(sound) < len(planned):
        return None
    return TablePlan(table.name, table.documentation, resolved_rows, resolved_columns, sound)


def _check_metric(cells: CellPlanner, plan: Plan | None, column: Column) -> None:
    """Reports a column whose metric the run of a cell does not measure."""
    if plan is not None and plan.measures is not None:
        plan.measures.check(column.metric.span, column.metric.text, cells.report)


def _is_sound(cells: CellPlanner, table: Table) -> bool:
    """Returns whether a table has rows and columns that agree, with known recipes and metrics; reports if not."""
    rows, columns = _rows_and_columns(table)
    sound = _has_parts(cells, table, rows, "row", 'row "NDR" ndr')
    sound &= _has_parts(cells, table, columns, "column", 'column "Longer" test.accuracy')
    for column in columns:
        if len(column.metric.parts) != 2:
            cells.report(mistakes.bad_metric(column.metric.span, column.metric.text))
            sound = False
        elif column.metric.parts[1] == "loss" and (column.index is not None or any(map(is_group, column.at))):
            cells.report(mistakes.loss_of_group(column.metric.span, column.metric.text))
            sound = False
    recipes = cells.file.recipes
    for row in rows:
        if row.recipe is not None and row.recipe not in recipes:
            cells.report(mistakes.unknown_recipe(row.recipe_span or row.span, row.recipe, recipes))
            sound = False
    return sound and _rows_agree_with_columns(cells, rows, columns)


def _rows_agree_with_columns(cells: CellPlanner, rows: Sequence[Row], columns: Sequence[Column]) -> bool:
    """Returns whether no row and column set a static to different values; reports, for each setting of a column, the
    first row that contradicts it."""
    # Rows with equal settings of one recipe are compared once.
    rows_by_path: dict[str, dict[tuple[str, str], tuple[Row, Setting]]] = {}
    for row in rows:
        for setting in row.at:
            if row.recipe is not None and not is_group(setting):
                distinct = rows_by_path.setdefault(setting.path.text, {})
                distinct.setdefault((row.recipe, expression_text(setting.value)), (row, setting))
    sound = True
    for column in columns:
        for setting in column.at:
            path, text = setting.path.text, expression_text(setting.value)
            for (recipe, row_text), (row, row_setting) in rows_by_path.get(path, {}).items():
                if row_text != text and not cells.have_equal_values(recipe, row_setting, setting):
                    cells.report(
                        mistakes.row_contradicts_column(row.title, row_setting.span, column.title, setting.span, path)
                    )
                    sound = False
                    break
    return sound


def _has_parts(cells: CellPlanner, table: Table, parts: Sequence[Row | Column], word: str, example: str) -> bool:
    """Returns whether a table has rows (or columns) with different titles; reports if not."""
    if not parts:
        cells.report(mistakes.empty_table(table.name_span, table.name, word, example))
        return False
    first: dict[str, Span] = {}
    sound = True
    for part in parts:
        if first.setdefault(part.title, part.span) is not part.span:
            cells.report(mistakes.title_twice(part.span, word, part.title, first[part.title]))
            sound = False
    return sound


def _resolve_column(cells: CellPlanner, column: Column) -> TableColumn:
    def configure(call: object, target: object) -> Unknown:
        return Unknown("block")

    evaluator = Evaluator(lambda name: None, frozenset, cells.file, cells.report, configure)
    index = None if column.index is None else evaluator.value(column.index, "int")
    groups = {
        setting.path.text.partition(".")[2]: group
        for setting in column.at
        if is_group(setting) and (group := plain(evaluator.value(setting.value, None))) is not None
    }
    return TableColumn(column.title, column.metric.text, index.constant if isinstance(index, Dim) else None, groups)


def _rows_and_columns(table: Table) -> tuple[list[Row], list[Column]]:
    rows = [part for part in table.parts if isinstance(part, Row)]
    return rows, [part for part in table.parts if isinstance(part, Column)]
