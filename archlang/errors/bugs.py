"""The last internal error: kept in the cache folder, so that `archlang bug` can print it."""

import shlex
import sys
import traceback
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from archlang.disk.cache_folder import cache_folder
from archlang.disk.folder import write_atomically
from archlang.disk.readable import read_named

REMEDY = "this is a bug in archlang; `archlang bug` prints what to report, and where"
# Characters of a program and of a traceback, whose last lines say the most; and bytes of the file with both.
_MOST = 20_000
_MOST_BYTES = 1_000_000


def keep_bug(error: BaseException, paths: Iterable[str | Path] = (), text: str = "") -> None:
    """Keeps an internal error with its command, and with the programs at `paths` or the `text` of one, in place of the
    error before; keeps nothing if the cache folder cannot be written."""
    programs = [text] if text else []
    for path in paths:
        with suppress(OSError):
            programs.append(read_named(path, _MOST).decode("utf-8", "replace"))
    shown = [f"```arch\n{program[:_MOST].rstrip()}\n```" for program in programs]
    trace = "".join(traceback.format_exception(error))[-_MOST:].rstrip()
    report = "\n\n".join([f"`{shlex.join(['archlang', *sys.argv[1:]])}`", *shown, f"```text\n{trace}\n```"])
    with suppress(OSError):
        _file().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomically(_file(), report.encode("utf-8", "replace")[:_MOST_BYTES], durable=False)


def kept_bug() -> str | None:
    """Returns the internal error that was kept last, as Markdown; None if there is none."""
    try:
        return read_named(_file(), _MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return None


def _file() -> Path:
    return cache_folder() / "bug.md"
