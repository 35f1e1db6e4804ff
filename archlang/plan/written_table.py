"""The plan of a `table` of the language."""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property

from archlang.errors import Span
from archlang.errors.effort import TooMuchWork
from archlang.errors.names import did_you_mean, is_typing_error
from archlang.graph.card import COSTS
from archlang.plan import mistakes
from archlang.plan.cells import CellPlanner, settings_text
from archlang.plan.claims import check_numbers, group_index, literal, written_number
from archlang.plan.measures import RUN, bad_metric, is_group, written_group
from archlang.plan.plan import Plan, PublishedResult, TableCell, TableColumn, TablePlan, TableRow
from archlang.plan.planner import Planner
from archlang.plan.recipe import report_repeated
from archlang.plan.variations import TableParts, read_table, spread
from archlang.resolve.evaluate import Evaluator
from archlang.resolve.resolve import ResolvedFile
from archlang.resolve.values import Unknown
from archlang.syntax.printer import unparse
from archlang.syntax.tree import Column, Name, Published, Row, Setting, Table

_HEADER = re.compile(r"^table[ \t]+([A-Za-z_]\w*)", re.MULTILINE)
_LARGEST_RATIO = 2
_EXAMPLE_OF_COLUMN = 'column "Longer" test.accuracy'


class WrittenTable:
    """A table of the language, with the planner of its cells, to whose report its mistakes go."""

    def __init__(self, cells: CellPlanner, table: Table) -> None:
        self._cells, self._table, self._report = cells, table, cells.report

    def check(self) -> bool:
        """Checks the rows and columns of the table, without its cells; returns whether all are sound."""
        (rows, all_columns), is_sound = self._sound_parts, self._is_sound
        columns = [column for column in all_columns if not column.average]
        is_sound &= self._check_averages()
        for column in columns:
            self._resolve_column(column)
        is_sound &= self._check_published()
        of_rows, of_columns = recipe_names(rows), recipe_names(columns)
        for column in columns:
            for recipe in of_rows if column.recipe is None else (column.recipe.text,):
                self._cells.has_statics(recipe, column.at)
        for row in rows:
            for recipe in of_columns if row.recipe is None else (row.recipe,):
                self._cells.has_statics(recipe, row.at if row.runs else ())
        is_sound &= self._check_best_of(columns)
        for settings in (*(row.at for row in rows), *(column.at for column in columns)):
            report_repeated(settings, self._report)
        return is_sound

    def check_cells(self) -> None:
        """Checks the cells of the table within the step budget, those with equal settings once; a warning counts those
        left out. Other tables check those of its averages."""
        rows, columns = self._sound_parts
        by_row = {(row.recipe, settings_text(row.at)): row for row in rows if row.runs}
        by_column: dict[object, list[Column]] = {}
        for column in columns:
            if not column.average:
                by_column.setdefault((column.recipe, settings_text(column.at)), []).append(column)
        row_settings, column_settings = list(by_row.values()), list(by_column.values())
        total = len(row_settings) * len(column_settings)
        checked = 0
        with suppress(TooMuchWork):
            for row_index, column_index in spread([len(row_settings), len(column_settings)]):
                row, columns = row_settings[row_index], column_settings[column_index]
                plan = self._cells.plan(_recipe(row, columns[0]) or "", (*row.at, *columns[0].at))
                for column in columns:
                    self._check_metric(plan, column)
                checked += 1
        if checked < total:
            name = self._table.name
            self._report(mistakes.points_left_out(self._table.name_span, name, "different cells", checked, total))

    def plan(self) -> TablePlan | None:
        """The plan of the table; None, and a report, if it has a mistake."""
        if not self.check():
            return None
        rows, columns = self._sound_parts
        averaged = {column.title: self._averaged_cells(column) for column in columns if column.average}
        resolved_columns = [
            self._resolve_column(column)
            if (cells_of_column := averaged.get(column.title)) is None
            else TableColumn(column.title, cells_of_column[0].column.metric)
            for column in columns
        ]
        resolved_rows = [TableRow(row.title, row.recipe, row.why) for row in rows]
        planned = []
        for row, resolved_row in zip(rows, resolved_rows, strict=True):
            for place, (column, resolved_column) in enumerate(zip(columns, resolved_columns, strict=True)):
                if (cells_of_column := averaged.get(column.title)) is not None:
                    cell: TableCell | None = _average(resolved_row, resolved_column, cells_of_column)
                else:
                    best_of = [path.text for path in (*row.best_of, *column.best_of)]
                    recipe, at = _recipe(row, column), (*row.at, *column.at)
                    best_by = column.best_by or row.best_by
                    by = "" if best_by is None else best_by.text
                    cell = self._cells.cell(resolved_row, resolved_column, recipe, at, best_of, by)
                    self._check_metric(cell.plans[0] if cell and cell.plans else None, column)
                if cell is not None and row.published is not None:
                    cell = replace(cell, claim=self._published_result(row.published, place, resolved_column))
                planned.append(cell)
        sound = tuple(cell for cell in planned if cell is not None)
        if len(sound) < len(planned) or None in averaged.values():
            return None
        return TablePlan(
            self._table.name, self._table.documentation, tuple(resolved_rows), tuple(resolved_columns), sound
        )

    # Rows and columns

    @cached_property
    def _parts(self) -> TableParts:
        parts = read_table(self._table, self._report)
        rows = tuple(row for row in parts.rows if self._cells.is_chosen(row.title))
        return replace(parts, rows=rows or parts.rows)

    @property
    def _is_sound(self) -> bool:
        rows, columns = self._sound_parts
        return self._are_titled and len(rows) == len(self._parts.rows) and len(columns) == len(self._parts.columns)

    @cached_property
    def _sound_parts(self) -> tuple[list[Row], list[Column]]:
        """The rows and columns that agree, with known recipes and metrics; reports the others."""
        columns = []
        for column in self._parts.columns:
            metric = column.metric
            if column.average:
                columns += [column] * (id(column) in self._averaged)
            elif len(metric.parts) != 2:
                self._report(bad_metric(metric))
            elif (metric.parts[0] == RUN or metric.parts[1] == "loss") and (
                (column.index is not None and metric.parts[1] not in COSTS) or any(map(is_group, column.at))
            ):
                what = "run" if metric.parts[0] == RUN else "split"
                self._report(mistakes.measured_as_a_whole(metric.span, metric.text, what))
            elif column.recipe is None or self._is_recipe(column.recipe.text, column.recipe.span):
                columns.append(column)
        rows = [
            row
            for row in self._parts.rows
            if (row.recipe is None or self._is_recipe(row.recipe, row.recipe_span or row.span))
            and self._has_statics_only(row)
        ]
        return rows, self._columns_that_agree(rows, columns)

    def _is_recipe(self, name: str, span: Span) -> bool:
        recipes = self._cells.file.recipes
        if name not in recipes:
            self._report(mistakes.unknown_recipe(span, name, recipes, None))
        return name in recipes

    @cached_property
    def _are_titled(self) -> bool:
        """Whether the table has rows and columns with different titles; reports if not."""
        is_sound = self._has_distinct_titles(self._parts.rows, "row", 'row "NDR" ndr')
        return (
            self._parts.is_sound
            and self._has_distinct_titles(self._parts.columns, "column", _EXAMPLE_OF_COLUMN)
            and is_sound
        )

    def _has_distinct_titles(self, parts: Sequence[Row | Column], word: str, example: str) -> bool:
        table = self._table
        if not parts:
            self._report(
                mistakes.empty_table(
                    table.name_span, table.name, word, example, table.span if word == "column" else None
                )
            )
        first: dict[str, Span] = {}
        for part in parts:
            if part.title in first:
                self._report(mistakes.title_twice(part.span, word, part.title, first[part.title]))
            first.setdefault(part.title, part.span)
        return bool(parts) and len(first) == len(parts)

    def _has_statics_only(self, row: Row) -> bool:
        """Returns whether no setting of a row is a group of items or an unknown name; reports if one is."""
        settings = list(filter(is_group, row.at))
        recipe = row.recipe or next(iter(recipe_names(self._parts.columns)), "")
        planner = self._cells.planner(recipe) if settings and recipe in self._cells.file.recipes else None
        if planner is None:
            return not settings
        for path in [setting.path for setting in settings]:
            if len(path.parts) == 1 or did_you_mean(path.text, planner.recipe.parameters):
                planner.recipe.has_static(path)
            else:
                self._report(mistakes.group_in_row(path.span, path.text))
        return not settings

    def _columns_that_agree(self, rows: Sequence[Row], columns: Sequence[Column]) -> list[Column]:
        """Returns the columns whose cells have one recipe, and that set no static to another value than a row;
        reports, for each setting of a column, the first row that contradicts it."""
        # Rows with equal settings of one recipe are compared once.
        rows_by_path: dict[str, dict[tuple[str | None, str], tuple[Row, Setting]]] = {}
        for row in rows:
            for setting in row.at:
                if row.runs and not is_group(setting):
                    distinct = rows_by_path.setdefault(setting.path.text, {})
                    distinct.setdefault((row.recipe, unparse(setting.value)), (row, setting))
        running = {row.recipe is None: row for row in reversed(rows) if row.runs}
        agreeing = []
        for column in columns:
            row_at_odds = None if column.average else running.get(column.recipe is None)
            if row_at_odds is not None:
                span, name = column.metric.span if column.recipe is None else column.recipe.span, row_at_odds.title
                has_two = column.recipe is not None
                self._report(mistakes.not_one_recipe(span, name, row_at_odds.span, column.title, has_two))
            agrees = row_at_odds is None
            for setting in () if column.average else column.at:
                path, text = setting.path.text, unparse(setting.value)
                for (_, row_text), (row, row_setting) in rows_by_path.get(path, {}).items():
                    one = _recipe(row, column)
                    if row_text != text and one and not self._cells.have_equal_values(one, row_setting, setting):
                        self._report(
                            mistakes.row_contradicts_column(
                                setting.span, row.title, row_setting.span, column.title, path
                            )
                        )
                        agrees = False
                        break
            agreeing += [column] * agrees
        return agreeing

    def _resolve_column(self, column: Column) -> TableColumn:
        file, report = self._cells.file, self._report
        evaluator = Evaluator(lambda name: None, frozenset, file, report, lambda *block: Unknown("block"))
        metric, index = column.metric.text, None
        if column.index is not None:
            index = group_index(column.index, metric, evaluator, self._report)
            if index is not None and index < 1 and column.metric.parts[0] == RUN:
                self._report(mistakes.not_a_length(column.index.span, metric))
        groups = {
            setting.path.text.partition(".")[2]: group
            for setting in column.at
            if is_group(setting) and (group := written_group(setting, evaluator)) is not None
        }
        return TableColumn(column.title, metric, index, groups)

    # Averages

    @cached_property
    def _averaged(self) -> Mapping[int, tuple[ResolvedFile, Table, frozenset[str]]]:
        """The tables that columns average, with their files and the titles of those of their columns that have the
        settings of the average, by the ids of the columns."""
        columns = [column for column in self._parts.columns if column.average]
        averaged = {id(column): self._averaged_by(column) for column in columns}
        return {column: table for column, table in averaged.items() if table is not None}

    def _averaged_by(self, column: Column) -> tuple[ResolvedFile, Table, frozenset[str]] | None:
        """The table that a column averages; None, and a report, if there is none or it has averages."""
        name, span, file = column.metric.text, column.metric.span, self._cells.file
        table = file.find_table(name)
        if table is None:
            written = _HEADER.findall(file.program.source.text)  # also those that cannot be parsed
            self._report(mistakes.unknown_table(span, name, {*file.tables, *written, *file.used_tables}, None))
            return None
        if averages(table[1]):
            self._report(mistakes.average_of_averages(span, name))
            return None
        averaged = WrittenTable(self._cells, table[1])
        settings, columns = _texts(column.at), averaged._parts.columns
        titles = frozenset(each.title for each in columns if settings <= _texts(each.at))
        metrics = list(dict.fromkeys(each.metric.parts[-1] for each in columns if each.title in titles))
        if not averaged._parts.is_sound and not titles:
            return None
        if not columns:
            averaged._has_distinct_titles(columns, "column", _EXAMPLE_OF_COLUMN)
        elif not titles:
            possible = sorted({" = ".join(setting) for each in columns for setting in _texts(each.at)})
            self._report(mistakes.no_such_column(column.at[0].span, name, possible))
        elif len(metrics) > 1:
            self._report(mistakes.average_of_metrics(span, name, metrics))
        else:
            return *table, titles
        return None

    def _check_averages(self) -> bool:
        """Returns whether each row has a row of the same title in the tables that are averaged, and no settings if all
        columns are averages; reports if not."""
        rows, columns = self._sound_parts
        sound = True
        tables = [self._averaged[id(column)][1] for column in columns if column.average]
        titles = {id(table): [part.title for part in table.parts if isinstance(part, Row)] for table in tables}
        # A title that is there twice stands in place of another, which is then missing.
        complete = [table for table in tables if len(set(titles[id(table)])) == len(titles[id(table)])]
        checked: set[str] = set()
        for row in rows if tables else ():
            missing = [table for table in complete if row.title not in titles[id(table)] and row.title not in checked]
            checked.add(row.title)
            if not row.runs:
                # A row of prior work needs none, but the title may have a typing error.
                possible = sorted({title for table in missing for title in titles[id(table)]})
                near = did_you_mean(row.title, possible)
                is_mistake = near is not None and not row.why and is_typing_error(row.title, near, possible)
                missing = missing if is_mistake and len(missing) == len(tables) else []
            elif len(tables) == len(columns) and (row.at or row.best_of):
                settings = row.at or row.best_of
                span = settings[0].span.to(settings[-1].span)
                self._report(mistakes.settings_of_averages(span, "at" if row.at else "best of"))
                sound = False
            for table in missing[:1]:
                mistake = mistakes.no_averaged_row(row.span, table.name, row.title, sorted({*titles[id(table)]}))
                self._report(replace(mistake, is_safe=False))  # similar titles may be meant, as “Model 1” and “Model 2”
                sound = False
        return sound

    def _averaged_cells(self, column: Column) -> Sequence[TableCell] | None:
        """The cells of all rows that a column averages; None, and a report, if one has a mistake."""
        file, table, titles = self._averaged[id(column)]
        plan = WrittenTable(self._cells.of(file), table).plan()
        return None if plan is None else [cell for cell in plan.cells if cell.column.title in titles]

    # Published numbers

    def _published_result(self, published: Published, place: int, column: TableColumn) -> PublishedResult | None:
        """What a row claims in a column; None if it has no number there."""
        number = published.cells[place]
        value = None if number.value is None else literal(number.value)
        if number.value is None or value is None:
            return None
        deviation = None if number.deviation is None else literal(number.deviation)
        origin = self._table.origin if published.origin is None else published.origin
        written = written_number(number.value, number.deviation)
        return PublishedResult(
            column.metric, column.index, value, deviation, {}, origin, published.median, written=written
        )

    def _check_published(self) -> bool:
        columns = self._parts.columns
        if not columns or not self._parts.is_sound:
            return False  # which was reported
        sound = True
        for row in self._sound_parts[0]:
            if row.published is None:
                continue
            numbers = row.published.cells
            if len(numbers) != len(columns):
                span = row.published.span
                self._report(mistakes.wrong_number_of_claims(span, row.title, len(numbers), len(columns)))
                sound = False
                continue
            # A row of prior work may have ratios, such as that of two accuracies, which are not in per cent either.
            most = 1 if row.runs else _LARGEST_RATIO
            for column, number in zip(columns, numbers, strict=True):
                pair = number.value, number.deviation
                sound &= check_numbers(column.metric.text, pair, self._report, most=most, of_row=True)
        return sound

    # Values and groups

    def _check_best_of(self, columns: Sequence[Column]) -> bool:
        """Returns whether the recipes vary each static after `best of`, and no row or column sets it; reports if
        not."""
        sound = True
        # Rows of one recipe with equal settings are checked once.
        distinct: dict[object, Row] = {}
        for row in self._sound_parts[0]:
            if row.runs:
                best_of = tuple(path.text for path in row.best_of)
                distinct.setdefault((row.recipe, settings_text(row.at), best_of), row)
        columns_with_best = [column for column in columns if column.best_of]
        for row in distinct.values():
            for column in columns if row.best_of else columns_with_best:
                recipe = _recipe(row, column) or ""
                planner = self._cells.planner(recipe)
                if planner is None:
                    continue
                varied = [static.path.text for static in planner.varied if static.path.text != "seed"]
                paths = (*row.best_of, *column.best_of)
                report_repeated(paths, self._report)
                settings = {setting.path.text: setting for setting in (*row.at, *column.at)}
                best_by, measures = column.best_by or row.best_by, planner.measures(planner.first_point())
                if best_by is not None and measures is not None:
                    measures.check(best_by.span, best_by.text, self._report)
                for path in paths:
                    if path.text in varied and path.text not in settings:
                        continue
                    sound = False
                    if path.text in varied:
                        self._report(mistakes.best_of_a_setting(path.span, path.text, settings[path.text].span))
                    elif planner.recipe.has_static(path) and _knows_what_varies(planner):
                        self._report(mistakes.not_varied(path.span, path.text, recipe, varied))
        return sound

    def _check_metric(self, plan: Plan | None, column: Column) -> None:
        """Reports a column whose metric or groups the run of a cell does not measure, or its split does not have."""
        if plan is None or plan.measures is None:
            return
        measures, metric, groups = plan.measures, column.metric.text, list(filter(is_group, column.at))
        measures.check(column.metric.span, metric, self._report)
        for setting in groups:
            measures.check_group(setting.path, metric, self._report, plan.settings)
        if column.index is None and not groups:
            return
        resolved = self._resolve_column(column)
        spans = {setting.path.text.partition(".")[2]: setting.value.span for setting in groups}
        values = [(spans[group], group, value) for group, value in resolved.groups.items()]
        if column.index is not None and resolved.index is not None:
            values.append((column.index.span, measures.breakdown, resolved.index))
        for span, group, value in values:
            if not measures.has_group(metric, group, value):
                self._report(measures.absent_group(span, metric, group, value))


def _recipe(row: Row, column: Column) -> str | None:
    """The recipe of a cell; None if nothing runs."""
    return row.recipe or (column.recipe.text if row.runs and column.recipe is not None else None)


def recipe_names(parts: Iterable[Row | Column]) -> list[str]:
    """The recipes that rows or columns name, each once."""
    names = (part.recipe.text if isinstance(part.recipe, Name) else part.recipe for part in parts)
    return [*dict.fromkeys(name for name in names if name is not None)]


def averages(table: Table) -> list[Column]:
    """The columns of a table that are averages."""
    return [part for part in table.parts if isinstance(part, Column) and part.average]


def _texts(settings: Sequence[Setting]) -> frozenset[tuple[str, str]]:
    return frozenset((setting.path.text, unparse(setting.value)) for setting in settings)


def _average(row: TableRow, column: TableColumn, cells_of_column: Sequence[TableCell]) -> TableCell:
    """The average of those cells whose row has the same title; without plans if they cannot run."""
    averaged = tuple(cell for cell in cells_of_column if cell.row.title == row.title)
    if not all(cell.plans for cell in averaged):
        return TableCell(row, column, (), None)
    plans = {id(averaged_plan): averaged_plan for cell in averaged for averaged_plan in cell.plans}
    return TableCell(row, column, tuple(plans.values()), None, averaged=averaged)


def _knows_what_varies(planner: Planner) -> bool:
    """Whether no static that a recipe varies is unknown."""
    recipe = planner.recipe
    return all(recipe.parameter(part.path.text) for part in recipe.parts.vary)
