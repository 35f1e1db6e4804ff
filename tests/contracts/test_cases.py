"""Which statics and sizes a block is tested at."""

from pathlib import Path

import pytest

from archlang.contracts import hold, library_blocks, program_blocks
from archlang.contracts.cases import Case, cases
from archlang.contracts.tables import tables


def cases_of(name: str) -> list[Case]:
    (block,) = library_blocks([name])
    held = tables(block)
    assert isinstance(held, dict)
    return cases(block, held)


def test_every_word_and_truth_value_is_tried_beside_the_defaults() -> None:
    statics = [case.instance.statics for case in cases_of("attention")]
    assert {str(one["position"]) for one in statics} == {"none", "absolute", "rotary", "xpos"}
    assert {str(one["init"]) for one in statics} == {"xavier", "scaled", "fused", "torch"}
    assert {one["causal"] for one in statics} == {True, False}
    assert {one["heads"] for one in statics} >= {1, 2}


def test_an_input_with_a_default_is_given_and_left_out() -> None:
    assert {case.arguments for case in cases_of("attention")} == {(0, 0), (0, 1)}


def test_data_is_a_sequence_and_a_vector() -> None:
    assert {case.result.name for case in cases_of("norm")} == {"seq", "vec"}


def test_statics_that_where_ties_together_move_together() -> None:
    found = [case.instance for case in cases_of("chunks")]
    assert any(one.statics["count"] and not one.statics["size"] for one in found)
    assert any(one.statics["balanced"] for one in found)
    assert all(one.features["s"].constant == one.statics["hidden"] for one in (c.instance for c in cases_of("gru")))


def test_a_large_default_is_tried_once() -> None:
    assert [case.instance.statics["hidden"] for case in cases_of("pointer_unit")].count(256) == 1


def test_a_static_that_is_a_block_gets_an_instance_of_the_library() -> None:
    for case in cases_of("unembed"):
        (table,) = case.tables
        assert table.block == "embed"
        assert table.statics["d"] == case.sizes["d"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("f[by: int](x: seq[n, d]) -> seq[n, d] where by > 100", "no statics and sizes were found"),
        ("f[of: block](x: seq[n, d]) -> seq[n, of.nothing]", "no block of the library can stand for `of`"),
    ],
)
def test_a_block_that_cannot_be_tested_says_why(text: str, reason: str, tmp_path: Path) -> None:
    file = tmp_path / "f.arch"
    file.write_text(f'extern block {text} python "archlang.blocks.norm:Norm"\n')
    (block,) = program_blocks(file)
    assert all(verdict.skipped.startswith(reason) for verdict in hold(block))
