"""Toys held to signatures that a test writes."""

from collections.abc import Callable
from pathlib import Path

import pytest

from archlang.contracts import Verdict, hold, importable, program_blocks

Held = Callable[[str], dict[str, Verdict]]
TOYS = Path(__file__).with_name("toys.py")


@pytest.fixture
def held(tmp_path: Path) -> Held:
    """The verdicts of the first block of a program, by property; its Python is in toys.py."""

    def held(text: str) -> dict[str, Verdict]:
        file = tmp_path / "toy.arch"
        file.write_text(text, encoding="utf-8")
        (block,) = program_blocks(file)
        with importable([TOYS]):
            return {verdict.property: verdict for verdict in hold(block)}

    return held
