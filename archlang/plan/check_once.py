"""Checks a program once: one without mistakes is not checked again until a text that the check has read changes.

The cache folder has a small JSON file for each program without mistakes and warnings. It has the digests of the texts
that the check has read, where the paths in them lead, and the digest of archlang itself. Programs with mistakes are
checked every time."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterable
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from archlang.diagnostics import Diagnostic
from archlang.files.atomic import write_atomically
from archlang.files.readable import ReadableFolders, read_named
from archlang.source import package
from archlang.source.cache_folder import cache_folder

if TYPE_CHECKING:
    from archlang.names.resolve import Loader

_ENDINGS = (".py", ".arch", ".lark", ".tsv")
_PACKAGES = ("lark", "numpy")
_LARGEST = 1 << 20
"""the largest record and the largest text, in bytes"""


def check_once(path: str | Path, allow: Iterable[str | Path] = ()) -> tuple[Diagnostic, ...]:
    """Returns every mistake of a file, as `check` does; none at once if nothing has changed since it had none."""
    allow = tuple(allow)
    record = _record_file(path, allow)
    if record is not None and _is_current(record):
        return ()
    # Imported for files that are checked only: they take longer than reading the record.
    from archlang.names.resolve import Loader
    from archlang.plan.check import check_with

    loader = Loader(allow)
    diagnostics = check_with(loader, path)
    if record is not None and not diagnostics:
        _write(record, loader)
    return diagnostics


def _record_file(path: str | Path, allow: Iterable[str | Path]) -> Path | None:
    """Returns the file of the record of a program that may name files of `allow`; None without a cache folder."""
    try:
        key = json.dumps([os.path.realpath(path), *ReadableFolders.of_program(path, allow).folders])
        return cache_folder() / "checked" / f"{_digest(key.encode())[:32]}.json"
    except OSError:
        return None


def _is_current(record: Path) -> bool:
    """Whether the record of a program is of this archlang, and every text that its check has read is the same."""
    try:
        stored = json.loads(read_named(record, _LARGEST))
        links, texts = stored["links"], stored["texts"]
        return (
            stored["checker"] == _checker()
            and all(os.path.realpath(path) == real for path, real in links.items())
            and all(_digest(read_named(real, _LARGEST)) == digest for real, digest in texts.items())
        )
    # A missing or damaged record, or a text that cannot be read: the check says why.
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return False


def _write(record: Path, loader: Loader) -> None:
    """Writes the record of a program without mistakes."""
    texts = {real: _digest(text.encode("utf-8", "surrogatepass")) for real, text in loader.texts().items()}
    try:
        # Of data files a check reads only where their paths lead. Later checks may run in another folder.
        links = {os.path.join(os.getcwd(), path): real for path, real in loader.named_paths().items()}
        content = {"checker": _checker(), "links": links, "texts": texts}
        record.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomically(record, json.dumps(content), durable=False)
    except OSError:
        return  # it is checked again the next time


@cache
def _checker() -> str:
    """Returns the digest of what finds mistakes: archlang's own files, Python, and the packages that a check uses."""
    digest = hashlib.sha256(sys.version.encode())
    for name in _PACKAGES:
        digest.update(f"{name} {_version(name)}".encode())
    for folder, folders, files in os.walk(package.FOLDER, followlinks=True):
        folders[:] = sorted(name for name in folders if name not in ("__pycache__", "recipes"))
        for name in sorted(files):
            if name.endswith(_ENDINGS):
                path = os.path.join(folder, name)
                content = Path(path).read_bytes()
                digest.update(f"{path} {len(content)}".encode("utf-8", "surrogateescape"))
                digest.update(content)
    return digest.hexdigest()


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None  # as numpy is in a browser


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
