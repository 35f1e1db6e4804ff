"""Every block of the library satisfies its signature."""

import pytest

from archlang.contracts import hold, library_blocks
from archlang.diagnostics.render import plain
from archlang.names.resolve import Declaration
from tests.extras import skip_without_extra
from tests.sampling import one_in

BLOCKS = library_blocks()


# They have many statics or parts, and take seconds.
_SLOW = (
    "absrel_attention", "attention", "bert", "embed", "feedforward", "geometric_attention", "integer_arithmetic",
    "pointer_unit", "relational_read", "relative_attention",
)  # fmt: skip


@pytest.mark.parametrize(
    "block",
    one_in(
        4,
        (
            pytest.param(block, id=block.name, marks=[pytest.mark.slow] if block.name in _SLOW else [])
            for block in BLOCKS
        ),
    ),
)
def test_a_library_block_satisfies_its_signature(block: Declaration) -> None:
    skip_without_extra(block.name)
    mistakes = [verdict.mistake for verdict in hold(block) if verdict.mistake is not None]
    assert not mistakes, plain(mistakes)
