"""The library keeps its word: every block of it is as its signature says."""

import pytest

from archlang.contracts import hold, library_blocks
from archlang.diagnostics.render import plain
from archlang.names.resolve import Declaration

BLOCKS = library_blocks()


@pytest.mark.parametrize("block", BLOCKS, ids=[block.name for block in BLOCKS])
def test_a_block_of_the_library_is_as_its_signature_says(block: Declaration) -> None:
    mistakes = [verdict.mistake for verdict in hold(block) if verdict.mistake is not None]
    assert not mistakes, plain(mistakes)
