"""The folders of golden files, and the files that a pattern matches."""

import os
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent
STORED = HERE / "data"
GOLDENS = Path(os.environ.get("ARCHLANG_GOLDENS", HERE.parents[1].parent / "shared" / "reference"))


def matching(root: Path, paper: str, patterns: Sequence[str]) -> list[Path]:
    """Returns the sorted files of a paper that match any of the patterns."""
    folder = root / paper / "goldens"
    return sorted({path for pattern in patterns for path in folder.glob(f"{pattern}.npz")})
