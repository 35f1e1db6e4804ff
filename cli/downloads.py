"""Downloads with a progress bar, and the confirmation before them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from archlang.cli import console
from archlang.diagnostics.terminal import Terminal, text_column

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from archlang.data.digests import Digest
    from archlang.data.registry import OfficialFile
    from archlang.plan.plan import Plan


def size(count: int | None) -> str:
    """Returns a number of bytes in a readable unit.

    >>> size(267_599_061), size(180), size(None)
    ('267.6 MB', '180 B', 'size unknown')
    """
    if count is None:
        return "size unknown"
    if count < 1000:
        return f"{count} B"
    for power, unit in ((3, "GB"), (2, "MB")):
        if count >= 1000**power:
            return f"{count / 1000**power:.1f} {unit}"
    return f"{count / 1000:.1f} kB"


def fetch_all(files: Sequence[OfficialFile], shown: Terminal) -> Iterator[tuple[OfficialFile, Path, Digest]]:
    """Fetches files one after another, unless they are at hand and intact. Yields each with its path and its digest.

    Raises:
        DataError: a file cannot be fetched."""
    from archlang.data.fetch import fetch

    for file in files:
        with _watched(file, shown) as watcher:
            place, digest = fetch(file, watcher)
        yield file, place, digest


def ask_for(plans: Iterable[Plan], yes: bool, shown: Terminal) -> None:
    """Fetches the missing files that the tasks of these plans read, if the user confirms it by `--yes` or on a
    terminal."""
    from archlang.runs.required_data import missing_files

    missing = missing_files(plans)
    if not missing:
        return
    sets = " ".join(dict.fromkeys(file.dataset for file in missing))
    if not yes:
        if not _may_ask():
            console.fail(
                f"{_summary(missing)} to be fetched first, and there is no terminal to confirm it on",
                f"run `archlang data get {sets}`, or add `--yes`",
            )
        shown.print(f"{_summary(missing)} to be fetched first:")
        for file in missing:
            details = f"{size(file.size)}, licence: {file.licence}, from {file.url}"
            shown.print(f"  {file.dataset}/{file.member}, {details}")
        if not console.confirm("fetch them now?"):
            console.fail("nothing was fetched", f"run `archlang data get {sets}` to fetch the files")
    for file, place, _ in fetch_all(missing, shown):
        shown.print(f"{file.dataset}/{file.member} is in {place}")


def _summary(files: Sequence[OfficialFile]) -> str:
    sizes = [file.size for file in files if file.size is not None]
    total = f" ({size(sum(sizes))})" if len(sizes) == len(files) else ""
    names = ", ".join(dict.fromkeys(file.dataset for file in files))
    return f"1 file of {names}{total} has" if len(files) == 1 else f"{len(files)} files of {names}{total} have"


def _may_ask() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


class _Watcher:
    """Moves a progress bar; without a terminal, prints one line at the beginning."""

    def __init__(self, file: OfficialFile, shown: Terminal, bar: Progress, task: TaskID) -> None:
        self._file, self._shown, self._bar, self._task = file, shown, bar, task
        self._begun = False

    def waiting(self) -> None:
        self._bar.console.print(f"another process is fetching {self._file.member}; waiting for it")

    def moved(self, done: int, total: int | None) -> None:
        if not self._begun:
            self._begun = True
            self._bar.reset(self._task, start=True, total=total, completed=done)
            if not self._shown.is_terminal:
                details = f"{size(self._file.size)}, licence: {self._file.licence}"
                self._shown.print(f"fetching {self._file.url}, {details}")
        self._bar.update(self._task, completed=done, total=total)


@contextmanager
def _watched(file: OfficialFile, shown: Terminal) -> Iterator[_Watcher]:
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    bar = Progress(
        text_column("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn(),
        TimeRemainingColumn(), console=shown, disable=not shown.is_terminal, transient=True,
    )  # fmt: skip
    with bar:
        yield _Watcher(file, shown, bar, bar.add_task(file.member, total=file.size, start=False))
