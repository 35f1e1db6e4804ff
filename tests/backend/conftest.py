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

    def make(
        text: str, *, plugins: bool = False, vocab: int | None = 11, classes: int | None = 5, **statics: object
    ) -> Architecture:
        path = tmp_path / "program.arch"
        path.write_text(text)
        sizes = {"vocab": vocab, "classes": classes}
        known: dict[str, object] = {name: size for name, size in sizes.items() if size is not None}
        return load(path, plugins=plugins, **known, **statics)

    return make
