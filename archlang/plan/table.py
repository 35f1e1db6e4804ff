"""A table with everything resolved: rows, columns, and the runs behind each cell."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from archlang.plan.plan import Plan, PublishedResult
from archlang.types.statics import StaticValue


@dataclass(frozen=True)
class TableRow:
    """A row with the recipe that it runs. A row without a recipe has the reason in `why`, or published numbers only."""

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

    @property
    def has_groups(self) -> bool:
        """Whether the column is about a part of its split."""
        return self.index is not None or bool(self.groups)


@dataclass(frozen=True)
class CellOption:
    """A point of a cell that shows the best of several, with a plan for each seed; `title` as `scaling = none`."""

    title: str
    plans: tuple[Plan, ...]


@dataclass(frozen=True)
class TableCell:
    """A cell with a plan for each seed, empty if its row has no recipe, and the published result of the cell. A cell
    that shows the best of several points has `options`, and one that shows an average the `averaged` cells of another
    table; both have the plans of all."""

    row: TableRow
    column: TableColumn
    plans: tuple[Plan, ...]
    claim: PublishedResult | None
    options: tuple[CellOption, ...] = ()
    averaged: tuple["TableCell", ...] = ()

    @property
    def is_published_only(self) -> bool:
        """Whether no run makes the cell."""
        return self.row.recipe is None and not self.plans


@dataclass(frozen=True)
class TablePlan:
    """A table with everything resolved. `cells` are in the order of the rows."""

    name: str
    documentation: tuple[str, ...]
    rows: tuple[TableRow, ...]
    columns: tuple[TableColumn, ...]
    cells: tuple[TableCell, ...]

    @property
    def origins(self) -> tuple[str, ...]:
        """The sources of the published numbers that name one, each once."""
        claims = (cell.claim for cell in self.cells)
        return tuple(dict.fromkeys(claim.origin for claim in claims if claim is not None and claim.origin))

    @property
    def plans(self) -> tuple[Plan, ...]:
        """Every run of the table once: the first seed of each cell, then the second seeds, and so on."""
        ranked = sorted(
            ((rank, order, plan) for order, cell in enumerate(self.cells) for rank, plan in enumerate(cell.plans)),
            key=lambda entry: entry[:2],
        )
        return tuple({id(plan): plan for _, _, plan in ranked}.values())
