"""Fixtures: published files to compare with, and a separate cache for each test."""

import gzip
import io
import lzma
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

import pytest

from archlang.data import archives, store
from archlang.data.mistakes import DataError

# The published files that the tests are given, where they are.
GIVEN = Path(__file__).parents[3] / "shared" / "data"
Offer = Callable[[Mapping[str, bytes | str]], None]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCHLANG_CACHE", str(tmp_path / "cache"))
    if "ARCHLANG_DATA" not in os.environ and GIVEN.is_dir():
        monkeypatch.setenv("ARCHLANG_DATA", str(GIVEN))


@pytest.fixture
def published_bytes() -> Callable[[str], bytes]:
    """Returns the content of a published file; skips the test if the file is missing."""
    root = Path(os.environ.get("ARCHLANG_DATA") or GIVEN)

    def content(name: str) -> bytes:
        for ending, unpack in ((".xz", lzma.decompress), (".gz", gzip.decompress)):
            path = root / f"{name}{ending}"
            if path.exists():
                return unpack(path.read_bytes())
        return pytest.skip(f"{root / name}.xz is not at hand; set ARCHLANG_DATA to the folder of published data")

    return content


@pytest.fixture
def published(published_bytes: Callable[[str], bytes]) -> Callable[[str], list[str]]:
    """Returns the lines of a published file; skips the test if the file is missing."""
    # Not `splitlines`, for which some characters of text are ends of lines too.
    return lambda name: published_bytes(name).decode().removesuffix("\n").split("\n")


@pytest.fixture
def offer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Offer:
    """Replaces published files, named `dataset/member`, and accepts any digest."""

    def put(offered: Mapping[str, bytes | str]) -> None:
        def opened(dataset: str, member: str) -> BinaryIO:
            content = offered.get(f"{dataset}/{member}")
            if content is None:
                raise DataError(f"{member} of {dataset} is not at hand", "offer it")
            return io.BytesIO(content.encode() if isinstance(content, str) else content)

        def contents(dataset: str, archive: str) -> Iterator[tuple[str, bytes]]:
            place = tmp_path / archive
            place.write_bytes(opened(dataset, archive).read())
            return archives.contents(place)

        monkeypatch.setattr(store, "open_binary", opened)
        monkeypatch.setattr(store, "contents", contents)

    return put
