"""What the tests of the backend share: programs in the test, compiled."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

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

    def make(text: str, *, plugins: bool = False, vocab: int = 11, classes: int = 5, **statics: object) -> Architecture:
        path = tmp_path / "program.arch"
        path.write_text(text)
        return load(path, plugins=plugins, vocab=vocab, classes=classes, **statics)

    return make
