"""The papers' golden arrays as fixtures.

`@pytest.mark.goldens("halt", "d_gut_*")` runs a test for every file of that paper that a pattern matches: in float64,
and one in four in float32 too. tests/semantics compares samples in other batches and with more padding. The files are
those of `ARCHLANG_GOLDENS`, one or several folders with `<paper>/goldens/*.npz`, and a few small files stored next to
these tests."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from tests.goldens.files import REFERENCES, STORED, matching
from tests.goldens.golden import Golden
from tests.sampling import one_in

PRECISIONS = {"float32": torch.float32, "float64": torch.float64}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "goldens(paper, pattern…): runs for every golden file that a pattern matches")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marker = metafunc.definition.get_closest_marker("goldens")
    if marker is None or "golden" not in metafunc.fixturenames:
        return
    paper, *patterns = marker.args
    cases = list(_cases(paper, patterns))
    if not any(any(root.glob(f"{paper}/goldens/*.npz")) for root in REFERENCES):
        reason = f"no golden arrays of {paper}: set ARCHLANG_GOLDENS to the folders of references"
        cases.append(pytest.param(None, marks=pytest.mark.skip(reason=reason), id="absent"))
    metafunc.parametrize("golden", cases, indirect=True)


def _cases(paper: str, patterns: list[str]) -> Iterator[object]:
    files = [
        (f"stored-{path.stem}" if root is STORED else path.stem, path)
        for root in (*REFERENCES, STORED)
        for path in matching(root, paper, patterns)
    ]
    yield from (pytest.param((path, "float64"), id=f"{name}-float64") for name, path in files)
    yield from one_in(4, (pytest.param((path, "float32"), id=f"{name}-float32") for name, path in files))


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """One golden file."""
    path, precision = request.param
    with np.load(path) as arrays:
        return Golden(path, dict(arrays), PRECISIONS[precision])


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(20)


@pytest.fixture(autouse=True)
def keeps_padding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves what stands at padding in fields: a paper's program computes its results there from it."""
    monkeypatch.setattr("archlang.backend.runtime.masks.filled_padding", lambda x, mask: x)
