"""`archlang report`: a run, or a table, on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from archlang.cli import console
from archlang.cli.settings import parse_sets
from archlang.cli.table import Seeds, chosen_seeds


def report(
    what: Annotated[Path, typer.Argument(help="A run folder, or a program with a table.", show_default=False)],
    name: Annotated[str | None, typer.Argument(help="Of a program, the table; without it, the first.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The page; report.html beside the run if not said.")
    ] = None,
    runs: Annotated[Path | None, typer.Option("--runs", help="The folder of a table's runs, as its --out.")] = None,
    sets: Annotated[
        list[str] | None, typer.Option("--set", help="As the table was run, as in `train.steps=100`; may be repeated.")
    ] = None,
    seeds: Seeds = None,
    no_page: Annotated[bool, typer.Option("--no-page", help="Print only, and write no page.")] = False,
) -> None:
    """Show how a run or a table went: curves, accuracy by length or depth, claims and settings.

    The page is one file that needs no network. The terminal gets the same as tables and bars. Nothing is run.

    Example: archlang report runs/ndr/2026-01-31_12-00-00
    """
    from archlang.pages.files import write_file

    if what.suffix == ".arch":
        from archlang.pages.reports.table_report import TableReport
        from archlang.plan.from_file import plan_table

        plan = plan_table(what, name, parse_sets(sets), chosen_seeds(seeds))
        folder = runs or Path("runs") / "tables" / plan.name
        found = TableReport.read(plan, folder, parse_sets(sets))
        console.out.print(found.terminal())
        place = out or folder / "report.html"
        text = None if no_page else found.html()
    else:
        from archlang.pages.reports.run_report import RunReport

        one = RunReport.read(what)
        console.out.print(one.terminal())
        place = out or what / "report.html"
        text = None if no_page else one.html()
    if text is not None:
        write_file(place, text)
        console.out.print(f"wrote {place}", markup=False)
