"""`archlang table --dry-run`: what the unfinished runs of a table cost, on this machine and on another one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from archlang.cli import console
from archlang.diagnostics.terminal import text_column

if TYPE_CHECKING:
    from collections.abc import Callable

    from archlang.data.registry import OfficialFile
    from archlang.runs.cost import RunCost
    from archlang.runs.points import Point
    from archlang.runs.table import TableRuns

_PREFIXES = ("", "k", "M", "G", "T", "P", "E", "Z")

# The recipe and all settings except the seed: runs of one kind cost the same.
_Kind = tuple[str, ...]


def flops_per_second(text: str) -> float | None:
    """Returns the number of a speed such as `20TFLOP/s`; None if the text is no speed.

    >>> flops_per_second("20TFLOP/s"), flops_per_second("2e1tflop/s"), flops_per_second("fast")
    (20000000000000.0, 20000000000000.0, None)
    """
    match = re.fullmatch(rf"(\d+(?:\.\d+)?(?:e\+?\d\d?)?) ?([{''.join(_PREFIXES)}]?)FLOP/S", text, re.IGNORECASE)
    if match is None or float(match[1]) == 0:
        return None
    return float(match[1]) * 1000.0 ** [prefix.upper() for prefix in _PREFIXES].index(match[2].upper())


def print_estimate(runs: TableRuns, workers: int | None, together: bool, speed: float | None) -> None:
    """Prints the unfinished runs: files that must be fetched first; the FLOPs of each kind of run; after a few steps of
    each kind, how long every run takes on this machine; and the cost of all, also at `speed` in FLOPs a second.

    Raises:
        RunError: a run cannot begin.
        TaskError: a task cannot be made."""
    from archlang.graph.text import print_graph
    from archlang.runs.cost import estimate_cost, seconds_per_step
    from archlang.runs.required_data import missing_files, missing_user_files

    points = runs.points()
    kinds: dict[_Kind, list[Point]] = {}
    for point in points:
        kinds.setdefault(_kind(point), []).append(point)
    missing = {kind: missing_files([same[0].plan]) for kind, same in kinds.items()}
    _print_missing(kinds, missing)
    absent = {kind: missing_user_files(same[0].plan) for kind, same in kinds.items()}
    _print_absent(kinds, absent)
    ready = {kind: same for kind, same in kinds.items() if not missing[kind] and not absent[kind]}

    costs: dict[_Kind, RunCost] = {}
    prepared: set[str] = set()
    with _progress(len(ready)) as show:
        for kind, same in ready.items():
            task = same[0].plan.task
            show(f"preparing the data of {task.name}, and counting FLOPs: {_title(same[0])}")
            if not console.out.is_terminal and repr(task) not in prepared:
                console.out.print(f"preparing the data of {task.name}")
            prepared.add(repr(task))
            cost = costs[kind] = estimate_cost(same[0].plan)
            console.out.print(
                f"{_title(same[0])}: {cost.steps:,} {'step' if cost.steps == 1 else 'steps'}, "
                f"about {'at least ' if cost.uncounted else ''}{_flops(cost.flops)}"
            )
    seconds: dict[_Kind, float] = {}
    # By the model and the training, the seconds of a FLOP: runs that differ in their task alone are timed once.
    seconds_per_flop: dict[tuple[str, str], float] = {}
    with _progress(len(ready)) as show:
        for kind, same in ready.items():
            show(f"timing a few steps: {_title(same[0])}")
            plan, cost = same[0].plan, costs[kind]
            work = print_graph(plan.graph), repr(plan.train)
            if work in seconds_per_flop:
                seconds[kind] = seconds_per_flop[work] * cost.flops
            else:
                seconds[kind] = seconds_per_step(same[0], cost) * cost.steps
                if cost.flops and not cost.uncounted:
                    seconds_per_flop[work] = seconds[kind] / cost.flops
            for point in same:
                console.out.print(f"{point.name}, about {duration(seconds[kind])}, in {point.folder}")
    total = sum(seconds[kind] * len(same) for kind, same in ready.items())
    flops = sum(costs[kind].flops * len(same) for kind, same in ready.items())
    _print_total(runs, points, sum(map(len, ready.values())), total, workers, together)
    if flops and total:
        console.out.print(f"these are about {_flops(flops)}, at {_flops(flops / total)}/s on this machine")
    if flops and speed is not None:
        console.out.print(f"at {_flops(speed)}/s: about {duration(flops / speed)} of training, without evaluations")


def _kind(point: Point) -> _Kind:
    settings = {name: value for name, value in point.plan.settings.items() if name != "seed"}
    return (point.plan.recipe, *(f"{name}={value}" for name, value in sorted(settings.items())))


def _title(point: Point) -> str:
    return point.name.removesuffix(f", seed {point.plan.seed}")


def _print_missing(kinds: dict[_Kind, list[Point]], missing: dict[_Kind, tuple[OfficialFile, ...]]) -> None:
    """Prints the files without which runs cannot be estimated, and the command that fetches them."""
    from archlang.cli.downloads import size

    files: Iterable[OfficialFile] = dict.fromkeys(file for needed in missing.values() for file in needed)
    for file in files:
        console.out.print(f"must be fetched first: {file.dataset}/{file.member}, {size(file.size)}, from {file.url}")
    count = sum(len(same) for kind, same in kinds.items() if missing[kind])
    if count:
        sets = " ".join(dict.fromkeys(file.dataset for file in files))
        console.out.print(
            f"{count} {'run needs' if count == 1 else 'runs need'} these files and cannot be estimated; "
            f"fetch them with `archlang data get {sets}`"
        )


def _print_absent(kinds: dict[_Kind, list[Point]], absent: dict[_Kind, tuple[str, ...]]) -> None:
    """Prints the files of the user's own without which runs cannot be estimated."""
    counts: dict[str, int] = {}
    for kind, files in absent.items():
        for path in files:
            counts[path] = counts.get(path, 0) + len(kinds[kind])
    for path, count in counts.items():
        verb = "run needs" if count == 1 else "runs need"
        console.out.print(f"missing: {path}, which {count} {verb}")


def _print_total(
    runs: TableRuns, points: tuple[Point, ...], estimated: int, total: float, workers: int | None, together: bool
) -> None:
    from archlang.runs.engines import LocalEngine
    from archlang.runs.points import group_seeds

    at_once = min(LocalEngine(workers).workers, max(len(points), 1))
    counts = (
        f"{len(points)} {'run' if len(points) == 1 else 'runs'} to train and {len(runs.plan.plans) - len(points)} done"
    )
    if not estimated:
        console.out.print(counts)
        return
    of = "" if estimated == len(points) else f" of {estimated} of them"
    console.out.print(
        f"{counts}; about {duration(total)} of training{of}, "
        f"{duration(total / at_once)} with {at_once} at a time, without evaluations"
    )
    if together:
        groups = len(group_seeds(points))
        console.out.print(f"together they would be {groups} models; the times are those of solo runs")


@contextmanager
def _progress(count: int) -> Iterator[Callable[[str], None]]:
    """Shows a bar of `count` steps on a terminal. Yields what begins the next step, with its title."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn

    terminal = console.out
    bar = Progress(
        text_column("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=terminal,
        disable=not terminal.is_terminal, transient=True,
    )  # fmt: skip
    with bar:
        task = bar.add_task("", total=count, completed=-1)
        yield lambda title: bar.update(task, description=title, advance=1)


def _flops(count: float) -> str:
    """Returns a number of FLOPs in a readable unit.

    >>> _flops(3.2e15), _flops(950)
    ('3.2 PFLOP', '950 FLOP')
    """
    power = 0
    while count >= 999.5 and power < len(_PREFIXES) - 1:
        count, power = count / 1000, power + 1
    return f"{count:.3g} {_PREFIXES[power]}FLOP"


def duration(seconds: float) -> str:
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"
