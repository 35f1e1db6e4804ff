"""Every block of the library satisfies its signature."""

import pytest
import torch

from archlang.contracts import cases, hold, library_blocks
from archlang.contracts.subject import Subject
from archlang.elaborate.binding import LARGEST_FLOAT
from archlang.errors.render import plain
from archlang.resolve.resolve import Declaration
from archlang.resolve.values import Value
from archlang.types import Dim
from tests.sampling import one_in

BLOCKS = library_blocks()


# They have many statics or parts, and take seconds.
_SLOW = (
    "absrel_attention", "attention", "cumulative_sum_keys", "embed", "feedforward", "geometric_attention",
    "integer_arithmetic", "linear_attention", "pointer_unit", "relational_read", "relative_attention",
    "rotary_positions_at", "sink_softmax_keys",
)  # fmt: skip


@pytest.mark.parametrize(
    "block",
    one_in(
        8,
        (
            pytest.param(block, id=block.name, marks=[pytest.mark.slow] if block.name in _SLOW else [])
            for block in BLOCKS
        ),
    ),
)
def test_a_library_block_satisfies_its_signature(block: Declaration) -> None:
    mistakes = [verdict.mistake for verdict in hold(block) if verdict.mistake is not None]
    assert not mistakes, plain(mistakes)


EDGES: dict[str | None, tuple[Value, ...]] = {
    "int": tuple(Dim.of(number) for number in (-1, 0, 1, 2, 3, 5)),
    "float": (-1e308, -LARGEST_FLOAT, -1.0, -1e-30, 0.0, 1e-30, 1.0, 2.0, LARGEST_FLOAT, 1e308),
    "bool": (True, False),
}


@pytest.mark.parametrize("block", one_in(5, (pytest.param(block, id=block.name) for block in BLOCKS)))
def test_what_a_signature_allows_at_its_edges_is_constructed_and_runs(
    block: Declaration, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        cases, "_MOST_TRIES", 60
    )  # a value that `where` refuses would be tried with thousands of others
    if cases.is_chunked(block):
        return
    search = cases._Search(block)
    for parameter in block.item.signature.statics:
        for value in EDGES.get(search.kinds[parameter.name]) or search.alternatives(parameter):
            case = search.first(cases._MOST_GENERAL, {parameter.name: value})
            if case is not None:
                subject = Subject(case, 1, (3, 2))
                batch = [subject.sample(sizes) for sizes in subject.sizes()[:1]]
                # In single precision, in which models are built; an error names the block and its statics.
                subject.run(subject.construct(1).train(), batch, dtype=torch.float32)
