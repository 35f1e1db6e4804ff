"""Fixtures: published files to compare with, and a separate cache for each test."""

import io
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

import pytest

from archlang.data import archives, store
from archlang.data.mistakes import DataError
from tests import published_files

Offer = Callable[[Mapping[str, bytes | str]], None]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCHLANG_CACHE", str(tmp_path / "cache"))
    if "ARCHLANG_DATA" not in os.environ and published_files.FOLDER.is_dir():
        monkeypatch.setenv("ARCHLANG_DATA", str(published_files.FOLDER))


@pytest.fixture
def published_bytes() -> Callable[[str], bytes]:
    """Returns the content of a published file; skips the test if the file is missing."""
    return published_files.read


@pytest.fixture
def published() -> Callable[[str], list[str]]:
    """Returns the lines of a published file; skips the test if the file is missing."""
    return published_files.lines


@pytest.fixture
def offer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Offer:
    """Replaces published files, named `dataset/member`, and accepts any digest."""

    def put(offered: Mapping[str, bytes | str]) -> None:
        def opened(dataset: str, member: str) -> BinaryIO:
            content = offered.get(f"{dataset}/{member}")
            if content is None:
                raise DataError(f"{member} of {dataset} is missing", "offer it")
            return io.BytesIO(content.encode() if isinstance(content, str) else content)

        def contents(dataset: str, archive: str) -> Iterator[tuple[str, bytes]]:
            place = tmp_path / archive
            place.write_bytes(opened(dataset, archive).read())
            return archives.contents(place)

        monkeypatch.setattr(store, "open_binary", opened)
        monkeypatch.setattr(store, "contents", contents)

    return put
