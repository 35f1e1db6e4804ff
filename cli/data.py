"""`archlang data`: published files fetched and checked, and what the splits of a task hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from archlang.cli import console
from archlang.cli.downloads import fetch_all, size
from archlang.cli.settings import parse_sets

if TYPE_CHECKING:
    from archlang.data.registry import OfficialFile

app = typer.Typer(
    name="data", help="List, fetch and check published data, and show what tasks hold.", no_args_is_help=True
)

AsJson = Annotated[bool, typer.Option("--json", help="Print as JSON.")]


@app.command("list")
def list_(as_json: AsJson = False) -> None:
    """List the published data sets: how large each is, how much of it is at hand, and what it is.

    Its licence, and the tasks that read it, are in the JSON.

    Example: archlang data list
    """
    from rich.text import Text

    from archlang.data import store
    from archlang.data.registry import DATASETS

    here = {name: sum(store.at_hand(file) is not None for file in known.files) for name, known in DATASETS.items()}
    if as_json:
        told = [
            {
                "name": name, "about": known.about, "tasks": list(known.tasks), "bytes": known.size,
                "files": len(known.files), "at_hand": here[name], "licence": known.licence, "home": known.home,
            }
            for name, known in DATASETS.items()
        ]  # fmt: skip
        print(json.dumps({"folder": str(store.folder()), "datasets": told}, indent=2, ensure_ascii=False))
        return
    names = max(map(len, DATASETS)) + 2
    for name, known in DATASETS.items():
        line = Text(name.ljust(names), "bold")
        line.append(f"{size(known.size):>12}  {_at_hand(name, here[name], len(known.files)):<15}", "dim")
        line.append(known.about, "not bold")
        if console.out.is_terminal:
            console.out.print(line, no_wrap=True, overflow="ellipsis", soft_wrap=False)
        else:
            console.out.print(line)
    console.out.print(f"they lie in {store.folder()}; `archlang data get NAME` fetches one", markup=False)


def _at_hand(name: str, here: int, files: int) -> str:
    """How much of a data set is at hand; what an archive holds may be there by itself."""
    from archlang.data import store
    from archlang.data.registry import DATASETS

    place = store.folder() / name
    if here or not place.is_dir():
        return f"{here} of {files} here" if here else "not here"
    begins = tuple(held.member for holds in DATASETS[name].archives.values() for held in holds)
    return "here in parts" if any(file.name.startswith(begins) for file in place.iterdir()) else "not here"


@app.command()
def get(
    name: Annotated[str, typer.Argument(help="A data set of `archlang data list`.", show_default=False)],
    members: Annotated[
        list[str] | None, typer.Argument(help="Files of it, as in `train.tsv`; without any, all are fetched.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Fetch a published data set, check its digests, and put it where the tasks look for it.

    What is at hand and whole is not fetched again. A download that broke off is gone on with by the same command.

    Example: archlang data get scan
    """
    from archlang.data import required_files

    wanted = required_files.files(name, members or ())
    shown = console.err if as_json else console.out
    told = []
    for file, place, digest in fetch_all(wanted, shown):
        told.append({"dataset": file.dataset, "member": file.member, "place": str(place), "digest": str(digest)})
        if not as_json:
            console.out.print(f"{file.member}  {place}  {digest}", markup=False)
        if file.digest is None:
            shown.print(f"nobody has published a digest of {file.member}: it is pinned to this one", markup=False)
    if as_json:
        print(json.dumps(told, indent=2, ensure_ascii=False))


@app.command()
def verify(
    names: Annotated[list[str] | None, typer.Argument(help="Data sets; without any, all.")] = None,
    as_json: AsJson = False,
) -> None:
    """Compare the files that are at hand with the published digests. Nothing is fetched or changed.

    Ends with 1 if a file is not what was published; files that are not at hand are no mistake.

    Example: archlang data verify scan
    """
    from archlang.data import required_files, store
    from archlang.data.mistakes import DataError
    from archlang.data.registry import DATASETS

    told: list[dict[str, str | None]] = []
    wrong: list[DataError] = []
    for file in [file for name in names or sorted(DATASETS) for file in required_files.files(name)]:
        try:
            found = store.verify(file)
            state = _state(file, found is not None)
            place, digest = (None, None) if found is None else (str(found[0]), str(found[1]))
        except DataError as error:
            wrong.append(error)
            state, place, digest = "damaged", str(store.at_hand(file)), None
        told.append(
            {"dataset": file.dataset, "member": file.member, "state": state, "place": place, "digest": digest}
        )  # fmt: skip
        if not as_json and (state != "missing" or names):
            where = place or f"would be {store.folder() / file.dataset / file.member}"
            console.out.print(f"{state:<10} {file.dataset}/{file.member}  {where}", markup=False)
    if as_json:
        print(json.dumps(told, indent=2, ensure_ascii=False))
    else:
        here = sum(one["state"] != "missing" for one in told)
        console.out.print(f"{here} of {len(told)} files are at hand, {len(wrong)} of them damaged", markup=False)
        for mistake in wrong:
            console.say(mistake.message, mistake.remedy)
    if wrong:
        raise typer.Exit(1)


def _state(file: OfficialFile, here: bool) -> str:
    if not here:
        return "missing"
    return "right" if file.digest is not None else "unknown"


@app.command()
def path(
    name: Annotated[str | None, typer.Argument(help="A data set; without one, the folder of all.")] = None,
    member: Annotated[str | None, typer.Argument(help="A file of it, which must be at hand.")] = None,
) -> None:
    """Print where published files are, or where they are looked for.

    `ARCHLANG_DATA` names the folder. Its files may be packed with xz or gzip.

    Example: archlang data path scan
    """
    from archlang.data import required_files, store

    place = store.folder()
    if name is not None:
        place = place / required_files.dataset(name).name
    if name is not None and member is not None:
        required_files.files(name, [member])
        found = store.find(name, member)
        if found is None:
            console.fail(f"{place / member} is not at hand", f"run `archlang data get {name} {member}`")
        place = found
    print(place)


@app.command()
def show(
    task: Annotated[
        str, typer.Argument(help="A task, as a recipe names it: `scan`, `scan[split = length]`.", show_default=False)
    ],
    sets: Annotated[
        list[str] | None, typer.Option("--set", help="A static of the task, as in `split=length`; may be repeated.")
    ] = None,
    split: Annotated[list[str] | None, typer.Option("--split", help="A split; may be repeated.")] = None,
    examples: Annotated[int, typer.Option("--examples", "-n", min=0, help="How many items of each split.")] = 2,
    program: Annotated[Path | None, typer.Option("--program", help="A program whose own tasks are known too.")] = None,
    plugin: Annotated[
        Path | None, typer.Option("--plugin", help="The Python file of a task of your own. It is run.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what a task's splits hold: sizes, histograms of lengths, groups, and the first items.

    What is generated is kept, and a training of the same task reads it. Nothing is fetched.

    Example: archlang data show "scan[split = length]"
    """
    from rich.markup import escape

    from archlang.pages.reports.split_report import SplitReport, terminal_report
    from archlang.plan.from_file import bind_task
    from archlang.tasks.kit import cache, mistakes
    from archlang.tasks.kit.make_task import make_task

    chosen = bind_task(task, parse_sets(sets), program)
    made = make_task(chosen.name, chosen.python, chosen.statics, "" if plugin is None else str(plugin))
    for name in split or ():
        if name not in made.split_names():
            raise mistakes.unknown_split(chosen.name, name, made.split_names())
    reports = []
    for name in split or made.split_names():
        with console.err.status(escape(f"preparing {name} of {chosen.name}")):
            items = cache.load(chosen.name, chosen.statics, made, name, cache.DATA_SEED)
        reports.append(SplitReport.of(made, name, items, examples))
    if as_json:
        statics = {name: str(value) for name, value in chosen.statics.items()}
        facts = {"task": chosen.name, "kind": made.kind.value, "vocabulary": len(made.vocabulary), "statics": statics}
        splits = {report.name: report.to_json() for report in reports}
        print(json.dumps({**facts, "splits": splits}, indent=2, ensure_ascii=False))
        return
    title = f"{chosen.name}: {made.kind.value}, {len(made.vocabulary):,} words in its vocabulary"
    console.out.print(terminal_report(title, reports), soft_wrap=False)
