"""`archlang report`: a page about a run or a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from archlang.cli import console
from archlang.cli.settings import parse_sets
from archlang.cli.table import Seeds, chosen_seeds


def report(
    what: Annotated[Path, typer.Argument(help="A run folder, or a program with a table.", show_default=False)],
    name: Annotated[str | None, typer.Argument(help="The table of a program; without it, the first.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The page; by default report.html in the folder of the runs.")
    ] = None,
    runs: Annotated[Path | None, typer.Option("--runs", help="The folder of a table's runs, its `--out`.")] = None,
    sets: Annotated[
        list[str] | None, typer.Option("--set", help="A static that the table was run with, as in `train.steps=100`.")
    ] = None,
    seeds: Seeds = None,
    no_page: Annotated[bool, typer.Option("--no-page", help="Print the report without writing a page.")] = False,
) -> None:
    """Show the curves, accuracy by length or depth, claims and settings of a run or a table.

    The page is one file that needs no network. The terminal shows the same as tables and bars. Nothing is run.

    Example: archlang report runs/ndr/2026-01-31_12-00-00
    """
    from archlang.pages.files import write_file

    if what.suffix == ".arch":
        from archlang.pages.reports.table_report import TableReport
        from archlang.plan.from_file import plan_table

        plan = plan_table(what, name, parse_sets(sets), chosen_seeds(seeds))
        folder = runs or Path("runs") / "tables" / plan.name
        table_report = TableReport.read(plan, folder, parse_sets(sets))
        console.out.print(table_report.terminal())
        page = out or folder / "report.html"
        text = None if no_page else table_report.html()
    else:
        from archlang.pages.reports.run_report import RunReport

        run_report = RunReport.read(what)
        console.out.print(run_report.terminal())
        page = out or what / "report.html"
        text = None if no_page else run_report.html()
    if text is not None:
        write_file(page, text)
        console.out.print(f"wrote {page}", markup=False)
