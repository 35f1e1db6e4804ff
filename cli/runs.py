"""`archlang runs`: the run folders of a place."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from archlang.cli import console

if TYPE_CHECKING:
    from archlang.record.archive import RunSummary

app = typer.Typer(name="runs", help="List, show, compare and remove run folders.", no_args_is_help=True)

Run = Annotated[Path, typer.Argument(help="A run folder.", show_default=False)]
Runs = Annotated[list[Path], typer.Argument(help="Run folders.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print as JSON.")]


@app.command("list")
def list_(
    folder: Annotated[Path, typer.Argument(help="Where to look, also below.")] = Path("runs"), as_json: AsJson = False
) -> None:
    """List the runs of a folder, with how far they are and what they measured.

    Example: archlang runs list
    """
    from rich.table import Table

    from archlang.record.archive import find_runs

    found = list(find_runs(folder))
    if as_json:
        print(json.dumps([one.json_value() for one in found], indent=2, ensure_ascii=False))
        return
    if not found:
        console.out.print(f"there are no runs in {folder}", markup=False)
        return
    table = Table()
    table.add_column("run", overflow="fold")
    for title in ("task", "seed", "state", "step", "measured", "size"):
        table.add_column(title)
    for one in found:
        table.add_row(
            str(one.folder), one.task, str(one.seed), one.state, str(one.step), _measured(one), _size(one.size)
        )
    console.out.print(table)


@app.command()
def show(run: Run, as_json: AsJson = False) -> None:
    """Show one run: its settings, and what it measured.

    Example: archlang runs show runs/gutlb/2026-01-31_12-00-00
    """
    from rich.table import Table

    from archlang.record.archive import summarize
    from archlang.runs.progress import cost_of_loss

    one = summarize(run)
    if as_json:
        print(json.dumps({**one.json_value(), "settings": one.settings}, indent=2, ensure_ascii=False))
        return
    console.out.print(
        f"{one.model} on {one.task}, seed {one.seed}: {one.state} at step {one.step}, {_size(one.size)}", markup=False
    )
    settings = Table("setting", "value")
    for name, value in one.settings.items():
        settings.add_row(name, value)
    console.out.print(settings)
    if one.results is None:
        return
    for split, result in one.results.splits.items():
        measured = {"loss": result.loss, **result.metrics}
        metrics = ", ".join(f"{name} {value:.4f}" for name, value in measured.items() if value is not None)
        console.out.print(f"{split}: {result.items} items, {metrics}", markup=False)
    for alternative in one.results.selection:
        if alternative.is_worse:
            console.out.print(cost_of_loss(alternative), markup=False)


@app.command()
def compare(runs: Runs, as_json: AsJson = False) -> None:
    """Set runs side by side: the settings in which they differ, and what they measured.

    Example: archlang runs compare runs/a runs/b
    """
    from rich.table import Table

    from archlang.record.archive import differences, summarize

    found = [summarize(run) for run in runs]
    differing = differences(found)
    measured = {
        f"{split}.{metric}": tuple(None if run.results is None else run.results.value(split, metric) for run in found)
        for one in found
        if one.results is not None
        for split, result in one.results.splits.items()
        for metric in result.metrics
    }
    if as_json:
        print(json.dumps({"runs": [str(run) for run in runs], "settings": differing, "metrics": measured}, indent=2))
        return
    table = Table("", *(str(run) for run in runs))
    for name, values in differing.items():
        table.add_row(name, *values)
    table.add_section()
    for name, numbers in measured.items():
        table.add_row(name, *("" if number is None else f"{number:.4f}" for number in numbers))
    console.out.print(table)


@app.command()
def rm(runs: Runs, yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False) -> None:
    """Remove run folders, with their checkpoints.

    Example: archlang runs rm runs/gutlb/2026-01-31_12-00-00
    """
    from archlang.record.archive import summarize

    for one in [summarize(run) for run in runs]:
        if one.state == "running":
            console.fail(f"a process is training in {one.folder}", "stop it first")
        if not yes and not typer.confirm(f"remove {one.folder} ({one.model}, step {one.step}, {_size(one.size)})?"):
            continue
        try:
            shutil.rmtree(one.folder)
        except OSError as error:
            console.fail(f"{one.folder} cannot be removed: {error.strerror}", "see who owns it")
        console.out.print(f"removed {one.folder}", markup=False)


def _measured(one: RunSummary) -> str:
    """The first metric of each split."""
    found = []
    for split, result in one.results.splits.items() if one.results is not None else ():
        value = next(iter(result.metrics.values()), None)
        if value is not None:
            found.append(f"{split} {value:.3f}")
    return ", ".join(found)


def _size(count: int) -> str:
    size = float(count)
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"
