"""The cells of tables that had no mistake in an earlier text, so that they are not planned again."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from archlang.diagnostics import Diagnostic, Report
from archlang.diagnostics.effort import spend, spent
from archlang.plan.model_graphs import ModelGraphs

# The number of cells that are kept; then the old ones are forgotten.
_MOST_CELLS = 20_000


@dataclass
class SoundCells:
    """The cells without mistakes of the last texts of a file, by what they depend on: the steps that planning takes,
    without elaborations, and the elaborations."""

    model_graphs: ModelGraphs
    _cells: dict[Hashable, tuple[int, tuple[Hashable, ...]]] = field(default_factory=dict)

    def of_text(self, report: Report) -> "CellChecks":
        """Returns the checks of the cells of a text."""
        if len(self._cells) > _MOST_CELLS:
            self._cells.clear()
        return CellChecks(self._cells, self.model_graphs, report)


@dataclass
class CellChecks:
    """The checks of the cells of a text, which report to `report` by this object.

    Cells of one recipe share values, which the first cell computes, and whose mistakes it reports. So the first cell of
    each recipe is always planned, and the cells of a recipe are kept only until the first mistake."""

    cells: dict[Hashable, tuple[int, tuple[Hashable, ...]]]
    model_graphs: ModelGraphs
    report: Report
    _count: int = 0
    _planned: set[str] = field(default_factory=set)
    _with_mistakes: set[str] = field(default_factory=set)

    def __call__(self, diagnostic: Diagnostic) -> None:
        self._count += 1
        self.report(diagnostic)

    def check(self, recipe: str, key: Hashable, plan: Callable[[], bool]) -> None:
        """Checks a cell of a recipe by `plan`, which returns whether the cell has a plan, unless it is known to be
        sound. A known cell counts the steps of its check again."""
        steps, elaborations = self.cells.get(key, (0, None))
        if elaborations is not None and recipe in self._planned and self.model_graphs.count(elaborations):
            spend(steps)
            return
        count, before, elaborated = self._count, spent(), self.model_graphs.begin_cell()
        has_plan, is_first = plan(), recipe not in self._planned
        if self._count > count or not has_plan:
            self._with_mistakes.add(recipe)
        if has_plan:
            self._planned.add(recipe)
        if not is_first and recipe not in self._with_mistakes and elaborated.keys is not None:
            self.cells[key] = spent() - before - elaborated.steps, tuple(elaborated.keys)
