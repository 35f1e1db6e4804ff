"""Tests toy blocks against the signatures in a program."""

from collections.abc import Callable
from pathlib import Path

import pytest

from archlang.contracts import Verdict, hold, program_blocks
from archlang.plugins import Plugins

Judge = Callable[[str], dict[str, Verdict]]
TOYS = Path(__file__).with_name("toys.py")


@pytest.fixture
def judge(tmp_path: Path) -> Judge:
    """Returns the verdicts of the only block of a program, by property; its class is in toys.py."""

    def judge(text: str) -> dict[str, Verdict]:
        file = tmp_path / "toy.arch"
        file.write_text(text, encoding="utf-8")
        (block,) = program_blocks(file)
        return {verdict.property: verdict for verdict in hold(block, plugins=Plugins.read([TOYS]))}

    return judge
