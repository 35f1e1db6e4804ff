"""For the whole run: shapes are checked at every call of a block, and nothing is written outside a temporary folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from jaxtyping import install_import_hook

# Before any of these is imported.
_hook = install_import_hook(["archlang.blocks", "archlang.backend"], "beartype.beartype")
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Without a GPU, Triton's kernels run in its interpreter; it reads this when it is first imported.
if not os.path.exists("/dev/nvidia0"):
    os.environ.setdefault("TRITON_INTERPRET", "1")


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Generated data of the tests, apart from the user's."""
    folder = tmp_path_factory.mktemp("cache")
    before = os.environ.get("ARCHLANG_CACHE")
    os.environ["ARCHLANG_CACHE"] = str(folder)
    yield folder
    if before is None:
        del os.environ["ARCHLANG_CACHE"]
    else:
        os.environ["ARCHLANG_CACHE"] = before
