"""The parts of `archlang table` that run nothing: the list of the tables, and their published numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from archlang.cli import console

if TYPE_CHECKING:
    from archlang.plan.table import TablePlan

RUNS = Path("runs") / "tables"


def plans_of(
    path: Path, name: str | None, sets: Mapping[str, str], seeds: Sequence[int], allow: Iterable[Path]
) -> Iterator[tuple[Path, TablePlan]]:
    """Yields every table of a file, or of the files of a folder that have tables or recipes; `name` is that of one."""
    from archlang.plan.from_file import plan_table, table_names

    files = sorted(path.rglob("*.arch")) if path.is_dir() else [path]
    if path.is_dir() and not files:
        console.fail(f"there is no `.arch` file in {path}", "name a folder of programs", code=2)
    for file in files:
        names: Sequence[str | None] = table_names(file) if name is None else [name]
        if not names and not path.is_dir():
            names = [None]
        for table in names:
            yield file, plan_table(file, table, sets, seeds, allow=allow)


def list_tables(plans: Iterable[tuple[Path, TablePlan]], out: Path | None, as_json: bool) -> None:
    """Prints what each table has."""
    from archlang.pages.reports.table_list import TableSummary, total

    summaries = []
    for file, plan in plans:
        summary = TableSummary.of(str(file), plan, out or RUNS / plan.name)
        summaries.append(summary)
        if not as_json:
            for line in summary.lines():
                console.out.print(line, markup=False, highlight=False, soft_wrap=True)
    if as_json:
        console.out.write_json([summary.record() for summary in summaries])
    elif summaries:
        console.out.print(total(summaries), markup=False, highlight=False)


def print_claims(plans: Iterable[tuple[Path, TablePlan]], form: str) -> None:
    """Prints the published numbers of each table."""
    from archlang.pages.reports.table_formats import markdown_text
    from archlang.pages.reports.table_list import published_table

    if form not in ("terminal", "markdown"):
        console.fail(f"`--claims` has no format {form}", "write `--format terminal` or `--format markdown`", code=2)
    for _, plan in plans:
        table = published_table(plan)
        if form == "terminal":
            console.out.print(table.terminal())
        else:
            console.out.write(markdown_text(table))
