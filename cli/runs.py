"""`archlang runs` and `archlang report`: list, show and compare run folders, and report their results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from archlang.cli import arguments, console
from archlang.cli.arguments import AsJson, Run, chosen_seeds, flag, output, parse_sets

if TYPE_CHECKING:
    from archlang.reports.run_report import RunReport, TableReport

app = typer.Typer(name="runs", help="List, show and compare run folders.", no_args_is_help=True)

Runs = Annotated[list[Path], typer.Argument(help="Run folders.", show_default=False)]
_FOLDER = Path("runs")
# How `show` names what `run_costs` returns.
_COSTS: dict[str, tuple[str, Callable[[float], str]]] = {
    "seconds_of_steps": ("training steps", "{:,.1f} s".format),
    "seconds_of_data": ("of them, making batches", "{:,.1f} s".format),
    "seconds_of_evaluation": ("evaluations in training", "{:,.1f} s".format),
    "seconds_of_saving": ("checkpoints", "{:,.1f} s".format),
    "samples_per_second": ("samples a second", "{:,.0f}".format),
    "tokens_per_second": ("tokens a second", "{:,.0f}".format),
    "flops_per_second": ("GFLOP/s", lambda flops: f"{flops / 1e9:,.1f}"),
    "peak_share": ("share of the device's peak", "{:.1%}".format),
    "memory": ("largest memory", lambda count: console.size(int(count))),
}


@app.command("list")
def list_(
    folder: Annotated[Path, typer.Argument(help="The folder to search, with its subfolders.")] = _FOLDER,
    as_json: AsJson = False,
) -> None:
    """List the runs of a folder, with their progress and their results. Damaged runs follow, with the reason.

    Example: archlang runs list
    """
    from archlang.errors.visible import visible
    from archlang.tasks.kit.metrics import format_metric
    from archlang.train.record.summaries import DamagedRun, find_runs

    if folder != _FOLDER and not folder.exists():
        console.fail(f"there is no folder {folder}", "check the path")
    if as_json:
        console.out.write_json([run.json_value() for run in find_runs(folder)])
        return
    is_empty, damaged = True, list[str]()
    for run in find_runs(folder):
        is_empty = False
        if isinstance(run, DamagedRun):
            damaged.append(visible(f"{run.state}: {run.reason}"))
            continue
        splits = {} if run.results is None else run.results.splits
        measured = [
            f"{split}.{metric} {format_metric(metric, value)}"
            for split, result in splits.items()
            for metric, value in list(result.metrics.items())[:1]
            if value is not None
        ]
        state = f"{run.state} at step {run.step}; {', '.join([*measured, console.size(run.size)])}"
        facts = "{recipe} on {task}, seed {seed}".format_map(run.facts)
        console.out.write(f"{visible(str(run.folder))}\n    {visible(f'{facts}: {state}')}")
    console.out.write("\n".join(damaged) if damaged else f"there are no runs in {folder}" if is_empty else "")


@app.command()
def show(run: Run, as_json: AsJson = False) -> None:
    """Show the settings and the results of a run.

    Example: archlang runs show runs/gutlb/2026-01-31_12-00-00
    """
    from archlang.reports.run_results import TextTable, result_notes, result_table
    from archlang.train.record.reading import read_timings
    from archlang.train.record.summaries import run_costs, summarize

    summary, costs = summarize(run), run_costs(read_timings(run))
    if as_json:
        console.out.write_json({
            **summary.json_value(), "settings": summary.settings, "history": list(summary.history), "costs": costs,
        })  # fmt: skip
        return
    console.out.print(
        "{model} on {task}, seed {seed}".format_map(summary.facts)
        + f": {summary.state} at step {summary.step}, {console.size(summary.size)}"
    )
    for sentence in summary.history:
        console.out.print(sentence)
    console.out.print(TextTable("Settings", ["setting", "value"], [*summary.settings.items()]).terminal())
    rows = [[title, text(costs[name])] for name, (title, text) in _COSTS.items() if name in costs]
    console.out.print(TextTable("Time and memory", ["", ""], rows).terminal())
    if summary.results is None:
        return
    console.out.print(result_table(summary.results).terminal())
    for note in result_notes(summary.results):
        console.out.print(note)


@app.command()
def compare(runs: Runs, as_json: AsJson = False) -> None:
    """Compare runs: the settings in which they differ, and their results.

    Example: archlang runs compare runs/a runs/b
    """
    from archlang.reports.run_results import TextTable
    from archlang.train.record.summaries import differences, summarize

    summaries = [summarize(run) for run in runs]
    differing = differences(summaries)
    results = [run.results for run in summaries]
    measured = {
        f"{split}.{metric}": tuple(entry and entry.value(split, metric) for entry in results)
        for run_results in results
        if run_results is not None
        for split, result in run_results.splits.items()
        for metric in result.metrics
    }
    if as_json:
        console.out.write_json({"runs": [str(run) for run in runs], "settings": differing, "metrics": measured})
        return
    rows = [[name, *values] for name, values in differing.items()]
    rows += [
        [name, *("" if number is None else f"{number:.4f}" for number in numbers)] for name, numbers in measured.items()
    ]
    console.out.print(TextTable("", ["", *map(str, runs)], rows).terminal())


def report(
    path: Annotated[Path, arguments.program_argument("A run folder, or a program with a table.", "RUN|FILE")],
    name: Annotated[str | None, typer.Argument(help="The table of a program. Default: the first.")] = None,
    out: Annotated[
        Path | None, output("The page, or its charts as .svg. Default: report.html in the folder of the runs.")
    ] = None,
    runs: Annotated[Path | None, typer.Option("--runs", help="The folder of a table's runs: its --out.")] = None,
    sets: arguments.Sets = None,
    seeds: arguments.Seeds = None,
    plugin: arguments.Plugin = None,
    allow: arguments.Allow = None,
    no_page: Annotated[bool, flag("--no-page", "Print only, and write no page.")] = False,
) -> None:
    """Show the curves, accuracy by length or depth, claims and settings of a run or a table.

    The page is one file that needs no network. The terminal shows the same numbers as tables and bars. Nothing is run:
    the plugins of a table only tell which runs are its own.

    Example: archlang report runs/ndr/2026-01-31_12-00-00
    """
    from archlang.reports.charts import charts_svg

    results: RunReport | TableReport
    console.require_suffix(out, (".html", ".svg"), "a page or a picture")
    if path.suffix == ".arch":
        from archlang.plan.from_file import plan_table
        from archlang.reports.run_report import TableReport

        plan = plan_table(path, name, parse_sets(sets), chosen_seeds(seeds), allow=allow or (), plugins=plugin or ())
        folder = runs or Path("runs") / "tables" / plan.name
        results = TableReport.read(plan, folder, parse_sets(sets))
    else:
        from archlang.reports.run_report import RunReport

        folder = path
        results = RunReport.read(path)
    console.out.print(results.terminal())
    if not no_page:
        is_picture = out is not None and out.suffix == ".svg"
        page = charts_svg([*results.charts()]) if is_picture else results.html()
        console.write_page(page, out, folder, "report.html")
