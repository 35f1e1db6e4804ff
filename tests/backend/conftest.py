"""What the tests of the backend share: programs in the test, compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jaxtyping
import pytest
import torch

from archlang.backend import Architecture, load

Compiled = Callable[..., Architecture]


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


@pytest.fixture
def compiled(tmp_path: Path) -> Compiled:
    """Compiles a program: `compiled(text, d=8)`. It is called `program.arch`."""

    def make(text: str, *, model: str | None = None, plugins: bool = False, **statics: object) -> Architecture:
        path = tmp_path / "program.arch"
        path.write_text(text)
        sizes: dict[str, object] = {"vocab": 11, "classes": 5, **statics}
        known: dict[str, Any] = {name: value for name, value in sizes.items() if value is not None}
        return load(path, model, None, plugins=plugins, **known)

    return make


@pytest.fixture
def unchecked() -> Iterator[None]:
    """Without the checks of shapes, which torch.compile does not see through, and which see wrong inputs first."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
