"""Files that may be compressed with xz or gzip, read as their decompressed content."""

import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from archlang.data import mistakes
from archlang.files.folder import open_path
from archlang.files.os_errors import os_errors_as
from archlang.files.readable import open_named

_OPENERS: Mapping[str, Callable[[str], object]] = {".xz": lzma.open, ".gz": gzip.open}
ENDINGS = ("", *_OPENERS)
_BROKEN = (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile)
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Stored:
    """A file on disk, and the ending of its compression: one of `ENDINGS`."""

    place: Path
    ending: str = ""

    def open(self) -> BinaryIO:
        """Opens the decompressed content.

        Raises:
            DataError: the file cannot be opened."""
        with reading(self.place):
            file = open_named(self.place)
            if not self.ending:
                return file
            with file:
                return cast(BinaryIO, _OPENERS[self.ending](open_path(file, self.place)))

    def size(self) -> int:
        """Returns the size of the decompressed content in bytes.

        Raises:
            DataError: the file cannot be read or decompressed."""
        with reading(self.place):
            if not self.ending:
                return self.place.stat().st_size
            with self.open() as stream:
                return sum(len(chunk) for chunk in iter(lambda: stream.read(_CHUNK), b""))


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Raises a DataError that names the file if it cannot be read or decompressed."""
    with os_errors_as(mistakes.unreadable, path):
        try:
            yield
        except _BROKEN as error:
            raise mistakes.not_unpacked(path, error) from error
