"""The statics and sizes at which a block is tested."""

from functools import cache
from pathlib import Path

import pytest

from archlang.contracts import hold, library_blocks, program_blocks
from archlang.contracts.cases import Case, cases


@cache
def cases_of(name: str) -> list[Case]:
    (block,) = library_blocks([name])
    return cases(block)


def test_cases_cover_every_word_and_boolean() -> None:
    statics = [case.instance.statics for case in cases_of("attention")]
    assert {str(values["position"]) for values in statics} == {"none", "absolute", "rotary", "xpos", "alibi"}
    assert {str(values["init"]) for values in statics} == {"xavier", "scaled", "fused", "torch"}
    assert {values["causal"] for values in statics} == {True, False}
    assert {values["heads"] for values in statics} >= {1, 2}


def test_cases_pass_and_omit_an_input_with_a_default() -> None:
    assert {case.arguments for case in cases_of("attention")} == {(0, 0), (0, 1)}


def test_data_is_tested_as_seq_vec_and_map() -> None:
    assert {case.result.name for case in cases_of("norm")} == {"seq", "vec", "map"}


def test_statics_related_by_where_change_together() -> None:
    statics = [case.instance.statics for case in cases_of("chunks")]
    assert any(values["count"] and not values["size"] for values in statics)
    assert any(values["balanced"] for values in statics)
    assert all(case.sizes["s"] == case.instance.statics["hidden"] for case in cases_of("gru"))


def test_a_large_default_has_one_case() -> None:
    assert [case.instance.statics["hidden"] for case in cases_of("pointer_unit")].count(256) == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("f[by: int](x: seq[n, d]) -> seq[n, d] where by > 100", "the search found no statics and sizes"),
        ("f[of: block](x: seq[n, d]) -> seq[n, of.nothing]", "`of` is a block"),
    ],
)
def test_a_block_without_cases_is_skipped_with_a_reason(text: str, reason: str, tmp_path: Path) -> None:
    file = tmp_path / "f.arch"
    file.write_text(f'extern block {text} python "archlang.blocks.features:Norm"\n')
    (block,) = program_blocks(file)
    assert all(verdict.skipped.startswith(reason) for verdict in hold(block))
