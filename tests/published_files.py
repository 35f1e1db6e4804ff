"""Reads the published files that some tests compare with; without them, these tests skip."""

import gzip
import lzma
import os
from pathlib import Path

import pytest

# The folder of published files beside a checkout, where there is one.
FOLDER = Path(__file__).parents[2] / "shared" / "data"


def read(name: str) -> bytes:
    """Returns the content of a published file, such as `scan/tasks.txt`; skips the test if the file is missing."""
    folder = Path(os.environ.get("ARCHLANG_DATA") or FOLDER)
    for ending, unpack in ((".xz", lzma.decompress), (".gz", gzip.decompress)):
        path = folder / f"{name}{ending}"
        if path.exists():
            return unpack(path.read_bytes())
    return pytest.skip(f"{folder / name}.xz is missing; set ARCHLANG_DATA to the folder of published data")


def lines(name: str) -> list[str]:
    """Returns the lines of a published file; skips the test if the file is missing."""
    # Not `splitlines`, for which some characters of text are ends of lines too.
    return read(name).decode().removesuffix("\n").split("\n")
