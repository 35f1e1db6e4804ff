"""From a table, or from recipes without one, to what has to be run for each of its cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import product

from archlang.diagnostics import Report
from archlang.diagnostics.effort import TooMuchWork
from archlang.elaborate.application import plain
from archlang.names.evaluate import Evaluator
from archlang.names.resolve import ResolvedFile
from archlang.names.values import (
    Unknown,
)
from archlang.plan import mistakes
from archlang.plan.grid import spread
from archlang.plan.plan import Plan, PublishedResult
from archlang.plan.recipe import Planner, parts_of
from archlang.source import Span
from archlang.syntax.expression_text import expression_text
from archlang.syntax.tree import Column, Expression, Name, Row, Setting, Table
from archlang.types import Dim
from archlang.types.statics import StaticValue

# Where neither a table nor a claim says what is measured.
_USUAL = "test.accuracy"


@dataclass(frozen=True)
class TableRow:
    """A row: the recipe that it runs, or None and why there is none."""

    title: str
    recipe: str | None
    why: str = ""


@dataclass(frozen=True)
class TableColumn:
    """A column: `metric` is `split.metric`; `index` a group of the task's breakdown, `groups` others by name."""

    title: str
    metric: str
    index: int | None = None
    groups: Mapping[str, StaticValue] = field(default_factory=dict)


@dataclass(frozen=True)
class TableCell:
    """What one cell measures: a plan for each seed (none in a row without a recipe), and what a paper claims of it."""

    row: TableRow
    column: TableColumn
    plans: tuple[Plan, ...]
    claim: PublishedResult | None


@dataclass(frozen=True)
class TablePlan:
    """A table with everything resolved; `cells` go row by row."""

    name: str
    documentation: tuple[str, ...]
    rows: tuple[TableRow, ...]
    columns: tuple[TableColumn, ...]
    cells: tuple[TableCell, ...]

    @property
    def plans(self) -> tuple[Plan, ...]:
        """Every run of the table once, in the order in which its cells need them: all first seeds first."""
        ranked = sorted(
            ((rank, order, plan) for order, cell in enumerate(self.cells) for rank, plan in enumerate(cell.plans)),
            key=lambda one: one[:2],
        )
        return tuple({id(plan): plan for _, _, plan in ranked}.values())


@dataclass
class TablePlanner:
    """Holds one table together. `seeds`, if any, go before those that the recipes vary."""

    file: ResolvedFile
    report: Report
    sets: Mapping[str, Setting] = field(default_factory=dict)
    seeds: Sequence[int] = ()

    def __post_init__(self) -> None:
        self._planners: dict[str, Planner] = {}
        self._plans: dict[tuple[str, tuple[tuple[str, str], ...]], tuple[Plan, ...]] = {}

    # Tables of the language

    def check(self, table: Table) -> None:
        """Checks the rows and columns of a table, without their cells."""
        if not self._sound(table):
            return
        rows, columns = _parts(table)
        for column in columns:
            self._column(column)
        for recipe in dict.fromkeys(row.recipe for row in rows if row.recipe is not None):
            self._knows(recipe, [setting for column in columns for setting in column.at])
        for row in rows:
            if row.recipe is not None:
                self._knows(row.recipe, row.at)

    def check_points(self, table: Table) -> None:
        """Checks the cells of a table, as many as there is work left for; a warning says if some are left out. Cells
        with the same settings count once."""
        if not self._sound(table):
            return
        rows, columns = _parts(table)
        row_settings = {(row.recipe, _text(row.at)): (row.recipe, row.at) for row in rows if row.recipe is not None}
        column_settings = {_text(column.at): column.at for column in columns}
        pairs = list(row_settings.values()), list(column_settings.values())
        total = len(row_settings) * len(column_settings)
        checked = 0
        with suppress(TooMuchWork):
            for row, column in spread([len(row_settings), len(column_settings)]):
                recipe, at = pairs[0][row]
                self._plan(recipe, [setting for setting in (*at, *pairs[1][column]) if not _is_group(setting)])
                checked += 1
        if checked < total:
            self.report(mistakes.points_left_out(table.name_span, table.name, "different cells", checked, total))

    def plan(self, table: Table) -> TablePlan | None:
        """A table's plan; None where something of it is reported."""
        if not self._sound(table):
            return None
        rows, columns = _parts(table)
        cells = []
        told = [self._column(column) for column in columns]
        for row in rows:
            known = TableRow(row.title, row.recipe, row.why)
            for column, measured in zip(columns, told, strict=True):
                cells.append(self._cell(known, measured, (*row.at, *column.at)))
        if any(cell is None for cell in cells):
            return None
        whole = tuple(cell for cell in cells if cell is not None)
        rows_ = tuple(dict.fromkeys((cell.row.title, cell.row) for cell in whole))
        return TablePlan(table.name, table.documentation, tuple(row for _, row in rows_), tuple(told), whole)

    def _sound(self, table: Table) -> bool:
        """Whether a table has rows and columns, of recipes and metrics that there are; reported if not."""
        rows, columns = _parts(table)
        sound = self._has(table, rows, "row", 'row "NDR" ndr')
        sound &= self._has(table, columns, "column", 'column "Longer" test.accuracy')
        for column in columns:
            if len(column.metric.parts) != 2:
                self.report(mistakes.bad_metric(column.metric.span, column.metric.text))
                sound = False
        for row in rows:
            if row.recipe is not None and row.recipe not in self.file.recipes:
                self.report(mistakes.unknown_recipe(row.recipe_span or row.span, row.recipe, self.file.recipes))
                sound = False
        return sound

    def _has(self, table: Table, parts: Sequence[Row | Column], word: str, example: str) -> bool:
        if not parts:
            self.report(mistakes.empty_table(table.name_span, table.name, word, example))
            return False
        first: dict[str, Span] = {}
        sound = True
        for part in parts:
            known = first.setdefault(part.title, part.span)
            if known is not part.span:
                self.report(mistakes.title_twice(part.span, word, part.title, known))
                sound = False
        return sound

    def _column(self, column: Column) -> TableColumn:
        index = None if column.index is None else self._evaluator().value(column.index, "int")
        groups = {
            setting.path.text.partition(".")[2]: known
            for setting in column.at
            if _is_group(setting) and (known := self._group(setting.value)) is not None
        }
        number = index.constant if isinstance(index, Dim) else None
        return TableColumn(column.title, column.metric.text, number, groups)

    def _group(self, value: Expression) -> StaticValue | None:
        return plain(self._evaluator().value(value, None))

    def _evaluator(self) -> Evaluator:
        return Evaluator(lambda name: None, frozenset, self.file, self.report, lambda call, target: Unknown("block"))

    # Tables that nobody wrote

    def of_recipes(self, names: Sequence[str] = ()) -> TablePlan | None:
        """A row for each point of `vary` of the recipes, and a column for each metric that a claim is about."""
        found: list[tuple[TableRow, tuple[Setting, ...]]] = []
        for name in names or self.file.recipes:
            planner = self._planner(name)
            if planner is None:
                return None
            varied = [(path, values) for path, values in planner.variations if path.text != "seed"]
            for chosen in product(*(values for _, values in varied)):
                at = tuple(_setting(path, value) for (path, _), value in zip(varied, chosen, strict=True))
                shown = ", ".join(f"{one.path.parts[-1]} = {expression_text(one.value)}" for one in at)
                found.append((TableRow(f"{name}, {shown}" if shown else name, name), at))
        columns = self._claimed(tuple(names or self.file.recipes))
        cells = [self._cell(row, column, at) for row, at in found for column in columns]
        if any(cell is None for cell in cells):
            return None
        title = names[0] if len(names) == 1 else "recipes"
        return TablePlan(
            title, (), tuple(row for row, _ in found), columns, tuple(cell for cell in cells if cell is not None)
        )

    def _claimed(self, names: Sequence[str]) -> tuple[TableColumn, ...]:
        columns: dict[str, TableColumn] = {}
        for name in names:
            planner = self._planner(name)
            plan = None if planner is None else planner.plan(planner.first_point())
            if plan is None:
                continue
            for claim in plan.claims:
                groups = _groups(claim, plan)
                title = claim.metric + ("" if claim.index is None else f"[{claim.index}]")
                title += "".join(f", {group} = {value}" for group, value in groups.items())
                columns.setdefault(title, TableColumn(title, claim.metric, claim.index, groups))
        return tuple(columns.values()) or (TableColumn(_USUAL, _USUAL),)

    # Cells

    def _cell(self, row: TableRow, column: TableColumn, at: Sequence[Setting]) -> TableCell | None:
        if row.recipe is None:
            return TableCell(row, column, (), None)
        plans = self._points(row.recipe, at)
        return TableCell(row, column, plans, _claim(plans[0], column)) if plans else None

    def _points(self, recipe: str, at: Sequence[Setting]) -> tuple[Plan, ...]:
        """The plans of a recipe with these settings, one for each seed; none where something is wrong with them."""
        settings = [setting for setting in at if not _is_group(setting)]
        key = recipe, _text(settings)
        if key not in self._plans:
            self._plans[key] = tuple(self._seeded(recipe, settings))
        return self._plans[key]

    def _seeded(self, recipe: str, settings: Sequence[Setting]) -> Iterator[Plan]:
        plan = self._plan(recipe, settings)
        if plan is None:
            return
        seeds = self.seeds or [seed for seed in plan.vary.get("seed", ()) if isinstance(seed, int)]
        if "seed" in self.sets or any(setting.path.text == "seed" for setting in settings):
            seeds = []
        for seed in seeds or [plan.seed]:
            yield replace(plan, seed=seed, settings={**plan.settings, "seed": seed})

    def _plan(self, recipe: str, settings: Sequence[Setting]) -> Plan | None:
        """The plan of a recipe with these settings and its first seed; None where something is wrong with them."""
        planner = self._planner(recipe)
        if planner is None or not self._knows(recipe, settings):
            return None
        return planner.plan({**planner.first_point(), **{setting.path.text: setting for setting in settings}})

    def _knows(self, recipe: str, settings: Sequence[Setting]) -> bool:
        """Whether a recipe has each of these statics; each that it has not is reported."""
        planner = self._planner(recipe)
        if planner is None:
            return False
        known = [planner.knows(setting.path) for setting in settings if not _is_group(setting)]
        return all(known)

    def _planner(self, name: str) -> Planner | None:
        if name not in self._planners:
            recipe = self.file.recipes.get(name)
            if recipe is None:
                self.report(mistakes.unknown_recipe(Span(self.file.program.source, 0, 0), name, self.file.recipes))
                return None
            planner = Planner(self.file, parts_of(recipe, self.report), self.report, self.sets)
            planner.check_paths()
            self._planners[name] = planner
        return self._planners[name]


def _parts(table: Table) -> tuple[list[Row], list[Column]]:
    rows = [part for part in table.parts if isinstance(part, Row)]
    return rows, [part for part in table.parts if isinstance(part, Column)]


def _text(settings: Sequence[Setting]) -> tuple[tuple[str, str], ...]:
    """Settings of statics as text, so that those that mean the same are equal."""
    return tuple(sorted((one.path.text, expression_text(one.value)) for one in settings if not _is_group(one)))


def _is_group(setting: Setting) -> bool:
    """Whether it names a group of a split (`test.ignore`), and no static of the recipe."""
    return setting.path.parts[0] not in ("task", "model", "train", "seed")


def _setting(path: Name, value: Expression) -> Setting:
    return Setting(path=path, value=value, span=value.span)


def _claim(plan: Plan, column: TableColumn) -> PublishedResult | None:
    """What a paper claims of a cell: of these statics, this metric and these groups."""
    for claim in plan.claims:
        conditions = [(path, value) for path, value in claim.at.items() if path in plan.settings]
        if (
            (claim.metric, claim.index) == (column.metric, column.index)
            and _groups(claim, plan) == dict(column.groups)
            and all(plan.settings[path] == value for path, value in conditions)
        ):
            return claim
    return None


def _groups(claim: PublishedResult, plan: Plan) -> dict[str, StaticValue]:
    """The groups of a split that a claim is about: what its `at` names that is no static of the recipe."""
    return {path.partition(".")[2]: value for path, value in claim.at.items() if path not in plan.settings}
