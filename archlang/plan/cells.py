"""The plans behind the cells of a table, each planned once."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import product

from archlang.errors import Report
from archlang.errors.effort import Memo
from archlang.errors.source import on_command_line
from archlang.plan import mistakes
from archlang.plan.measures import is_group
from archlang.plan.plan import CellOption, Plan, PublishedResult, TableCell, TableColumn, TablePlan, TableRow
from archlang.plan.planner import Planner, joined_recipe
from archlang.plugins import NO_PLUGINS, Plugins
from archlang.resolve.resolve import ResolvedFile
from archlang.syntax.printer import unparse
from archlang.syntax.tree import Recipe, Setting
from archlang.types.statics import StaticValue


@dataclass
class CellPlanner:
    """Plans cells of tables over the recipes of a file. `overrides` are settings of every recipe; `seeds`, if any,
    replace those that the recipes vary. Mistakes go to `report`. `plugins` are those of the plans. Tables have the rows
    alone whose titles match `only`, if there are such rows."""

    file: ResolvedFile
    report: Report
    overrides: Mapping[str, Setting] = field(default_factory=dict)
    seeds: Sequence[int] = ()
    plugins: Plugins = NO_PLUGINS
    only: Sequence[str] = ()
    # By the ids of the recipes, and whether their paths are checked.
    _planners: Memo[Planner] = field(default_factory=lambda: Memo(keeps_all=True), init=False, repr=False)
    _of_used_files: dict[int, "CellPlanner"] = field(default_factory=dict, init=False, repr=False)
    _plans: dict[tuple[str, tuple[tuple[str, str], ...]], tuple[Plan, ...]] = field(
        default_factory=dict, init=False, repr=False
    )
    _distinct_plans: dict[tuple[str, str], Plan] = field(default_factory=dict, init=False, repr=False)

    def cell(
        self,
        row: TableRow,
        column: TableColumn,
        recipe: str | None,
        at: Sequence[Setting],
        best_of: Sequence[str] = (),
        best_by: str = "",
        *,
        has_claims_of_rows: bool = False,
    ) -> TableCell | None:
        """A cell of a recipe with the settings `at`, or with the best, by a metric, of the values that the recipe gives
        to `best_of`; None, and a report, if the settings have a mistake. Its published result is that of a claim of the
        recipe, or, if it `has_claims_of_rows`, of a table's row about the recipe."""
        if recipe is None:
            return TableCell(row, column, (), None)
        of_rows = has_claims_of_rows
        best_of = [path for path in best_of if path not in self.overrides]
        if not best_of:
            plans = self._plans_of_each_seed(recipe, at)
            return TableCell(row, column, plans, _claim(plans[0], column, of_rows)) if plans else None
        planner = self.planner(recipe)
        options = tuple(
            CellOption(_title(point), self._plans_of_each_seed(recipe, (*at, *point)))
            for point in ([] if planner is None else _points(planner, best_of))
        )
        if not options or not all(option.plans for option in options):
            return None
        from archlang.tasks.kit.metrics import rank  # needs numpy

        metric = column.metric.partition(".")[2]
        claims = [claim for option in options if (claim := _claim(option.plans[0], column, of_rows)) is not None]
        claim = max(claims, key=lambda claim: rank(metric, claim.value), default=None)
        # The first seed of every option, then the second of every option, and so on.
        plans = tuple(plan for plans in zip(*(option.plans for option in options), strict=True) for plan in plans)
        return TableCell(row, column, plans, claim, options, best_by)

    def is_chosen(self, title: str) -> bool:
        """Whether a row with this title matches `only`."""
        return any(fnmatchcase(title, pattern) for pattern in self.only or "*")

    def of(self, file: ResolvedFile) -> "CellPlanner":
        """The planner of the cells of a file, with the same settings."""
        if file is self.file:
            return self
        if id(file) not in self._of_used_files:
            self._of_used_files[id(file)] = replace(self, file=file)
        return self._of_used_files[id(file)]

    def plan(self, recipe: str, at: Sequence[Setting]) -> Plan | None:
        """The plan of a recipe with the settings `at` and its first seed; None, and a report, if it has a mistake."""
        planner = self.planner(recipe)
        if planner is None or not self.has_statics(recipe, at):
            return None
        settings = {setting.path.text: setting for setting in at if not is_group(setting)}
        return planner.plan({**planner.first_point(), **settings})

    def has_statics(self, recipe: str, at: Sequence[Setting]) -> bool:
        """Returns whether a recipe has each static of `at`; reports unknown ones."""
        planner = self.planner(recipe)
        if planner is None:
            return False
        has_static = [planner.recipe.has_static(setting.path) for setting in at if not is_group(setting)]
        return all(has_static)

    def have_equal_values(self, recipe: str, left: Setting, right: Setting) -> bool:
        """Returns whether two settings of one static of a recipe have equal values; True, and a report, if the static
        is unknown or a value has a mistake."""
        planner = self.planner(recipe)
        if planner is None or not planner.recipe.has_static(left.path):
            return True
        parameter = planner.recipe.parameter(left.path.text)
        if parameter is None:
            return True
        values = [planner.recipe.value(parameter, setting.value) for setting in (left, right)]
        return None in values or values[0] == values[1]

    def planner(self, name: str) -> Planner | None:
        """The planner of a recipe; None, and a report, if the file has no recipe of this name."""
        recipe = self.file.recipes.get(name)
        if recipe is None:
            path = self.file.program.source.path
            self.report(mistakes.unknown_recipe(on_command_line(name), name, self.file.recipes, path))
            return None
        return self.checked_planner(recipe)

    def checked_planner(self, recipe: Recipe) -> Planner:
        """The planner of a recipe of the file, whose paths are checked."""

        def checked() -> Planner:
            planner = self.new_planner(recipe)
            planner.check_paths()
            return planner

        return self._planners.get((id(recipe), True), checked)

    def new_planner(self, recipe: Recipe) -> Planner:
        """The planner of a recipe of the file, whose paths need not be checked."""

        def planner() -> Planner:
            joined = joined_recipe(recipe, self.file, self.report)
            return Planner(joined, self.overrides, self.plugins)

        return self._planners.get((id(recipe), False), planner)

    def _plans_of_each_seed(self, recipe: str, at: Sequence[Setting]) -> tuple[Plan, ...]:
        key = recipe, settings_text(at)
        if key not in self._plans:
            self._plans[key] = tuple(self._plan_of_each_seed(recipe, at))
        return self._plans[key]

    def _plan_of_each_seed(self, recipe: str, at: Sequence[Setting]) -> Iterator[Plan]:
        plan = self.plan(recipe, at)
        if plan is None:
            return
        seeds = self.seeds or [seed for seed in plan.vary.get("seed", ()) if isinstance(seed, int)]
        if "seed" in self.overrides or any(setting.path.text == "seed" for setting in at):
            seeds = []
        for seed in seeds or [plan.seed]:
            settings = {**plan.settings, "seed": seed}
            # Cells whose settings differ only in what the recipe has anyway share a run.
            key = recipe, repr(sorted(settings.items()))
            yield self._distinct_plans.setdefault(key, replace(plan, seed=seed, settings=settings))


def settings_text(settings: Sequence[Setting]) -> tuple[tuple[str, str], ...]:
    """The statics of `settings` as sorted text: equal settings have equal texts."""
    return tuple(sorted((setting.path.text, unparse(setting.value)) for setting in settings if not is_group(setting)))


def _title(point: Sequence[Setting]) -> str:
    return ", ".join(f"{setting.path.parts[-1]} = {unparse(setting.value)}" for setting in point)


def claimed_groups(claim: PublishedResult, plan: Plan) -> dict[str, StaticValue]:
    """The groups of a split that a claim is about: the names in its `at` that are not statics of the recipe."""
    return {path.partition(".")[2]: value for path, value in claim.at.items() if path not in plan.settings}


def _points(planner: Planner, paths: Sequence[str]) -> Iterable[tuple[Setting, ...]]:
    """Every combination of the values that a recipe gives to varied statics."""
    return product(*(static.settings for static in planner.varied if static.path.text in paths))


def _claim(plan: Plan, column: TableColumn, of_rows: bool) -> PublishedResult | None:
    """The published result of a plan's statics in a column's metric and groups; None if there is none. The rows of
    tables are asked only if `of_rows`."""
    for claim in plan.claims:
        conditions = [(path, value) for path, value in claim.at.items() if path in plan.settings]
        if (
            (of_rows or not claim.is_of_row)
            and (claim.metric, claim.index) == (column.metric, column.index)
            and claimed_groups(claim, plan) == dict(column.groups)
            and all(plan.settings[path] == value for path, value in conditions)
        ):
            return claim
    return None


# The only column of a table whose recipes claim nothing, if the metrics of their tasks are unknown.
_DEFAULT_METRIC = "test.accuracy"


def plan_derived_table(cells: CellPlanner, names: Sequence[str] = ()) -> TablePlan | None:
    """The table of the recipes called `names`, or of all; None, and a report, if one has a mistake."""
    title = names[0] if len(names) == 1 else "recipes"
    names = names or tuple(cells.file.recipes)
    rows: list[tuple[TableRow, tuple[Setting, ...]]] = []
    planners: dict[str, Planner] = {}
    for name in names:
        recipe = cells.file.recipes.get(name)
        planner = cells.planner(name) if recipe is None else cells.new_planner(recipe)
        if planner is None:
            return None
        planners[name] = planner
        for point in _points(planner, [static.path.text for static in planner.varied if static.path.text != "seed"]):
            shown = _title(point)
            rows.append((TableRow(f"{name}, {shown}" if shown else name, name), point))
    rows = [row for row in rows if cells.is_chosen(row[0].title)] or rows
    names = [name for name in names if any(row.recipe == name for row, _ in rows)]
    for name in names:
        planners[name].check_paths()
    columns = _claimed_columns(cells, names)
    planned = [
        cells.cell(row, column, row.recipe, point, has_claims_of_rows=True) for row, point in rows for column in columns
    ]
    sound = tuple(cell for cell in planned if cell is not None)
    if len(sound) < len(planned):
        return None
    return TablePlan(title, (), tuple(row for row, _ in rows), columns, sound)


def _claimed_columns(cells: CellPlanner, names: Sequence[str]) -> tuple[TableColumn, ...]:
    columns: dict[str, TableColumn] = {}
    first_metrics: dict[str, None] = {}
    for name in names:
        planner = cells.planner(name)
        plan = None if planner is None else planner.plan(planner.first_point())
        if plan is None:
            continue
        first_metrics[_first_metric(plan)] = None
        for claim in plan.claims:
            groups = claimed_groups(claim, plan)
            title = claim.metric + ("" if claim.index is None else f"[{claim.index}]")
            title += "".join(f", {group} = {value}" for group, value in groups.items())
            columns.setdefault(title, TableColumn(title, claim.metric, claim.index, groups))
    return tuple(columns.values()) or tuple(TableColumn(metric, metric) for metric in first_metrics)


def _first_metric(plan: Plan) -> str:
    """The first metric of a task on `test`, or on its last split if it has no `test`."""
    if plan.measures is None:
        return _DEFAULT_METRIC
    statics = plan.task.statics
    # Of a user's files, those that are named; a column of the file may have others.
    named = [name for name in ("valid", "test") if statics.get(name) or statics.get(f"{name}_share")]
    splits = plan.measures.splits or named or ("test",)
    return f"{'test' if 'test' in splits else splits[-1]}.{plan.measures.metrics[1]}"  # after the loss
