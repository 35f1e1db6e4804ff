"""Points of recipes and tables with everything resolved: all that runs need, without syntax trees."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from archlang.errors import Source
from archlang.graph.card import COSTS
from archlang.graph.graph import Graph
from archlang.plan.measures import Measures
from archlang.plugins import NO_PLUGINS, Plugins
from archlang.types.statics import StaticValue


@dataclass(frozen=True)
class BoundExtern:
    """A task or an optimizer with a value for each of its statics, defaults filled in. `python` is "module:Class"."""

    name: str
    python: str
    statics: Mapping[str, StaticValue]


@dataclass(frozen=True)
class PublishedResult:
    """A `claim`. `metric` is `split.metric`, such as `test.accuracy`; `index` is a group of the breakdown, such as a
    length; `at` are the statics and groups to which the result belongs, by dotted path. The value is the median over
    seeds if `median`, else the mean. `is_of_row` if a row of a table claims it, and not the recipe. `written` has the
    numbers with the digits of the program; empty if they are unknown."""

    metric: str
    index: int | None
    value: float
    deviation: float | None
    at: Mapping[str, StaticValue]
    origin: str
    median: bool = False
    is_of_row: bool = False
    written: str = field(default="", compare=False)

    @property
    def text(self) -> str:
        """The number as papers print it, such as `0.84 ± 0.01` or `median 1.00`."""
        if self.written:
            return f"{'median ' if self.median else ''}{self.written}"
        return published_text(self.value, self.deviation, self.median)


def published_text(value: float, deviation: float | None, median: bool) -> str:
    """A published number as papers print it.

    >>> published_text(0.84, 0.01, False), published_text(1, None, True)
    ('0.84 ± 0.01', 'median 1.00')"""
    return ("median " if median else "") + _printed(value) + ("" if deviation is None else f" ± {_printed(deviation)}")


def _printed(value: float) -> str:
    """A number with two decimals, or with more if it has more.

    >>> _printed(1), _printed(0.985)
    ('1.00', '0.985')"""
    return f"{value:.2f}" if round(value, 2) == value else f"{value:.6g}"


@dataclass(frozen=True)
class Plan:
    """One point of a recipe. `gives` are the sizes that the task fixes (`vocab`, `classes`). `at_test` is the graph
    with the statics of `test …`; without any it is the same object as `graph`. `settings` has every static by its
    dotted path (`task.order`, `model.d`, `train.lr`), and `seed`; `vary` has the values of each varied path. `plugins`
    are the Python files that the user trusts. `used` are the files that the program uses, directly or not; empty in a
    plan that comes from a run folder. `measures` are None where they are unknown before the run. `problems` are those
    that the task demands; empty in a plan that comes from a run folder."""

    recipe: str
    source: Source
    task: BoundExtern
    gives: Mapping[str, int]
    model: str
    graph: Graph
    at_test: Graph
    train: BoundExtern
    seed: int
    settings: Mapping[str, StaticValue]
    vary: Mapping[str, tuple[StaticValue, ...]]
    claims: tuple[PublishedResult, ...]
    plugins: Plugins = NO_PLUGINS
    used: tuple[Source, ...] = ()
    measures: Measures | None = None
    problems: frozenset[str] = frozenset()


@dataclass(frozen=True)
class TableRow:
    """A row with the recipe that it runs. A row without a recipe runs those of the columns, has the reason in `why`, or
    published numbers only."""

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
class CellOption:
    """A point of a cell that shows the best of several, with a plan for each seed; `title` as `scaling = none`."""

    title: str
    plans: tuple[Plan, ...]


@dataclass(frozen=True)
class TableCell:
    """A cell with a plan for each seed, empty if its row has no recipe, and the published result of the cell. A cell
    that shows the best of several points has `options`, of which it shows that whose metric `best_by`, or else its own,
    is the best, and one that shows an average the `averaged` cells of another table; both have the plans of all."""

    row: TableRow
    column: TableColumn
    plans: tuple[Plan, ...]
    claim: PublishedResult | None
    options: tuple[CellOption, ...] = ()
    best_by: str = ""
    averaged: tuple["TableCell", ...] = ()

    @property
    def is_published_only(self) -> bool:
        """Whether no run makes the cell."""
        return not self.plans and self.row.recipe is None


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
        """Every run of the table once: the first seed of each cell, then the second seeds, and so on. The costs of a
        model need none."""
        measured = [cell for cell in self.cells if cell.column.metric.removeprefix("run.") not in COSTS]
        ranked = sorted(
            ((rank, order, plan) for order, cell in enumerate(measured) for rank, plan in enumerate(cell.plans)),
            key=lambda entry: entry[:2],
        )
        return tuple({id(plan): plan for _, _, plan in ranked}.values())
