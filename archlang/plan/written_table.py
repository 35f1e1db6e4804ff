"""The plan of a `table` of the language."""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from archlang.diagnostics import Diagnostic
from archlang.diagnostics.effort import TooMuchWork, spend, unlimited
from archlang.diagnostics.names import did_you_mean, is_typing_error
from archlang.elaborate.static_arguments import plain
from archlang.names.evaluate import Evaluator
from archlang.names.resolve import ResolvedFile
from archlang.names.values import Unknown
from archlang.plan import mistakes
from archlang.plan.cells import CellPlanner, settings_text
from archlang.plan.claims import check_fraction, group_index, literal, written_number
from archlang.plan.grid import spread
from archlang.plan.measures import RUN, Measures, is_group
from archlang.plan.plan import Plan, PublishedResult
from archlang.plan.planner import Planner
from archlang.plan.recipe import report_repeated
from archlang.plan.table import TableCell, TableColumn, TablePlan, TableRow
from archlang.plan.table_parts import TableParts, read_table
from archlang.source import Span
from archlang.syntax.expression_text import expression_text
from archlang.syntax.tree import Column, Name, Published, Row, Setting, Table

_HEADER = re.compile(r"^table[ \t]+([A-Za-z_]\w*)", re.MULTILINE)
# Statics of a task that change nothing but its test items, and those that are like the training items.
_OF_TESTS = re.compile(r"task\.(test|iid)(_\w+)?")
_LARGEST_RATIO = 2
_EXAMPLE_OF_COLUMN = 'column "Longer" test.accuracy'


def _table_names(file: ResolvedFile) -> tuple[str, ...]:
    """Returns the names of the tables that a file can average, also of those that cannot be parsed."""
    written = _HEADER.findall(file.program.source.text)
    return tuple(dict.fromkeys((*file.tables, *written, *file.used_tables)))


def repeats_mistake_of_averaged(diagnostic: Diagnostic, diagnostics: Sequence[Diagnostic], file: ResolvedFile) -> bool:
    """Returns whether an average names settings that no column has because a line of the averaged table, where it is
    reported, has a mistake."""
    if diagnostic.code != "E0635":
        return False
    columns = [column for table in file.tables.values() for column in _averages(table)]
    name = next((column.metric.text for column in columns if column.at and column.at[0].span == diagnostic.span), "")
    averaged = file.find_table(name)
    return averaged is not None and any(
        averaged[1].span.contains(other.span) for other in diagnostics if other.is_error and other is not diagnostic
    )


def check_table(cells: CellPlanner, table: Table) -> None:
    """Checks the rows and columns of a table, without its cells."""
    rows, all_columns, _ = _sound_parts(cells, table)
    columns = [column for column in all_columns if not column.average]
    _check_averages(cells, rows, all_columns)
    for column in columns:
        _resolve_column(cells, column)
    _check_published(cells, rows, read_table(table, cells.report))
    for recipe in dict.fromkeys(row.recipe for row in rows if row.recipe is not None):
        cells.has_statics(recipe, [setting for column in columns for setting in column.at])
    for row in rows:
        if row.recipe is not None:
            cells.has_statics(row.recipe, row.at)
    _check_best_of(cells, rows, columns)
    _check_trainings(cells, columns)
    for settings in (*(row.at for row in rows), *(column.at for column in columns)):
        report_repeated(settings, cells.report)


def check_cells(cells: CellPlanner, table: Table) -> None:
    """Checks the cells of a table within the step budget, those with equal settings once; a warning counts those left
    out."""
    with unlimited():  # `check_table` has spent these steps
        rows, columns = _rows_and_metrics(cells, table)
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
            columns = column_settings[column_index]
            plan = cells.plan(recipe, (*at, *columns[0].at))
            for column in columns:
                _check_metric(cells, plan, column)
            checked += 1
    if checked < total:
        cells.report(mistakes.points_left_out(table.name_span, table.name, "different cells", checked, total))


def plan_written_table(cells: CellPlanner, table: Table) -> TablePlan | None:
    """The plan of a table; None, and a report, if it has a mistake."""
    rows, columns, are_sound = _sound_parts(cells, table)
    if not are_sound:
        return None
    are_published_sound = _check_published(cells, rows, read_table(table, cells.report))
    if not _check_best_of(cells, rows, [column for column in columns if not column.average]):
        return None
    if not _check_averages(cells, rows, columns):
        return None
    averaged = {column.title: _averaged_cells(cells, column) for column in columns if column.average}
    if not are_published_sound or None in averaged.values():
        return None
    resolved_columns = tuple(
        _resolve_column(cells, column)
        if (cells_of_column := averaged.get(column.title)) is None
        else TableColumn(column.title, cells_of_column[0].column.metric)
        for column in columns
    )
    resolved_rows = tuple(TableRow(row.title, row.recipe, row.why) for row in rows)
    planned = []
    for row, resolved_row in zip(rows, resolved_rows, strict=True):
        for place, (column, resolved_column) in enumerate(zip(columns, resolved_columns, strict=True)):
            if (cells_of_column := averaged.get(column.title)) is not None:
                cell: TableCell | None = _average(resolved_row, resolved_column, cells_of_column)
            else:
                best_of = [path.text for path in (*row.best_of, *column.best_of)]
                cell = cells.cell(resolved_row, resolved_column, (*row.at, *column.at), best_of)
                _check_metric(cells, cell.plans[0] if cell and cell.plans else None, column)
            if cell is not None and row.published is not None:
                cell = replace(cell, claim=_published_result(table, row.published, place, resolved_column))
            planned.append(cell)
    sound = tuple(cell for cell in planned if cell is not None)
    if len(sound) < len(planned):
        return None
    return TablePlan(table.name, table.documentation, resolved_rows, resolved_columns, sound)


def _averaged_table(cells: CellPlanner, column: Column) -> tuple[ResolvedFile, Table, frozenset[str]] | None:
    """The table that a column averages, with its file and the titles of its columns that have the settings of the
    column; None, and a report, if there is none or it has averages."""
    table = cells.file.find_table(column.metric.text)
    if table is None:
        cells.report(mistakes.unknown_table(column.metric.span, column.metric.text, _table_names(cells.file), None))
        return None
    if _averages(table[1]):
        if cycle := _cycle(cells.file, column):
            # The same diagnostic from whichever table it is found.
            tables = [average.metric.text for average in cycle]
            cells.report(mistakes.cycle_of_averages(cycle[-1].metric.span, [tables[-1], *tables], len(tables) == 1))
        else:
            cells.report(mistakes.average_of_averages(column.metric.span, column.metric.text))
        return None
    parts = read_table(table[1], cells.report)
    if not parts.columns:
        if parts.is_sound:
            _has_parts(cells, table[1], parts.columns, "column", _EXAMPLE_OF_COLUMN)
        return None
    settings, columns = _texts(column.at), parts.columns
    titles = frozenset(averaged.title for averaged in columns if settings <= _texts(averaged.at))
    if not titles and not parts.is_sound:
        return None
    if not titles:
        possible = sorted({" = ".join(setting) for averaged in columns for setting in _texts(averaged.at)})
        cells.report(mistakes.no_such_column(column.at[0].span, column.metric.text, possible))
        return None
    metrics = list(dict.fromkeys(averaged.metric.parts[-1] for averaged in columns if averaged.title in titles))
    if len(metrics) > 1:
        cells.report(mistakes.average_of_metrics(column.metric.span, column.metric.text, metrics))
        return None
    return *table, titles


def _averages(table: Table) -> list[Column]:
    """The columns of a table that are averages."""
    return [part for part in table.parts if isinstance(part, Column) and part.average]


def _cycle(file: ResolvedFile, column: Column) -> list[Column]:
    """The columns by which tables average each other, from a column on, with the one of the first table of the file
    last; empty if there is no way back to the table of the column."""
    first = next(table for table in file.tables.values() if any(part is column for part in table.parts))
    paths, seen = [[column]], set[str]()
    while paths:
        path = paths.pop()
        name = path[-1].metric.text
        if name == first.name:
            last = max(range(len(path)), key=lambda place: path[place].span.start)
            return [*path[last + 1 :], *path[: last + 1]]
        if name in file.tables and name not in seen:
            seen.add(name)
            paths += [[*path, average] for average in _averages(file.tables[name])]
    return []


def _check_averages(cells: CellPlanner, rows: Sequence[Row], columns: Sequence[Column]) -> bool:
    """Returns whether each row has a row of the same title in the tables that are averaged, and no settings if all
    columns are averages; reports if not. A row of prior work needs none, but a title that differs by a typing error
    is reported."""
    sound = True
    averaged = [_averaged_table(cells, column) for column in columns if column.average]
    tables = [table for _, table, _ in filter(None, averaged)]
    titles = {id(table): [part.title for part in table.parts if isinstance(part, Row)] for table in tables}
    # A title that is there twice stands in place of another, which is then missing.
    complete = [table for table in tables if len(set(titles[id(table)])) == len(titles[id(table)]) and table.is_whole]
    checked: set[str] = set()
    for row in rows if tables else ():
        spend(len(tables))
        missing = [table for table in complete if row.title not in titles[id(table)] and row.title not in checked]
        checked.add(row.title)
        if row.recipe is None:
            possible = sorted({title for table in missing for title in titles[id(table)]})
            near = did_you_mean(row.title, possible)
            is_mistake = near is not None and not row.why and is_typing_error(row.title, near, possible)
            missing = missing[:1] if is_mistake and len(missing) == len(tables) else []
        elif len(tables) == len(columns) and (row.at or row.best_of):
            settings = row.at or row.best_of
            span = settings[0].span.to(settings[-1].span)
            cells.report(mistakes.settings_of_averages(span, "at" if row.at else "best of"))
            sound = False
        for table in missing[:1]:
            cells.report(mistakes.no_averaged_row(row.span, table.name, row.title, titles[id(table)]))
            sound = False
    return sound


def _texts(settings: Sequence[Setting]) -> frozenset[tuple[str, str]]:
    return frozenset((setting.path.text, expression_text(setting.value)) for setting in settings)


def _averaged_cells(cells: CellPlanner, column: Column) -> Sequence[TableCell] | None:
    """The cells of all rows that a column averages; None, and a report, if one has a mistake."""
    averaged = _averaged_table(cells, column)
    if averaged is None:
        return None
    file, table, titles = averaged
    plan = plan_written_table(cells.of(file), table)
    return None if plan is None else [cell for cell in plan.cells if cell.column.title in titles]


def _average(row: TableRow, column: TableColumn, cells_of_column: Sequence[TableCell]) -> TableCell:
    """The average of those cells whose row has the same title; without plans if they cannot run."""
    averaged = tuple(cell for cell in cells_of_column if cell.row.title == row.title)
    if not all(cell.plans for cell in averaged):
        return TableCell(row, column, (), None)
    plans = {id(averaged_plan): averaged_plan for cell in averaged for averaged_plan in cell.plans}
    return TableCell(row, column, tuple(plans.values()), None, (), averaged)


def _published_result(table: Table, published: Published, place: int, column: TableColumn) -> PublishedResult | None:
    """What a row claims in a column; None if it has no number there."""
    number = published.cells[place]
    value = None if number.value is None else literal(number.value)
    if number.value is None or value is None:
        return None
    deviation = None if number.deviation is None else literal(number.deviation)
    origin = table.origin if published.origin is None else published.origin
    return PublishedResult(
        column.metric,
        column.index,
        value,
        deviation,
        {},
        origin,
        published.median,
        written=written_number(number.value, number.deviation),
    )


def _check_published(cells: CellPlanner, rows: Sequence[Row], parts: TableParts) -> bool:
    """Returns whether each row that claims numbers has one, or `-`, for each column; reports if not."""
    columns = parts.columns
    sound = _have_number_for_each_column(cells, rows, parts)
    for row in rows:
        if row.published is None:
            continue
        numbers = row.published.cells
        if len(numbers) != len(columns):
            continue  # which was reported, and the columns of the numbers are unknown
        # A row of prior work may have ratios, such as that of two accuracies, which are not in per cent either.
        most = 1 if row.recipe is not None else _LARGEST_RATIO
        for column, number in zip(columns, numbers, strict=True):
            check_fraction(column.metric.text, (number.value, number.deviation), cells.report, most)
        for number in numbers:
            for part in (number.value, number.deviation):
                if part is not None and literal(part) is None:
                    cells.report(mistakes.claim_without_number(part.span, of_row=True))
                    sound = False
            if number.deviation is not None and (literal(number.deviation) or 0) < 0:
                cells.report(mistakes.negative_deviation(number.deviation.span, of_row=True))
                sound = False
    return sound


def _have_number_for_each_column(cells: CellPlanner, rows: Sequence[Row], parts: TableParts) -> bool:
    """Returns whether each row that claims numbers has as many as there are columns; reports if not, rows with equal
    counts once if no row has the right one: a column is missing, or too many."""
    if not parts.columns or not parts.is_sound:
        return False  # which was reported
    wrong: dict[int, list[Row]] = {}
    is_any_right = False
    for row in rows:
        if row.published is not None and len(row.published.cells) == len(parts.columns):
            is_any_right = True
        elif row.published is not None:
            wrong.setdefault(len(row.published.cells), []).append(row)
    for count, same in wrong.items():
        for row in same if is_any_right else same[:1]:
            assert row.published is not None, "it claims numbers"
            last = row.published.cells[-1].span if row.published.cells else None
            others = 0 if is_any_right else len(same) - 1
            span = row.published.span
            cells.report(
                mistakes.wrong_number_of_claims(span, row.title, count, len(parts.columns), last, others=others)
            )
    return not wrong


def _check_best_of(cells: CellPlanner, rows: Sequence[Row], columns: Sequence[Column]) -> bool:
    """Returns whether the recipes vary each static after `best of`, and no row or column sets it; reports if not."""
    sound = True
    # Rows of one recipe with equal settings are checked once.
    distinct: dict[object, tuple[str, Row]] = {}
    for row in rows:
        if row.recipe is not None:
            best_of = tuple(path.text for path in row.best_of)
            distinct.setdefault((row.recipe, settings_text(row.at), best_of), (row.recipe, row))
    columns_with_best = [column for column in columns if column.best_of]
    for recipe, row in distinct.values():
        planner = cells.planner(recipe)
        if planner is None:
            continue
        varied = [static.path.text for static in planner.varied if static.path.text != "seed"]
        for column in columns if row.best_of else columns_with_best:
            paths = (*row.best_of, *column.best_of)
            report_repeated(paths, cells.report)
            settings = {setting.path.text: setting for setting in (*row.at, *column.at)}
            for path in paths:
                if path.text not in varied:
                    is_static = planner.recipe.has_static(path)
                    if is_static and _knows_what_varies(planner):
                        cells.report(mistakes.not_varied(path.span, path.text, recipe, varied))
                    sound = False
                elif path.text in settings:
                    cells.report(mistakes.best_of_a_setting(path.span, path.text, settings[path.text].span))
                    sound = False
    return sound


def _check_trainings(cells: CellPlanner, columns: Sequence[Column]) -> None:
    """Warns of columns that train each row again although they differ only in what is evaluated."""
    by_training: dict[frozenset[tuple[str, str]], dict[frozenset[tuple[str, str]], Setting | None]] = {}
    for column in columns:
        settings = [setting for setting in column.at if not is_group(setting)]
        evaluated = [setting for setting in settings if _OF_TESTS.fullmatch(setting.path.text)]
        tests = by_training.setdefault(_texts(settings) - _texts(evaluated), {})
        tests.setdefault(_texts(evaluated), evaluated[0] if evaluated else None)
    for tests in by_training.values():
        setting = next(filter(None, tests.values()), None)
        if setting is not None and len(tests) > 1:
            cells.report(mistakes.trained_again(setting.path.span, setting.path.text, len(tests)))


def _knows_what_varies(planner: Planner) -> bool:
    """Whether no base of a recipe, and no static that it varies, is unknown."""
    recipe = planner.recipe
    return recipe.parts.is_whole and all(recipe.parameter(part.path.text) for part in recipe.parts.vary)


def _check_metric(cells: CellPlanner, plan: Plan | None, column: Column) -> None:
    """Reports a column whose metric or groups the run of a cell does not measure."""
    if plan is not None and plan.measures is not None:
        plan.measures.check(column.metric.span, column.metric.text, cells.report)
        for setting in filter(is_group, column.at):
            plan.measures.check_group(setting.path, column.metric.text, cells.report, plan.settings)
        if column.index is not None or any(map(is_group, column.at)):
            _check_group_values(cells, plan.measures, column)


def _check_group_values(cells: CellPlanner, measures: Measures, column: Column) -> None:
    """Reports groups of a column that its split does not have."""
    metric, resolved = column.metric.text, _resolve_column(cells, column)
    spans = {setting.path.text.partition(".")[2]: setting.value.span for setting in column.at if is_group(setting)}
    groups = [(spans[group], group, value) for group, value in resolved.groups.items()]
    if column.index is not None and resolved.index is not None:
        groups.append((column.index.span, measures.breakdown, resolved.index))
    for span, group, value in groups:
        if not measures.has_group(metric, group, value):
            cells.report(measures.absent_group(span, metric, group, value))


def _sound_parts(cells: CellPlanner, table: Table) -> tuple[list[Row], list[Column], bool]:
    """Returns the rows and columns that agree, with known recipes and metrics, and whether these are all; reports the
    others."""
    parts = read_table(table, cells.report)
    are_sound = _has_parts(cells, table, parts.rows, "row", 'row "NDR" ndr')
    are_sound &= parts.is_sound and _has_parts(cells, table, parts.columns, "column", _EXAMPLE_OF_COLUMN)
    are_sound &= _are_distinct(cells, parts.columns)
    columns = []
    for column in parts.columns:
        if column.average:
            if _averaged_table(cells, column) is not None:
                columns.append(column)
        elif len(column.metric.parts) != 2:
            cells.report(mistakes.bad_metric(column.metric.span, column.metric.text))
        elif _is_without_groups(column.metric) and (column.index is not None or any(map(is_group, column.at))):
            what = "run" if column.metric.parts[0] == RUN else "split"
            cells.report(mistakes.measured_as_a_whole(column.metric.span, column.metric.text, what))
        else:
            columns.append(column)
    recipes, rows = cells.file.recipes, []
    for row in parts.rows:
        if row.recipe is not None and row.recipe not in recipes:
            cells.report(mistakes.unknown_recipe(row.recipe_span or row.span, row.recipe, recipes, None))
        elif _has_statics_only(cells, row):
            rows.append(row)
    agreeing = _columns_that_agree(cells, rows, columns)
    are_sound &= len(rows) == len(parts.rows) and len(agreeing) == len(parts.columns)
    return rows, agreeing, are_sound


def _has_statics_only(cells: CellPlanner, row: Row) -> bool:
    """Returns whether no setting of a row is a group of items or an unknown name; reports if one is."""
    settings = list(filter(is_group, row.at))
    planner = cells.planner(row.recipe) if settings and row.recipe is not None else None
    if planner is None:
        return not settings
    for setting in settings:
        path = setting.path
        if len(path.parts) == 1 or did_you_mean(path.text, planner.recipe.parameters):
            planner.recipe.has_static(path)
        else:
            cells.report(mistakes.group_in_row(path.span, path.text))
    return not settings


def _is_without_groups(metric: Name) -> bool:
    return metric.parts[0] == RUN or metric.parts[1] == "loss"


def _rows_and_metrics(cells: CellPlanner, table: Table) -> tuple[list[Row], list[Column]]:
    """Returns the sound rows and columns of a table without its averages, which other tables check."""
    rows, columns, _ = _sound_parts(cells, table)
    return rows, [column for column in columns if not column.average]


def _columns_that_agree(cells: CellPlanner, rows: Sequence[Row], columns: Sequence[Column]) -> list[Column]:
    """Returns the columns that set no static to another value than a row; reports, for each setting of a column, the
    first row that contradicts it."""
    # Rows with equal settings of one recipe are compared once.
    rows_by_path: dict[str, dict[tuple[str, str], tuple[Row, Setting]]] = {}
    for row in rows:
        for setting in row.at:
            if row.recipe is not None and not is_group(setting):
                distinct = rows_by_path.setdefault(setting.path.text, {})
                distinct.setdefault((row.recipe, expression_text(setting.value)), (row, setting))
    agreeing = []
    for column in columns:
        agrees = True
        for setting in () if column.average else column.at:
            path, text = setting.path.text, expression_text(setting.value)
            for (recipe, row_text), (row, row_setting) in rows_by_path.get(path, {}).items():
                if row_text != text and not cells.have_equal_values(recipe, row_setting, setting):
                    cells.report(
                        mistakes.row_contradicts_column(row.title, row_setting.span, column.title, setting.span, path)
                    )
                    agrees = False
                    break
        if agrees:
            agreeing.append(column)
    return agreeing


def _has_parts(cells: CellPlanner, table: Table, parts: Sequence[Row | Column], word: str, example: str) -> bool:
    """Returns whether a table has rows (or columns) with different titles; reports if not."""
    if not parts:
        if table.is_whole:
            cells.report(mistakes.empty_table(table.name_span, table.name, word, example, table.span))
        return False
    first: dict[str, Span] = {}
    sound = True
    for part in parts:
        if part.title in first:
            cells.report(mistakes.title_twice(part.span, word, part.title, first[part.title]))
            sound = False
        first.setdefault(part.title, part.span)
    return sound


def _are_distinct(cells: CellPlanner, columns: Sequence[Column]) -> bool:
    """Returns whether no two columns with different titles show the same results; reports if not."""
    first: dict[object, Column] = {}
    sound = True
    for column in columns:
        index = None if column.index is None else expression_text(column.index)
        best_of = frozenset(path.text for path in column.best_of)
        results = column.average, column.metric.text, index, _texts(column.at), best_of
        earlier = first.setdefault(results, column)
        if earlier.title != column.title:
            cells.report(mistakes.column_twice(column.span, column.title, earlier.title, earlier.span))
            sound = False
    return sound


def _resolve_column(cells: CellPlanner, column: Column) -> TableColumn:
    def configure(call: object, target: object) -> Unknown:
        return Unknown("block")

    evaluator = Evaluator(lambda name: None, frozenset, cells.file, cells.report, configure)
    index = None if column.index is None else group_index(column.index, column.metric.text, evaluator, cells.report)
    groups = {
        setting.path.text.partition(".")[2]: group
        for setting in column.at
        if is_group(setting) and (group := plain(evaluator.value(setting.value, None))) is not None
    }
    return TableColumn(column.title, column.metric.text, index, groups)
