"""The plan of a table that recipes imply: a row for each point, a column for each claimed metric."""

from collections.abc import Sequence
from itertools import product

from archlang.plan.cells import CellPlanner, claimed_groups
from archlang.plan.plan import Plan
from archlang.plan.table import TableColumn, TablePlan, TableRow
from archlang.syntax.expression_text import expression_text
from archlang.syntax.tree import Setting

# The only column of a table whose recipes claim nothing, if the metrics of their tasks are unknown.
_DEFAULT_METRIC = "test.accuracy"


def plan_derived_table(cells: CellPlanner, names: Sequence[str] = ()) -> TablePlan | None:
    """The table of the recipes called `names`, or of all; None, and a report, if one has a mistake."""
    title = names[0] if len(names) == 1 else "recipes"
    names = names or tuple(cells.file.recipes)
    rows: list[tuple[TableRow, tuple[Setting, ...]]] = []
    for name in names:
        planner = cells.planner(name)
        if planner is None:
            return None
        varied = [static for static in planner.varied if static.path.text != "seed"]
        for indices in product(*(range(len(static.values)) for static in varied)):
            point = tuple(static.setting(index) for static, index in zip(varied, indices, strict=True))
            shown = ", ".join(f"{setting.path.parts[-1]} = {expression_text(setting.value)}" for setting in point)
            rows.append((TableRow(f"{name}, {shown}" if shown else name, name), point))
    columns = _claimed_columns(cells, names)
    planned = [cells.cell(row, column, point, has_claims_of_rows=True) for row, point in rows for column in columns]
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
    splits = plan.measures.splits or ("test",)
    return f"{'test' if 'test' in splits else splits[-1]}.{plan.measures.metrics[1]}"  # after the loss
