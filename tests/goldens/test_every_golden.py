"""Every golden file is compared by a test."""

import importlib
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.goldens.files import HERE, REFERENCES, STORED


def named_patterns() -> list[tuple[str, str]]:
    """Returns the papers and patterns in the `goldens` marks of this folder's tests."""
    named = []
    for path in sorted(HERE.glob("test_*.py")):
        if path.name == Path(__file__).name:
            continue
        module = importlib.import_module(f"tests.goldens.{path.stem}")
        for value in vars(module).values():
            for mark in getattr(value, "pytestmark", []):
                if mark.name == "goldens":
                    paper, *patterns = mark.args
                    named += [(paper, pattern) for pattern in patterns]
    return named


@pytest.mark.parametrize("root", [*REFERENCES, STORED], ids=lambda root: root.name)
def test_every_golden_file_matches_a_pattern_of_a_test(root: Path) -> None:
    files = sorted(root.glob("*/goldens/*.npz"))
    if not files:
        pytest.skip(f"no golden arrays in {root}: set ARCHLANG_GOLDENS to the folders of references")
    patterns = named_patterns()
    for path in files:
        paper = path.parents[1].name
        assert any(paper == name and fnmatch(path.stem, pattern) for name, pattern in patterns), path
