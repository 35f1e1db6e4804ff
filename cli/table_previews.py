"""The parts of `archlang table` that run nothing: the list of the tables, their published numbers, and estimates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from archlang.cli import console
from archlang.cli.arguments import arch_files
from archlang.cli.internal_errors import each
from archlang.errors import ErrorWithRemedy, ProgramError
from archlang.errors.names import plural, rounded

if TYPE_CHECKING:
    from archlang.data.registry import OfficialFile
    from archlang.plan.from_file import TablePlanner
    from archlang.plan.plan import TablePlan
    from archlang.train.runs.cost import RunCost
    from archlang.train.runs.engines import Engine
    from archlang.train.runs.points import Point
    from archlang.train.runs.table import TableRuns

RUNS = Path("runs") / "tables"


@dataclass
class TablesOf:
    """The tables of a file, or of the files of a folder; with `name`, those of this name. Iterating reports the errors
    of a table and goes to the next one; `broken` has the files with errors so far."""

    path: Path
    name: str | None
    sets: Mapping[str, str]
    seeds: Sequence[int]
    allow: Iterable[Path]
    broken: dict[Path, None] = field(default_factory=dict, init=False)
    _shown: set[str] = field(default_factory=set, init=False)

    def __iter__(self) -> Iterator[tuple[Path, TablePlan]]:
        from archlang.plan.from_file import TablePlanner

        planner = TablePlanner(self.sets, self.seeds, self.allow)
        for file in each(arch_files([self.path], code=2)):
            names: Sequence[str | None] = ()
            with self.reported(file):
                names = self._names(file, planner)
            for name in names:
                plan = None
                with self.reported(file):
                    plan = planner.plan(file, name)
                if plan is not None:
                    yield file, plan

    @contextmanager
    def reported(self, file: Path) -> Iterator[None]:
        """Reports the errors of a file, each once, instead of raising them."""
        try:
            yield
        except ProgramError as error:
            self.broken[file] = None
            for diagnostic in error.diagnostics:
                text = f"{diagnostic.span} {diagnostic.code} {diagnostic.message}"
                if text not in self._shown:
                    console.show([diagnostic])
                self._shown.add(text)
        except ErrorWithRemedy as error:
            self.broken[file] = None
            console.say(f"{file}: {error.message}", error.remedy)

    def end(self, count: int, prints_text: bool) -> None:
        """Says that there is no table, if `count` is 0, and exits with 1 if a file has errors."""
        if not count and not self.broken and prints_text:
            named = "" if self.name is None else f" `{self.name}`"
            console.out.print(f"no program in {self.path} has a table{named}")
        if self.broken:
            verb = "has" if len(self.broken) == 1 else "have"
            console.say(f"{plural(len(self.broken), 'file')} {verb} errors", "correct them, to see every table")
            raise typer.Exit(1)

    def _names(self, file: Path, planner: TablePlanner) -> Sequence[str | None]:
        """The names of the tables of a file; None is the table that the recipes of a single program imply."""
        if self.path.is_dir():
            return [name for name in planner.names(file) if self.name in (None, name)]
        return [self.name] if self.name is not None else planner.names(file) or [None]


def list_tables(tables: TablesOf, out: Path | None, also: Path | None, form: str) -> None:
    """Prints what each table has."""
    from archlang.reports.table_list import summarize_table, summary_lines, total

    if form not in ("terminal", "json"):
        console.fail(f"`--list` has no format {form}", "write `--format terminal` or `--format json`", code=2)
    summaries = []
    for file, plan in tables:
        summaries.append(summarize_table(str(file), plan, out or RUNS / plan.name, also))
        for line in summary_lines(summaries[-1]) if form == "terminal" else ():
            console.out.print(line)
    if form == "json":
        console.out.write_json(summaries)
    elif summaries:
        console.out.print(total(summaries))
    tables.end(len(summaries), form == "terminal")


@dataclass(frozen=True)
class _Kind:
    """Runs that differ in their seed alone, and so cost the same.

    Attributes:
        missing: The published files that must be fetched first.
        absent: The missing files of the user's own."""

    points: Sequence[Point]
    missing: Sequence[OfficialFile]
    absent: Sequence[str]

    @property
    def title(self) -> str:
        return self.points[0].name.removesuffix(f", seed {self.points[0].plan.seed}")


def _kinds(points: Sequence[Point]) -> list[_Kind]:
    from archlang.plan.required_data import missing_files, missing_user_files
    from archlang.train.runs.points import group_seeds

    return [
        _Kind((first, *first.other_seeds), missing_files([first.plan]), missing_user_files(first.plan))
        for first in group_seeds(points)
    ]


def _require_possible(kinds: Sequence[_Kind], engine: Engine) -> None:
    """Says for each kind of run why it cannot begin, and exits if one cannot. The devices of other machines are not
    known."""
    from archlang.train.devices import require_device
    from archlang.train.record.mistakes import RunError, RunMachineError
    from archlang.train.refusals import refusal
    from archlang.train.runs.engines import LocalEngine
    from archlang.train.runs.training import check_files

    codes = set[int]()
    for kind in kinds:
        first = kind.points[0]
        try:
            if isinstance(engine, LocalEngine):
                require_device(first.plan, first.device, first.precision, first.devices)
            elif error := refusal(first.plan, first.device, first.precision, first.devices * engine.nodes):
                raise error
            for point in kind.points:
                check_files(point.plan, point.folder, point.precision)
        except RunError as error:
            console.say(f"{kind.title}: {error.message}", error.remedy)
            codes.add(71 if isinstance(error, RunMachineError) else 1)
    if codes:
        raise typer.Exit(min(codes))


def print_estimate(runs: TableRuns, engine: Engine, workers: int | None, together: bool) -> None:
    """Prints the unfinished runs: files that must be fetched first; the FLOPs of each kind of run; after a few steps of
    each kind, how long every run takes on this machine; and the cost of all. Exits if a run cannot begin.

    Raises:
        RunError: a setting is invalid.
        TaskError: a task cannot be made."""
    from archlang.graph.text import print_graph
    from archlang.train.runs.cost import estimate_cost, seconds_per_step

    points = runs.points()
    kinds = _kinds(points)
    _require_possible(kinds, engine)
    _print_missing(kinds)
    ready = [kind for kind in kinds if not kind.missing and not kind.absent]
    costs: list[RunCost] = []
    prepared: set[str] = set()
    total = flops = 0.0
    # By the model and the training, the seconds of a FLOP: runs that differ in their task alone are timed once.
    seconds_per_flop: dict[tuple[str, str], float] = {}
    for kind in ready:
        task = kind.points[0].plan.task
        if repr(task) not in prepared:
            console.out.print(f"preparing the data of {task.name}")
        prepared.add(repr(task))
        cost = estimate_cost(kind.points[0].plan)
        costs.append(cost)
        console.out.print(
            f"{kind.title}: {cost.steps:,} {'step' if cost.steps == 1 else 'steps'}, "
            f"about {'at least ' if cost.uncounted else ''}{rounded(cost.flops, ' ')}FLOP"
        )
    for kind, cost in zip(ready, costs, strict=True):
        plan = kind.points[0].plan
        work = print_graph(plan.graph), repr(plan.train)
        if work in seconds_per_flop:
            seconds = seconds_per_flop[work] * cost.flops
        else:
            with console.out.working(f"timing a few steps: {kind.title}"):
                seconds = seconds_per_step(kind.points[0], cost) * cost.steps
            if cost.flops and not cost.uncounted:
                seconds_per_flop[work] = seconds / cost.flops
        for point in kind.points:
            console.out.print(f"{point.name}, about {duration(seconds)}, in {point.folder}")
        total += seconds * len(kind.points)
        flops += cost.flops * len(kind.points)
    _print_total(runs, points, sum(len(kind.points) for kind in ready), total, workers)
    if together and ready:
        console.out.print(f"together they would be {len(kinds)} models; the times are those of solo runs")
    if flops and total:
        console.out.print(
            f"these are about {rounded(flops, ' ')}FLOP, at {rounded(flops / total, ' ')}FLOP/s on this machine"
        )


def _print_missing(kinds: Sequence[_Kind]) -> None:
    """Prints the missing files of runs that cannot be estimated, and the command that fetches published files."""
    files = dict.fromkeys(file for kind in kinds for file in kind.missing)
    for file in files:
        size = console.size(file.size)
        console.out.print(f"must be fetched first: {file.dataset}/{file.member}, {size}, from {file.url}")
    if files:
        count = sum(len(kind.points) for kind in kinds if kind.missing)
        sets = " ".join(dict.fromkeys(file.dataset for file in files))
        console.out.print(
            f"{count} {'run needs' if count == 1 else 'runs need'} these files and cannot be estimated; "
            f"fetch them with `archlang data get {sets}`"
        )
    for path, count in Counter(path for kind in kinds for path in kind.absent for _ in kind.points).items():
        console.out.print(f"missing: {path}, which {count} {'run needs' if count == 1 else 'runs need'}")


def _print_total(runs: TableRuns, points: Sequence[Point], estimated: int, total: float, workers: int | None) -> None:
    from archlang.train.runs.engines import LocalEngine

    at_once = min(LocalEngine(workers, devices=runs.devices).workers, max(len(points), 1))
    counts = f"{plural(len(points), 'run')} to train and {len(runs.plan.plans) - len(points)} done"
    if not estimated:
        console.out.print(counts)
        return
    of = "" if estimated == len(points) else f" of {estimated} of them"
    console.out.print(
        f"{counts}; about {duration(total)} of training{of}, "
        f"{duration(total / at_once)} with {at_once} at a time, without evaluations"
    )


def duration(seconds: float) -> str:
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"
