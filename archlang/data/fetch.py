"""Downloads of published files: resumed after an interruption, and verified.

A download is written to `.NAME.part`. An interrupted download keeps this file, and the next attempt requests only the
rest. A download with the wrong digest, or one that a full disk interrupts, is deleted."""

from __future__ import annotations

import errno
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol

from filelock import FileLock, Timeout

from archlang.data import mistakes, store
from archlang.data.registry import Digest, OfficialFile
from archlang.data.stored import Stored
from archlang.disk.folder import write_atomically
from archlang.disk.os_errors import os_errors_as
from archlang.errors.machine import needs_extra

if TYPE_CHECKING:
    from requests import Response

_CHUNK = 1 << 16
_TIMEOUT = 30
# Seconds to wait before each retry; the number of retries in a row without progress.
_WAITS = (1.0, 2.0, 5.0)
_FULL = (errno.ENOSPC, errno.EDQUOT)
_PARTIAL, _BEYOND, _TOO_MANY, _THEIR_FAULT = 206, 416, 429, 500

Sleep = Callable[[float], None]
Arrived = tuple[Path, Digest]


class DownloadWatcher(Protocol):
    """Receives the progress of a download."""

    def waiting(self) -> None:
        """Another process is fetching the same file."""
        return

    def moved(self, done: int, total: int | None) -> None:
        """`done` of `total` bytes have arrived."""
        return


class Silent(DownloadWatcher):
    """Ignores progress."""


def fetch(file: OfficialFile, watcher: DownloadWatcher | None = None, *, sleep: Sleep = time.sleep) -> Arrived:
    """Fetches a published file unless it is present and intact. Returns its path and its digest.

    Raises:
        DataError: the file cannot be fetched, has the wrong digest, or the disk is full."""
    watcher = watcher or Silent()
    place = store.folder() / file.dataset / file.stored
    arrived = _intact_file(file)
    if arrived is None:
        with _locked(place, watcher):
            # Another process may have been first.
            arrived = _intact_file(file) or _download(file, place, watcher, sleep)
    return arrived


def _intact_file(file: OfficialFile) -> Arrived | None:
    try:
        return store.verify(file, anew=False)
    except mistakes.DataError:
        return None


@contextmanager
def _locked(place: Path, watcher: DownloadWatcher) -> Iterator[None]:
    """Holds the lock of a file, so that one process at a time fetches it."""
    lock = FileLock(place.with_name(f".{place.name}.lock"))
    with os_errors_as(mistakes.not_written, place):
        place.parent.mkdir(parents=True, exist_ok=True)
        try:
            lock.acquire(timeout=0)
        except Timeout:
            watcher.waiting()
            lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _download(file: OfficialFile, place: Path, watcher: DownloadWatcher, sleep: Sleep) -> Arrived:
    """Fetches a file. The caller holds its lock."""
    part = _Part(file, place)
    with os_errors_as(mistakes.not_written, place):
        part.require_room()
    try:
        with os_errors_as(mistakes.not_written, place):
            part.download(watcher, sleep)
            return place, part.finish()
    except mistakes.BrokenOffError:
        if not part.here():
            part.remove()
        raise
    except mistakes.DataError:
        part.remove()
        raise


class _Part:
    """The unfinished download of a file, next to its destination."""

    def __init__(self, file: OfficialFile, place: Path) -> None:
        self._file = file
        self._place = place
        self._path = place.with_name(f".{place.name}.part")
        self._stored = Stored(self._path, "" if file.stored == file.member else Path(file.stored).suffix)

    # The registry has the size of the decompressed content, so the size of a compressed file is unknown.
    @property
    def _size(self) -> int | None:
        return None if self._stored.ending else self._file.size

    def here(self) -> int:
        """Returns the number of bytes that have arrived."""
        return self._path.stat().st_size if self._path.exists() else 0

    def require_room(self) -> None:
        """
        Raises:
            DataError: the disk has too little free space for the rest."""
        missing = (self._file.size or 0) - self.here()
        free = shutil.disk_usage(self._place.parent).free
        if missing > free:
            raise mistakes.too_little_room(self._place, missing, free)

    def remove(self) -> None:
        self._path.unlink(missing_ok=True)

    def finish(self) -> Digest:
        """Verifies the download and moves it to its destination.

        Raises:
            DataError: its digest is wrong."""
        try:
            digest = store.check(self._stored, self._file, anew=True)
        except mistakes.DamagedError as error:
            raise mistakes.other_content(self._file.url, self._place, error.actual, error.expected) from error
        self._path.replace(self._place)
        if self._file.digest is None:
            write_atomically(store.pin_of(self._place), f"{digest.value}  {self._place.name}\n")
        return digest

    # HTTP

    def download(self, watcher: DownloadWatcher, sleep: Sleep) -> None:
        """Fetches the missing bytes, and retries after interruptions.

        Raises:
            BrokenOffError: too many retries brought no progress.
            DataError: the server does not serve the file."""
        # Without any progress, one retry is enough: the server is probably unreachable.
        waits = list(_WAITS[:1])
        while True:
            before = self.here()
            reason = self._attempt(watcher)
            if reason is None:
                return
            if self.here() > before:
                waits = list(_WAITS)
            elif not waits:
                raise mistakes.broken_off(self._file.url, self._place, reason, self._file.digest, self.here())
            sleep(waits.pop(0))

    def _attempt(self, watcher: DownloadWatcher) -> str | None:
        """Makes one request for the rest. Returns None if the file is complete, else the reason."""
        with needs_extra("data"):
            import requests

        # With compression in transit, a byte range would not mean a position in the file.
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={self.here()}-"} if self.here() else {})
        try:
            with (
                self._path.open("ab") as target,
                requests.get(self._file.url, headers=headers, stream=True, timeout=_TIMEOUT) as answer,
            ):
                answer.raise_for_status()
                self._transfer(answer, target, watcher)
        except requests.HTTPError as error:
            status = error.response.status_code if error.response is not None else 0
            if status == _BEYOND:
                # The download was already complete, or too long.
                return None
            if status == _TOO_MANY or status >= _THEIR_FAULT:
                return f"the server answers {status}"
            raise mistakes.not_served(self._file.url, self._place, status, self._file.digest) from error
        except requests.RequestException as error:
            return _plain(error)
        except OSError as error:
            if error.errno in _FULL:
                raise mistakes.no_room_for(error.strerror, self._place) from error
            raise
        if self._size is not None and self.here() < self._size:
            return f"the connection ended after {self.here():,} of {self._size:,} bytes"
        return None

    def _transfer(self, answer: Response, target: IO[bytes], watcher: DownloadWatcher) -> None:
        from requests import RequestException

        # Aligns the download with the bytes that the server is about to send.
        if answer.status_code != _PARTIAL:
            target.truncate(0)
        elif not answer.headers.get("Content-Range", "").startswith(f"bytes {target.tell()}-"):
            raise RequestException("the server sends a different range than requested", response=answer)
        expected = self._size or target.tell() + int(answer.headers.get("Content-Length", 0))
        for chunk in answer.iter_content(_CHUNK):
            target.write(chunk)
            watcher.moved(target.tell(), max(expected, target.tell()))


def _plain(error: Any) -> str:  # Any: the reasons of requests are nested arbitrarily
    while (inner := getattr(error, "reason", None) or next(iter(getattr(error, "args", ())), None)) is not None:
        if isinstance(inner, str):
            return inner
        error = inner
    return str(error) or type(error).__name__
