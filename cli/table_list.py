"""The parts of `archlang table` that run nothing: the list of the tables, and their published numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from archlang.cli import console
from archlang.cli.internal_errors import InternalErrors
from archlang.diagnostics import Diagnostic, ErrorWithRemedy, ProgramError
from archlang.diagnostics.names import plural

if TYPE_CHECKING:
    from archlang.plan.from_file import TablePlanner
    from archlang.plan.table import TablePlan

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
    internal_errors: InternalErrors = field(default_factory=InternalErrors, init=False)
    _shown: set[str] = field(default_factory=set, init=False)

    def __iter__(self) -> Iterator[tuple[Path, TablePlan]]:
        """Yields the plan of each table with its file."""
        from archlang.plan.from_file import TablePlanner

        planner = TablePlanner(self.sets, self.seeds, self.allow)
        for file in self._files():
            for table in self._names(file, planner):
                plan = None
                try:
                    with self.internal_errors.reported(file):
                        plan = planner.plan(file, table)
                except ProgramError as error:
                    self._report(file, error.diagnostics)
                except ErrorWithRemedy as error:
                    self.broken[file] = None
                    console.say(f"{file}: {error.message}", error.remedy)
                if plan is not None:
                    yield file, plan

    def end(self, count: int, prints_text: bool) -> None:
        """Says that there is no table, if `count` is 0, and exits with 1 if a file has errors, or with the code of
        internal errors."""
        if not count and not self.broken and not self.internal_errors.paths and prints_text:
            named = "" if self.name is None else f" `{self.name}`"
            console.out.print(f"no program in {self.path} has a table{named}", markup=False, highlight=False)
        if self.broken:
            verb = "has" if len(self.broken) == 1 else "have"
            console.say(f"{plural(len(self.broken), 'file')} {verb} errors", "correct them, to see every table")
        self.internal_errors.exit()
        if self.broken:
            raise typer.Exit(1)

    def _files(self) -> Sequence[Path]:
        path = self.path
        if not path.is_dir():
            return [path]
        files = sorted(path.rglob("*.arch"))
        if not files:
            console.fail(f"there is no `.arch` file in {path}", "name a folder of programs", code=2)
        return files

    def _names(self, file: Path, planner: TablePlanner) -> Sequence[str | None]:
        """The names of the tables of a file; None is the table that the recipes of a single program imply."""
        if self.name is not None and not self.path.is_dir():
            return [self.name]
        names: tuple[str, ...] = ()
        try:
            with self.internal_errors.reported(file):
                names = planner.names(file)
        except ProgramError as error:
            self._report(file, error.diagnostics)
            return []
        if not self.path.is_dir():
            return names or ([] if file in self.internal_errors.paths else [None])
        return [name for name in names if self.name in (None, name)]

    def _report(self, file: Path, diagnostics: Iterable[Diagnostic]) -> None:
        """Prints the errors of a file, each once."""
        self.broken[file] = None
        for diagnostic in diagnostics:
            text = f"{diagnostic.span} {diagnostic.code} {diagnostic.message}"
            if text not in self._shown:
                self._shown.add(text)
                console.show([diagnostic])


def list_tables(tables: TablesOf, out: Path | None, form: str) -> None:
    """Prints what each table has."""
    from archlang.pages.reports.table_list import TableSummary, total

    if form not in ("terminal", "json"):
        console.fail(f"`--list` has no format {form}", "write `--format terminal` or `--format json`", code=2)
    summaries = []
    for file, plan in tables:
        with tables.internal_errors.reported(file):
            summary = TableSummary.of(str(file), plan, out or RUNS / plan.name)
            summaries.append(summary)
            if form == "terminal":
                for line in summary.lines():
                    console.out.print(line, markup=False, highlight=False, soft_wrap=True)
    if form == "json":
        console.out.write_json([summary.record() for summary in summaries])
    elif summaries:
        console.out.print(total(summaries), markup=False, highlight=False)
    tables.end(len(summaries), form == "terminal")


def print_claims(tables: TablesOf, form: str) -> None:
    """Prints the published numbers of each table."""
    from archlang.pages.reports.table_formats import markdown_text
    from archlang.pages.reports.table_list import published_table

    if form not in ("terminal", "markdown"):
        console.fail(f"`--claims` has no format {form}", "write `--format terminal` or `--format markdown`", code=2)
    count = 0
    for _, plan in tables:
        count += 1
        table = published_table(plan)
        if form == "terminal":
            console.out.print(table.terminal())
        else:
            console.out.write(markdown_text(table))
    tables.end(count, True)
