"""The folders of golden files, and the files that a pattern matches."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

HERE = Path(__file__).parent
STORED = HERE / "data"
_SHARED = HERE.parents[1].parent / "shared"
# `ARCHLANG_GOLDENS` names folders as PATH does.
REFERENCES = tuple(map(Path, filter(None, os.environ.get("ARCHLANG_GOLDENS", "").split(os.pathsep)))) or (
    _SHARED / "reference",
    _SHARED / "more",
)


def matching(root: Path, paper: str, patterns: Sequence[str]) -> list[Path]:
    """Returns the sorted files of a paper that match any of the patterns."""
    folder = root / paper / "goldens"
    return sorted({path for pattern in patterns for path in folder.glob(f"{pattern}.npz")})


def reference_file(paper: str, name: str) -> Path:
    """Returns a file next to the golden arrays of a paper; skips the test if no folder has it."""
    for root in REFERENCES:
        if (file := root / paper / "goldens" / name).is_file():
            return file
    pytest.skip(f"no file {name} of {paper}: set ARCHLANG_GOLDENS to the folders of references")
