"""`archlang tune`: searches for the statics of a recipe."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from archlang.cli import arguments, console
from archlang.cli.arguments import deadline_of, output, parse_sets, program_argument
from archlang.cli.data import ask_for
from archlang.cli.table import RunsDisplay

if TYPE_CHECKING:
    from archlang.runs.tune import Trial, Tuning

_PRINTED_TRIALS = 10


def tune(
    file: Annotated[Path, program_argument("A program whose recipe has a `search`.")],
    recipe: arguments.RecipeName = None,
    trials: Annotated[int, typer.Option(min=0, help="The number of further trials.")] = 20,
    sets: arguments.Sets = None,
    out: Annotated[Path | None, output("The folder of the study; one with the same settings is continued.")] = None,
    engine: arguments.Engine = "local",
    options: arguments.EngineOptions = None,
    workers: arguments.Workers = None,
    time_limit: arguments.TimeLimit = None,
    seed: Annotated[int, typer.Option(min=0, help="The seed of the search, not of the runs.")] = 0,
    device: arguments.Device = "auto",
    precision: arguments.Precision = "32",
    yes: arguments.Yes = False,
    plugin: arguments.Plugin = None,
    allow: arguments.Allow = None,
    as_json: arguments.AsJson = False,
) -> None:
    """Search for the statics that a recipe names after `search`, and print the best as a recipe.

    A line such as `search model.heads in [1, 2, 4], train.lr in 1e-4..1e-2 log` gives the search space. The objective
    is the metric by which the recipe selects its weights. The study is stored in SQLite; rerun the command to continue
    it.

    Example: archlang tune my.arch --trials 30
    """
    from archlang.plan.from_file import plan_search
    from archlang.plan.trust import require_trust

    search = plan_search(file, recipe, parse_sets(sets), allow or (), plugin or ())

    from archlang.runs.engines import make_engine
    from archlang.runs.tune import Tuning
    from archlang.train.stop import Stop

    terminal = console.err if as_json else console.out
    require_trust([search.first()])
    ask_for([search.first()], yes, terminal)
    deadline = deadline_of(time_limit)
    tuning = Tuning(search, out or Path("runs") / "tune" / search.recipe, seed, device, precision, deadline)
    shown = RunsDisplay(terminal, search.recipe, trials)
    with console.plain_warnings(), Stop().listening() as stop, shown.bar:
        runner = make_engine(engine, workers, parse_sets(options))
        for trial, result in tuning.run(trials, runner, lambda: shown.stopping(stop)):
            reached = f"failed: {result.error}" if trial.value is None else f"{tuning.metric} {trial.value:.4f}"
            terminal.print(f"trial {trial.number}: {_values(trial.values)}: {reached}")
            shown.advance("")
    is_over = deadline is not None and time.time() >= deadline
    if stop.asked or is_over:
        terminal.print("stopped; rerun the command to resume")
    ranked = tuning.trials()
    if as_json:
        listed = [{"trial": trial.number, "values": trial.values, tuning.metric: trial.value} for trial in ranked]
        best = search.text(ranked[0].sampled) if ranked else None
        console.out.write_json({"trials": listed, "best": best})
    elif ranked:
        _print_best(tuning, ranked)
    elif not stop.asked and not is_over:
        console.fail("no trial succeeded", "raise `--trials`, or see the failures above")
    if stop.asked:
        raise typer.Exit(stop.exit_code)


def _print_best(tuning: Tuning, ranked: list[Trial]) -> None:
    from rich.table import Table

    search = tuning.search
    table = Table("trial", tuning.metric, *(space.path for space in search.spaces), title="The best trials")
    for trial in ranked[:_PRINTED_TRIALS]:
        values = (_text(trial.values[space.path]) for space in search.spaces)
        table.add_row(str(trial.number), f"{trial.value:.4f}", *values)
    console.out.print(table)
    console.out.print(search.text(ranked[0].sampled))


def _values(values: Mapping[str, int | float | str | bool]) -> str:
    return ", ".join(f"{path} = {_text(value)}" for path, value in values.items())


def _text(value: float | str | bool) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.4g}" if isinstance(value, float) else str(value)
