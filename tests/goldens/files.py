"""Where the golden files are, and which of them a test names."""

import os
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).parent
KEPT = HERE / "data"
GOLDENS = Path(os.environ.get("ARCHLANG_GOLDENS", HERE.parents[1].parent / "shared" / "reference"))


def matching(root: Path, paper: str, patterns: Sequence[str]) -> list[Path]:
    """The files of a paper that any of the patterns matches."""
    folder = root / paper / "goldens"
    return sorted({path for pattern in patterns for path in folder.glob(f"{pattern}.npz")})
