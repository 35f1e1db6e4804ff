"""`archlang table` and `archlang tune`: run the points of a table, and those of a search for statics."""

from __future__ import annotations

import fnmatch
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from archlang.cli import arguments, console, table_previews
from archlang.cli.arguments import (
    chosen_seeds,
    deadline_of,
    flag,
    matching,
    output,
    parse_sets,
    program_argument,
    save_interval,
)
from archlang.cli.data import ask_for
from archlang.cli.table_previews import RUNS, duration
from archlang.errors.names import did_you_mean

if TYPE_CHECKING:
    from archlang.errors.terminal import Terminal
    from archlang.plan.plan import TablePlan, TableRow
    from archlang.train.runs.points import Point
    from archlang.train.runs.table import TableRuns
    from archlang.train.runs.tune import Trial, Tuning
    from archlang.train.stop import Stop

# As in archlang.reports.result_table, which imports too much for `--help`.
_FORMATS = ("terminal", "markdown", "latex", "json")
_BY_SUFFIX = {".md": "markdown", ".tex": "latex", ".json": "json"}
_PICTURES = (".svg", ".png", ".pdf")
_RECORDS = ".jsonl"
_PRINTED_TRIALS = 10


def table(
    file: Annotated[
        Path, program_argument("A program with a table, or with recipes. `--list` also takes a folder of programs.")
    ],
    name: Annotated[str | None, typer.Argument(help="The table; without it, the first of the file.")] = None,
    sets: arguments.Sets = None,
    seeds: arguments.Seeds = None,
    only: Annotated[
        list[str] | None, typer.Option(help="Rows whose titles match, as in `NDR*`; may be repeated.")
    ] = None,
    run: Annotated[
        list[str] | None, typer.Option(help="Rows to run, as of `--only`; the others are shown as they are.")
    ] = None,
    out: Annotated[Path | None, output("The folder of the runs; finished runs are not repeated.")] = None,
    also: Annotated[
        Path | None,
        typer.Option(
            help="Other finished runs, which are not repeated: a folder, or a `.jsonl` of `--write`.", exists=True
        ),
    ] = None,
    engine: arguments.Engine = "local",
    options: arguments.EngineOptions = None,
    workers: arguments.Workers = None,
    retries: arguments.Retries = 0,
    together: Annotated[
        bool,
        flag(
            "--together",
            "Train the seeds of a cell as one model. Without dropout, results equal solo runs up to rounding.",
        ),
    ] = False,
    time_limit: arguments.TimeLimit = None,
    save: arguments.Save = "15m",
    listed: Annotated[bool, flag("--list", "Run nothing; print what every table of a file or a folder has.")] = False,
    dry_run: Annotated[
        bool, flag("--dry-run", "Run nothing; print the runs with their FLOPs and their estimated time.")
    ] = False,
    no_run: Annotated[bool, flag("--no-run", "Run nothing; print the finished runs.")] = False,
    compare: Annotated[
        list[str] | None,
        typer.Option(
            help="Two rows to test seed by seed, `NDR,Transformer`, or one to test each other row against it."
        ),
    ] = None,
    fit: Annotated[
        str | None, typer.Option(help="The column of sizes, as `Parameters`, in which the others are power laws.")
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="terminal, markdown, latex or json.",
            callback=matching("|".join(_FORMATS), f"one of {', '.join(_FORMATS)}"),
        ),
    ] = None,
    write: Annotated[
        Path | None,
        typer.Option(
            help="Write the table to a `.md`, `.tex` or `.json`, its picture to a `.svg`, `.png` or `.pdf`, or the "
            "results of its runs to a `.jsonl`."
        ),
    ] = None,
    device: arguments.Device = "auto",
    devices: arguments.Devices = 1,
    eager: arguments.Eager = False,
    precision: arguments.Precision = "32",
    yes: arguments.Yes = False,
    plugin: arguments.Plugin = None,
    allow: arguments.Allow = None,
    as_json: Annotated[bool, flag("--json", "Short for `--format json`.")] = False,
) -> None:
    """Run the unfinished points of a table, and print it beside the claims of the paper.

    A row is a recipe; a column is a metric. A file without a table gives a row for each point that its recipes vary.
    Ctrl-C stops every run with a checkpoint; rerun the command to resume, with any engine.

    Example: archlang table recipes/papers/ndr/table1.arch --set train.steps=100 --seeds 2
    """
    from archlang.plan.from_file import plan_table
    from archlang.plan.trust import require_trust

    form = "json" if as_json else form or "terminal"
    if name is not None and (name.endswith(".arch") or "/" in name):
        remedy = "name the file and a table of it, or with `--list` a folder"
        console.fail(f"`archlang table` takes one file, and `{name}` is a second one", remedy, code=2)
    if together and (devices > 1 or "nodes" in parse_sets(options)):
        console.fail("`--together` and several devices or nodes exclude each other", "use one of them", code=2)
    console.require_suffix(write, (*_BY_SUFFIX, *_PICTURES, _RECORDS), "a table or a picture")
    if listed:
        unheeded = {
            "--only": only, "--dry-run": dry_run, "--no-run": no_run, "--compare": compare, "--write": write,
            "--fit": fit, "--run": run,
            "--together": together,
        }  # fmt: skip
        for option in (option for option, is_given in unheeded.items() if is_given):
            console.fail(f"`--list` and `{option}` exclude each other", "use one of them", code=2)
        tables = table_previews.TablesOf(file, name, parse_sets(sets), chosen_seeds(seeds), allow or ())
        table_previews.list_tables(tables, out, also, form)
        return
    if file.is_dir():
        console.fail(f"{file} is a folder", "name a program in it, or add `--list`", code=2)
    plan = plan_table(
        file, name, parse_sets(sets), chosen_seeds(seeds), allow=allow or (), plugins=plugin or (), only=only or ()
    )
    _matching_rows(plan, only)
    chosen = _matching_rows(plan, run)
    compared = [pair for text in compare or () for pair in _pairs(plan, text)]
    if fit is not None and fit not in (titles := [column.title for column in plan.columns]):
        console.fail(f"there is no column “{fit}”", f"the columns are {', '.join(titles)}", code=2)

    from archlang.train.runs.table import TableRuns
    from archlang.train.stop import Stop

    runs = TableRuns(plan, out or RUNS / plan.name, precision, device, devices, eager, also)
    terminal = console.out if form == "terminal" else console.err
    if not no_run:
        require_trust(plan.plans)
    if dry_run:
        from archlang.train.runs.engines import make_engine

        runner = make_engine(engine, workers, parse_sets(options), retries, devices)
        table_previews.print_estimate(runs, runner, workers, together)
        return
    if not no_run:
        ask_for(plan.plans, yes, terminal)
    failed = 0
    stop = Stop()
    if not no_run:
        points = runs.points(deadline_of(time_limit), save_interval(save))
        plans = {id(each): each for cell in plan.cells if not run or cell.row in chosen for each in cell.plans}
        points = tuple(point for point in points if id(point.plan) in plans)
        failed = _run(
            runs, points, len(plans), terminal, stop, together, (engine, workers, parse_sets(options), retries, devices)
        )
    _show_results(runs, compared, chosen, fit, parse_sets(sets), form, write)
    if code := stop.exit_code if stop.requested else failed:
        raise typer.Exit(code)


def _matching_rows(plan: TablePlan, titles: list[str] | None) -> list[TableRow]:
    """The rows whose titles match. Exits if titles are given and none does."""
    rows = [row for row in plan.rows if any(fnmatch.fnmatchcase(row.title, title) for title in titles or ())]
    if titles and not rows:
        near = next(filter(None, (did_you_mean(title, [row.title for row in plan.rows]) for title in titles)), None)
        existing = ", ".join(f"“{row.title}”" for row in plan.rows)
        remedy = f"the rows are {existing}" if near is None else f"did you mean “{near}”?"
        console.fail(f"unknown row {' or '.join(titles)}", remedy, code=2)
    return rows


def _pairs(plan: TablePlan, text: str) -> list[tuple[TableRow, TableRow]]:
    """The two rows of `--compare`, or each other row with the one that it names."""
    rows = {row.title: row for row in plan.rows if any(cell.row is row and cell.plans for cell in plan.cells)}
    if text in rows:
        return [(row, rows[text]) for title, row in rows.items() if title != text]
    commas = [index for index, sign in enumerate(text) if sign == ","]
    titles = [(text[:comma].strip(), text[comma + 1 :].strip()) for comma in commas]
    pair = next(((rows[left], rows[right]) for left, right in titles if {left, right} <= rows.keys()), None)
    if pair is None:
        remedy = "write the titles of two rows with a recipe: `--compare NDR,Transformer`"
        console.fail(f"`--compare {text}` does not name two rows that run", remedy, code=2)
    return [pair]


def _run(
    runs: TableRuns,
    points: tuple[Point, ...],
    total: int,
    terminal: Terminal,
    stop: Stop,
    together: bool,
    engine: tuple[str, int | None, dict[str, str], int, int],
) -> int:
    """Runs the unfinished points of `total` until `stop` is requested. Returns the exit code for those that failed."""
    from archlang.train.runs.engines import make_engine
    from archlang.train.runs.points import JOBS, group_seeds, make_folder

    if total > len(points):
        terminal.print(f"{total - len(points)} of {total} runs are done")
    if not points:
        return 0
    runner = make_engine(*engine)
    make_folder(runs.folder, [point.folder.name for point in points] + [JOBS])
    codes, stopped = set[int](), 0
    shown = RunsDisplay(terminal, runs.plan.name, len(points))
    with console.plain_warnings(), stop.listening(), shown.bar:
        results = runner.run(group_seeds(points) if together else points, lambda: stop.requested)
        for run in (run for result in results for run in result.per_run()):
            for line in run.warnings:
                terminal.print(f"warning: {run.point.name}: {line}")
            if run.is_elsewhere:
                terminal.print(f"running in another process: {run.point.name}")
            elif run.error:
                codes.add(71 if run.is_of_machine else 1)
                terminal.print(f"failed: {run.point.name}: {run.error}")
            if run.stopped and not run.error:
                stopped += 1
            else:
                shown.advance("" if run.error else f"done: {run.point.name}, {run.seconds:.1f} s; ")
    if stop.requested or stopped:
        terminal.print("stopped; rerun the command to resume")
    return min(codes, default=0)


class RunsDisplay:
    """How many runs of a table or a search have ended, and the time that the others will take: `bar` on a terminal, and
    lines in a log."""

    def __init__(self, terminal: Terminal, title: str, total: int) -> None:
        self.bar = console.progress(terminal, transient=False)
        self._task = self.bar.add_task(title, total=total)
        self._terminal, self._total, self._ended = terminal, total, 0
        self._begun = time.monotonic()

    def advance(self, event: str) -> None:
        """Counts a run that has ended, and what a log says about it."""
        self._ended += 1
        self.bar.advance(self._task)
        seconds, ended, total = time.monotonic() - self._begun, self._ended, self._total
        left = f", about {duration(seconds / ended * (total - ended))} left" if ended < total else ""
        if not self._terminal.is_terminal:
            self._terminal.print(f"{event}{ended} of {total} in {duration(seconds)}{left}")


def _show_results(
    runs: TableRuns,
    compared: list[tuple[TableRow, TableRow]],
    ranked: list[TableRow],
    fit: str | None,
    changed: dict[str, str],
    form: str,
    file: Path | None,
) -> None:
    from archlang.reports.pages import write_file
    from archlang.reports.result_table import TEXT_FORMATS, ResultTable, terminal_table

    plan = runs.plan
    spent = runs.time_spent()
    results = ResultTable.of(plan.name, plan.rows, plan.columns, runs.cell_results(), changed, spent, compared, fit)
    results = replace(results, ranked=tuple(ranked))
    if form == "terminal":
        console.out.print(terminal_table(results))
    else:
        console.out.write(TEXT_FORMATS[form](results))
    if file is not None and file.suffix in _PICTURES:
        from archlang.reports.table_picture import write_table_picture

        write_table_picture(results, file)
    elif file is not None and file.suffix == _RECORDS:
        from archlang.train.record.schemas import json_line

        write_file(file, "".join(map(json_line, runs.recorded())))
    elif file is not None:
        write_file(file, TEXT_FORMATS[_BY_SUFFIX[file.suffix]](results))


def tune(
    file: Annotated[Path, program_argument("A program whose recipe has a `search`.")],
    recipe: arguments.RecipeName = None,
    trials: Annotated[int, typer.Option(min=0, help="The number of further trials.")] = 20,
    sets: arguments.Sets = None,
    out: Annotated[Path | None, output("The folder of the study; one with the same settings is continued.")] = None,
    engine: arguments.Engine = "local",
    options: arguments.EngineOptions = None,
    workers: arguments.Workers = None,
    retries: arguments.Retries = 0,
    time_limit: arguments.TimeLimit = None,
    save: arguments.Save = "15m",
    prune: Annotated[
        str | None,
        typer.Option(
            help="Prune trials whose evaluations are worse than others': median or hyperband.",
            callback=matching("median|hyperband", "one of median, hyperband"),
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The seed of the search, not of the runs.")] = 0,
    device: arguments.Device = "auto",
    devices: arguments.Devices = 1,
    eager: arguments.Eager = False,
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

    from archlang.train.runs.engines import make_engine
    from archlang.train.runs.tune import Tuning
    from archlang.train.stop import Stop

    terminal = console.err if as_json else console.out
    require_trust([search.first()])
    ask_for([search.first()], yes, terminal)
    deadline = deadline_of(time_limit)
    folder = out or Path("runs") / "tune" / search.recipe
    tuning = Tuning(
        search, folder, seed, device, precision, deadline, save_interval(save), prune, devices, eager, not trials
    )
    shown, lost = RunsDisplay(terminal, search.recipe, trials), False
    with console.plain_warnings(), Stop().listening() as stop, shown.bar:
        runner = make_engine(engine, workers, parse_sets(options), retries, devices)
        for trial, result in tuning.run(trials, runner, lambda: stop.requested):
            reached = f"failed: {result.error}" if trial.value is None else f"{tuning.metric} {_value(trial)}"
            reached = "running in another process" if result.is_elsewhere else reached
            terminal.print(f"trial {trial.number}: {_values(trial.values)}: {reached}")
            shown.advance("")
            lost |= result.is_of_machine
    is_over = deadline is not None and time.time() >= deadline
    if stop.requested or is_over:
        terminal.print("stopped; rerun the command to resume")
    ranked, (unfinished, is_searched) = tuning.trials(), tuning.unfinished()
    state = "running in another process" if is_searched else "not done; it resumes with the next search"
    for trial in unfinished:
        terminal.print(f"trial {trial.number}: {_values(trial.values)}: {state}")
    if as_json:
        listed = [
            {"trial": trial.number, "values": trial.values, tuning.metric: trial.value, "pruned": trial.pruned}
            for trial in ranked
        ]
        best = search.text(ranked[0].sampled) if ranked else None
        console.out.write_json({"trials": listed, "best": best})
    elif ranked:
        _print_best(tuning, ranked)
    elif not (stop.requested or is_over or unfinished):
        console.fail(
            "no trial succeeded", "raise `--trials`, or see the failures above" if trials else "raise `--trials`"
        )
    if stop.requested or lost:
        raise typer.Exit(stop.exit_code if stop.requested else 71)


def _print_best(tuning: Tuning, ranked: list[Trial]) -> None:
    from archlang.reports.run_results import TextTable

    paths = [space.path for space in tuning.search.spaces]
    rows = [
        [str(trial.number), _value(trial), *(_text(trial.values[path]) for path in paths)]
        for trial in ranked[:_PRINTED_TRIALS]
    ]
    pruned = sum(trial.pruned for trial in ranked)
    title = f"The best trials; {pruned} of {len(ranked)} were pruned" if pruned else "The best trials"
    console.out.print(TextTable(title, ["trial", tuning.metric, *paths], rows).terminal())
    console.out.print(tuning.search.text(ranked[0].sampled))


def _value(trial: Trial) -> str:
    number = "" if trial.value is None else f"{trial.value:.4f}"
    return f"{number} (pruned)" if trial.pruned else number


def _values(values: Mapping[str, int | float | str | bool]) -> str:
    return ", ".join(f"{path} = {_text(value)}" for path, value in values.items())


def _text(value: float | str | bool) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:.4g}" if isinstance(value, float) else str(value)
