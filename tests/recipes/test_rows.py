"""One point of every row of the papers' tables trains ten steps with the widths of its recipe, and fills its cells."""

from collections.abc import Iterator
from functools import cache
from math import isfinite
from pathlib import Path

import pytest

from archlang.plan.from_file import plan_first_point, plan_table
from archlang.plan.measures import is_group
from archlang.plan.plan import Plan, TablePlan
from archlang.plan.variations import read_table
from archlang.syntax.printer import unparse
from archlang.syntax.tree import Row, Table
from archlang.train.runs import training
from archlang.train.runs.points import folder_name
from archlang.train.runs.table import FinishedRun
from archlang.train.trainer import Watcher
from tests.recipes.papers import PROGRAMS, loaded
from tests.recipes.published_samples import use_samples, word_pieces

TEN_STEPS = {"train.steps": "10", "train.every": "10", "train.patience": "0", "train.batch": "4"}
# The statics besides the batch that are smaller than those of the recipes, by page, the pages with the fastest rows
# first: a row takes some seconds and less than two gigabytes. The widths are those of the recipes. Samples of published
# files are small themselves.
FEW = {"task.train_size": "200", "task.iid_size": "8", "task.valid_size": "4", "task.test_size": "4"}
REDUCED: dict[str, dict[str, str]] = {
    "panm/dyck": FEW,
    "devil/scan_length": {},
    "panm/scan": {},
    "devil/cfq": {},
    "ndr/table1": {**FEW, "task.train_size": "6_000"},
    "ndr/readout": {**FEW, "task.train_size": "6_000"},
    "ndr/steps": {**FEW, "task.train_size": "6_000"},
    "ndr/act": {**FEW, "task.train_size": "6_000"},
    "ndr/arithmetic": {**FEW, "task.train_size": "2_000"},
    "ndr/listops": FEW,
    "panm/copy": FEW,
    "panm/reverse": FEW,
    "panm/mix": FEW,
    "panm/dynamic_recall": FEW,
    "panm/id_sort": FEW,
    "panm/priority_sort": FEW,
    "dynamic_halt/logical_inference": {},
    "panm/babi": {},
    "devil/cogs": {},
    "devil/mathematics": {},
    "panm/mathematics": {},
    "devil/pcfg": {},
    "panm/multi30k": {},
    "panm/squad": {},
    "dynamic_halt/listops": {**FEW, "task.test_size": "1"},
    "dynamic_halt/runtime": FEW,
    "dynamic_halt/flipflop": {**FEW, "train.batch": "2"},
    "dynamic_halt/lra": {**FEW, "train.batch": "1"},
}
# BERT's weights alone are half a gigabyte.
SMALL_BERT = {"train.weights": '""', "model.layers": "2"}


def key_of(page: Path) -> str:
    return f"{page.parent.name}/{page.stem}"


# A row that averages other tables has no recipe; its runs are theirs.
ROWS = sorted(
    (
        (page, table, row)
        for page, program in PROGRAMS.items()
        for table in program.items
        if isinstance(table, Table)
        for row in table.parts
        if isinstance(row, Row) and row.recipe is not None
    ),
    key=lambda row: [*REDUCED, key_of(row[0])].index(key_of(row[0])),
)
IDS = [f"{key_of(page)}-{table.name}-{row.title}" for page, table, row in ROWS]


@pytest.fixture(scope="module", autouse=True)
def _samples(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Samples in place of the published files, and a cache of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ARCHLANG_CACHE", str(tmp_path_factory.mktemp("cache")))
        use_samples(patch, tmp_path_factory.mktemp("archives"))
        yield


@cache
def planned(page: Path, table: str) -> TablePlan:
    return plan_table(page, table, seeds=[1])


def first_point(page: Path, table: Table, row: Row, folder: Path) -> Plan:
    """Returns the plan of the first cell of a row, made small."""
    column, *_ = read_table(table, lambda mistake: None).columns
    settings = {setting.path.text: unparse(setting.value) for setting in (*row.at, *column.at) if not is_group(setting)}
    full = plan_first_point(loaded(page), row.recipe, settings)
    reduced = {**TEN_STEPS, **REDUCED.get(key_of(page), {})}
    if full.settings.get("train.weights"):
        reduced |= {**SMALL_BERT, "task.tokenizer": f'"{word_pieces(folder)}"'}
    return plan_first_point(
        loaded(page),
        row.recipe,
        {**settings, **{path: text for path, text in reduced.items() if path in full.settings}},
    )


_runs: dict[str, FinishedRun] = {}


def run_of(plan: Plan, folder: Path) -> FinishedRun:
    """Trains a point once for all rows that have it."""
    name = folder_name(plan, "32")
    if name not in _runs:
        losses = Losses()
        outcome = training.train(plan, folder / "run", device="cpu", watcher=losses)
        assert (outcome.step, outcome.stopped) == (10, False)
        assert losses.values
        assert all(isfinite(loss) for loss in losses.values)
        run = FinishedRun.read(folder / "run")
        assert isinstance(run, FinishedRun)
        _runs[name] = run
    return _runs[name]


class Losses(Watcher):
    """Collects the losses of the steps."""

    def __init__(self) -> None:
        self.values: list[float] = []

    def due(self) -> bool:
        return True

    def step(self, step: int, total: int, loss: float, rate: float, tokens: float, depth: float | None) -> None:
        self.values.append(loss)


@pytest.mark.slow
@pytest.mark.parametrize(("page", "table", "row"), ROWS, ids=IDS)
def test_a_row_of_a_table_trains_ten_steps_and_fills_its_cells(
    page: Path, table: Table, row: Row, tmp_path: Path
) -> None:
    run = run_of(first_point(page, table, row, tmp_path), tmp_path)
    cells = [cell for cell in planned(page, table.name).cells if cell.row.title == row.title and cell.plans]
    # Cells with equal settings show the same run.
    shown = [cell for cell in cells if cell.plans[0] is cells[0].plans[0]]
    assert [cell.column.title for cell in shown if run.value(cell.column)[0] is None] == []


def test_every_page_with_a_table_has_its_sizes() -> None:
    assert set(REDUCED) == {key_of(page) for page, _, _ in ROWS}
