"""`archlang report`: the results of a run or a table on a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from archlang.cli import completion, console
from archlang.cli.settings import Allow, Plugin, parse_sets
from archlang.cli.shipped import program
from archlang.cli.table import Seeds, chosen_seeds

if TYPE_CHECKING:
    from archlang.pages.reports.run_report import RunReport
    from archlang.pages.reports.table_report import TableReport


def report(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="RUN|FILE",
            help="A run folder, or a program with a table.",
            show_default=False,
            callback=program,
            autocompletion=completion.programs,
        ),
    ],
    name: Annotated[str | None, typer.Argument(help="The table of a program. Default: the first.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="The page, or its charts as .svg. Default: report.html in the folder of the runs."
        ),
    ] = None,
    runs: Annotated[Path | None, typer.Option("--runs", help="The folder of a table's runs: its --out.")] = None,
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", help="A setting of the table's runs, such as `train.steps=100`; may be repeated."),
    ] = None,
    seeds: Seeds = None,
    plugin: Plugin = None,
    allow: Allow = None,
    no_page: Annotated[bool, typer.Option("--no-page", help="Print only, and write no page.")] = False,
) -> None:
    """Show the curves, accuracy by length or depth, claims and settings of a run or a table.

    The page is one file that needs no network. The terminal shows the same numbers as tables and bars. Nothing is run:
    the plugins of a table only tell which runs are its own.

    Example: archlang report runs/ndr/2026-01-31_12-00-00
    """
    results: RunReport | TableReport
    if path.suffix == ".arch":
        from archlang.pages.reports.table_report import TableReport
        from archlang.plan.from_file import plan_table

        plan = plan_table(path, name, parse_sets(sets), chosen_seeds(seeds), allow=allow or (), plugins=plugin or ())
        folder = runs or Path("runs") / "tables" / plan.name
        results = TableReport.read(plan, folder, parse_sets(sets))
    else:
        from archlang.pages.reports.run_report import RunReport

        folder = path
        results = RunReport.read(path)
    console.out.print(results.terminal())
    if not no_page:
        from archlang.pages.files import write_file, write_inside

        if out is None:
            out = write_inside(folder, "report.html", results.html())
        else:
            write_file(out, results.svg() if out.suffix == ".svg" else results.html())
        console.out.print(f"wrote {out}")
