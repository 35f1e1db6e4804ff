"""What the tests of blocks share: the comparison with a slow form, and the papers' golden arrays."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

GOLDENS = Path(os.environ.get("ARCHLANG_GOLDENS", Path(__file__).parents[2].parent / "shared" / "reference"))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "goldens(paper, pattern…): runs for every golden file that a pattern matches")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marker = metafunc.definition.get_closest_marker("goldens")
    if marker is None:
        return
    paper, *patterns = marker.args
    folder = GOLDENS / paper / "goldens"
    files = sorted({file for pattern in patterns for file in folder.glob(f"{pattern}.npz")})
    cases = [pytest.param(file, id=file.stem) for file in files]
    if not cases:
        reason = f"no golden arrays {patterns} in {folder}: set ARCHLANG_GOLDENS to the folder of references"
        cases = [pytest.param(None, marks=pytest.mark.skip(reason=reason))]
    metafunc.parametrize("golden", cases, indirect=True)


@pytest.fixture
def references() -> Path:
    """The folder of the papers' references, one folder for each paper."""
    return GOLDENS


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Mapping[str, np.ndarray]:
    """The arrays of one golden file by name."""
    with np.load(request.param) as arrays:
        return dict(arrays)


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(20)


def _agree(
    block: nn.Module, slow: Callable[..., Tensor], *inputs: Tensor, tolerance: float = 1e-10, **masks: Tensor | None
) -> None:
    """Holds a block in float64 against a slow form of it: results, and gradients of inputs and weights."""
    block = block.double()
    names = [name for name, _ in block.named_parameters()]
    leaves = [one.requires_grad_() for one in inputs if one.is_floating_point()] + list(block.parameters())
    labels = [f"input {i}" for i, one in enumerate(inputs) if one.is_floating_point()] + names
    results = [block(*inputs, **masks), slow(*inputs, **masks)]
    torch.testing.assert_close(
        results[0], results[1], rtol=tolerance, atol=tolerance, msg=lambda text: f"result: {text}"
    )
    if not leaves:
        return
    probe = torch.randn_like(results[1])
    fast, expected = (
        torch.autograd.grad((result * probe).sum(), leaves, allow_unused=True, materialize_grads=True)
        for result in results
    )
    for label, one, other in zip(labels, fast, expected, strict=True):
        said = partial("gradient of {}: {}".format, label)
        torch.testing.assert_close(one, other, rtol=tolerance, atol=tolerance, msg=said)


@pytest.fixture
def agree() -> Callable[..., None]:
    return _agree
