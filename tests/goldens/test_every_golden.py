"""Every golden file is compared by some test: a file that nobody knows fails."""

import importlib.util
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.goldens.files import GOLDENS, HERE, KEPT


def known() -> list[tuple[str, str]]:
    """The papers and patterns that the tests beside this one name."""
    found = []
    for path in sorted(HERE.glob("test_*.py")):
        if path.name == Path(__file__).name:
            continue
        spec = importlib.util.spec_from_file_location(f"tests.goldens.{path.stem}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        for value in vars(module).values():
            for mark in getattr(value, "pytestmark", []):
                if mark.name == "goldens":
                    paper, *patterns = mark.args
                    found += [(paper, pattern) for pattern in patterns]
    return found


@pytest.mark.parametrize("root", [GOLDENS, KEPT], ids=["references", "kept"])
def test_no_golden_file_is_unknown(root: Path) -> None:
    files = sorted(root.glob("*/goldens/*.npz"))
    if not files:
        pytest.skip(f"there are no golden arrays in {root}: set ARCHLANG_GOLDENS to the folder of references")
    patterns = known()
    unknown = [
        f"{path.parents[1].name}/{path.stem}"
        for path in files
        if not any(paper == path.parents[1].name and fnmatch(path.stem, pattern) for paper, pattern in patterns)
    ]
    assert not unknown
