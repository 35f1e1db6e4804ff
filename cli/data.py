"""`archlang data`: fetch and verify published files, also for other commands, and show the splits of a task."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from archlang.cli import arguments, console
from archlang.cli.arguments import AsJson, parse_sets, program_file, setting
from archlang.errors.terminal import Terminal, text_column

if TYPE_CHECKING:
    from rich.progress import Progress

    from archlang.data.registry import Digest, OfficialFile
    from archlang.plan.plan import Plan

app = typer.Typer(
    name="data", help="List, fetch and verify published data, and show the splits of tasks.", no_args_is_help=True
)


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """List the published data sets with their sizes, and whether they are present.

    The JSON also has their licences and the tasks that read them.

    Example: archlang data list
    """
    from rich.text import Text

    from archlang.data import store
    from archlang.data.registry import DATASETS

    here = {
        name: sum(store.find(name, file.member) is not None for file in each.files) for name, each in DATASETS.items()
    }
    if as_json:
        rows = [
            {
                "name": name, "about": each.about, "tasks": list(each.tasks), "bytes": each.size,
                "files": len(each.files), "at_hand": here[name], "licence": each.licence, "home": each.home,
            }
            for name, each in DATASETS.items()
        ]  # fmt: skip
        console.out.write_json({"folder": str(store.folder()), "datasets": rows})
        return
    width = max(map(len, DATASETS)) + 2
    for name, each in DATASETS.items():
        shown = f"{here[name]} of {len(each.files)} here" if here[name] else "not here"
        line = Text(name.ljust(width), "bold")
        line.append(f"{console.size(each.size):>12}  {shown:<15}", "dim")
        console.print_row(line.append(each.about, "not bold"))
    console.out.print(f"their folder is {store.folder()}; `archlang data get NAME` fetches a data set")


@app.command()
def get(
    name: Annotated[str, typer.Argument(help="A data set of `archlang data list`.", show_default=False)],
    members: Annotated[list[str] | None, typer.Argument(help="Its files, such as `train.tsv`. Default: all.")] = None,
    as_json: AsJson = False,
) -> None:
    """Fetch a published data set into the folder of published files, and verify its digests.

    Intact files are not fetched again. Rerun the command to resume an interrupted download.

    Example: archlang data get scan
    """
    from archlang.data import store

    files = store.required(name, members or ())
    shown = console.err if as_json else console.out
    rows = []
    for file, place, digest in fetch_all(files, shown):
        rows.append({"dataset": file.dataset, "member": file.member, "place": str(place), "digest": str(digest)})
        if not as_json:
            console.out.print(f"{file.member}  {place}  {digest}")
        if file.digest is None:
            shown.print(f"{file.member} has no published digest: it is pinned to this one")
    if as_json:
        console.out.write_json(rows)


@app.command()
def verify(
    names: Annotated[list[str] | None, typer.Argument(help="Data sets; all if none is named.")] = None,
    as_json: AsJson = False,
) -> None:
    """Compare local files with their published digests, without fetching or changing anything.

    Exits with 1 if a file is damaged; missing files are not an error.

    Example: archlang data verify scan
    """
    from archlang.data import store
    from archlang.data.mistakes import DataError
    from archlang.data.registry import DATASETS

    rows: list[dict[str, str | None]] = []
    damaged: list[DataError] = []
    for file in [file for name in names or sorted(DATASETS) for file in store.required(name)]:
        try:
            verified = store.verify(file)
            state = "missing" if verified is None else "unknown" if file.digest is None else "right"
            place, digest = (None, None) if verified is None else (str(verified[0]), str(verified[1]))
        except DataError as error:
            damaged.append(error)
            state, place, digest = "damaged", str(store.find(file.dataset, file.member)), None
        row = {"dataset": file.dataset, "member": file.member, "state": state, "place": place, "digest": digest}
        rows.append(row)
        if not as_json and (state != "missing" or names):
            location = place or f"expected at {store.folder() / file.dataset / file.member}"
            console.out.print(f"{state:<10} {file.dataset}/{file.member}  {location}")
    if as_json:
        console.out.write_json(rows)
    else:
        here = sum(row["state"] != "missing" for row in rows)
        console.out.print(f"{here} of {len(rows)} files are present, {len(damaged)} of them damaged")
        for mistake in damaged:
            console.say(mistake.message, mistake.remedy)
    if damaged:
        raise typer.Exit(1)


@app.command()
def path(
    name: Annotated[str | None, typer.Argument(help="A data set; by default, the folder of all.")] = None,
    member: Annotated[str | None, typer.Argument(help="A file of the data set; it must be present.")] = None,
) -> None:
    """Print the path of published files.

    `ARCHLANG_DATA` sets the folder. Its files may be compressed with xz or gzip.

    Example: archlang data path scan
    """
    from archlang.data import store

    place = store.folder()
    if name is not None:
        place = place / store.dataset(name).name
    if name is not None and member is not None:
        store.required(name, [member])
        file = store.find(name, member)
        if file is None:
            console.fail(f"{place / member} is missing", f"run `archlang data get {name} {member}`")
        place = file
    console.out.write(str(place))


@app.command()
def show(
    task: Annotated[str, typer.Argument(help=r"A task as in a recipe: `scan\[split = length]`.", show_default=False)],
    sets: Annotated[list[str] | None, setting("A static of the task, such as `split=length`")] = None,
    split: arguments.Split = None,
    examples: Annotated[int, typer.Option("--examples", "-n", min=0, help="Items to show of each split.")] = 2,
    program: Annotated[Path | None, typer.Option(help="A program with further tasks.", callback=program_file)] = None,
    plugin: arguments.Plugin = None,
    allow: arguments.Allow = None,
    as_json: AsJson = False,
) -> None:
    r"""Show the splits of a task: sizes, histograms of lengths, groups, and the first items.

    Generated splits are cached for training. Nothing is fetched.

    Example: archlang data show "scan\[split = length]"
    """
    from archlang.reports.split_report import SplitReport, terminal_report

    if task.endswith(".arch"):
        console.fail(f"`{task}` is a program, not a task", f"write `archlang data show TASK --program {task}`", code=2)
    from archlang.plan.from_file import bind_task
    from archlang.plugins import Plugins
    from archlang.tasks.kit import cache, mistakes
    from archlang.tasks.kit.make_task import make_task

    bound = bind_task(task, parse_sets(sets), program, allow or ())
    folder = "" if program is None else program.parent
    instance = make_task(bound.name, bound.python, bound.statics, Plugins.read(plugin or (), folder))
    for name in split or ():
        if name not in instance.split_names():
            raise mistakes.unknown_split(bound.name, name, instance.split_names())
    reports = []
    for name in split or instance.split_names():
        with console.err.working(f"preparing {name} of {bound.name}"):
            items = cache.load(bound.name, bound.statics, instance, name, cache.DATA_SEED)
        reports.append(SplitReport.of(instance, name, items, examples))
    if as_json:
        statics = {name: str(value) for name, value in bound.statics.items()}
        facts = {"task": bound.name, "kind": instance.kind.value, "vocabulary": len(instance.vocabulary)}
        splits = {report.name: report.to_json() for report in reports}
        console.out.write_json({**facts, "statics": statics, "splits": splits})
        return
    words = len(instance.vocabulary)
    content = f"{words:,} tokens in its vocabulary" if words else "rows of numbers"
    console.out.print(terminal_report(f"{bound.name}: {instance.kind.value}, {content}", reports), soft_wrap=False)


def fetch_all(files: Sequence[OfficialFile], shown: Terminal) -> Iterator[tuple[OfficialFile, Path, Digest]]:
    """Fetches files one after another, unless they are present and intact. Yields each with its path and its digest.

    Raises:
        DataError: a file cannot be fetched."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    from archlang.data.fetch import fetch

    for file in files:
        bar = Progress(
            text_column("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn(),
            TimeRemainingColumn(), console=shown, disable=not shown.is_terminal, transient=True,
        )  # fmt: skip
        with bar:
            place, digest = fetch(file, _Watcher(file, shown, bar))
        yield file, place, digest


def ask_for(plans: Iterable[Plan], yes: bool, shown: Terminal) -> None:
    """Fetches the missing files that the tasks of these plans read, if the user confirms it by `--yes` or on a
    terminal."""
    from archlang.plan.required_data import missing_files

    missing = missing_files(plans)
    if not missing:
        return
    sets = " ".join(dict.fromkeys(file.dataset for file in missing))
    if not yes:
        if not _may_ask():
            message = f"{_summary(missing)} to be fetched first, and there is no terminal to confirm it on"
            console.fail(message, f"run `archlang data get {sets}`, or add `--yes`")
        shown.print(f"{_summary(missing)} to be fetched first:")
        for file in missing:
            details = f"{console.size(file.size)}, licence: {file.licence}, from {file.url}"
            shown.print(f"  {file.dataset}/{file.member}, {details}")
        if not console.confirm("fetch them now?"):
            console.fail("nothing was fetched", f"run `archlang data get {sets}` to fetch the files")
    for file, place, _ in fetch_all(missing, shown):
        shown.print(f"{file.dataset}/{file.member} is in {place}")


def _summary(files: Sequence[OfficialFile]) -> str:
    sizes = [file.size for file in files if file.size is not None]
    total = f" ({console.size(sum(sizes))})" if len(sizes) == len(files) else ""
    names = ", ".join(dict.fromkeys(file.dataset for file in files))
    return f"1 file of {names}{total} has" if len(files) == 1 else f"{len(files)} files of {names}{total} have"


def _may_ask() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


class _Watcher:
    """Moves a progress bar; without a terminal, prints one line at the beginning."""

    def __init__(self, file: OfficialFile, shown: Terminal, bar: Progress) -> None:
        self._file, self._shown, self._bar = file, shown, bar
        self._task = bar.add_task(file.member, total=file.size, start=False)
        self._begun = False

    def waiting(self) -> None:
        self._bar.console.print(f"another process is fetching {self._file.member}; waiting for it")

    def moved(self, done: int, total: int | None) -> None:
        if not self._begun:
            self._begun = True
            self._bar.reset(self._task, start=True, total=total, completed=done)
            if not self._shown.is_terminal:
                details = f"{console.size(self._file.size)}, licence: {self._file.licence}"
                self._shown.print(f"fetching {self._file.url}, {details}")
        self._bar.update(self._task, completed=done, total=total)
