"""Where the published files are that tests compare with, and a cache of each test's own."""

from __future__ import annotations

import lzma
import os
from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCHLANG_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def published() -> Callable[[str], list[str]]:
    """The lines of a published file, packed with xz. Skips aloud where the files are not at hand."""
    root = Path(os.environ.get("ARCHLANG_DATA") or Path(__file__).parents[3] / "shared" / "data")

    def lines(name: str) -> list[str]:
        path = root / f"{name}.xz"
        if not path.exists():
            pytest.skip(f"{path} is not at hand; set ARCHLANG_DATA to the folder of published data")
        return lzma.decompress(path.read_bytes()).decode().splitlines()

    return lines
