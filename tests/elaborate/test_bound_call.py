"""An instance has the caveats whose conditions hold for its call."""

from pathlib import Path

import pytest

from archlang.compile import compile_graph
from archlang.plan.check import check_text

BLOCK = """
extern block mix[rate: float = 0.0, wide: bool = false](x: seq[n, d]) -> seq[n, d]
    random in training when rate > 0
    depends on batch when wide
    stops gradients
    python "mine:Mix"

model m[rate: float = 0.0, wide: bool = false](x: tokens[n]) -> logits[n, vocab] {
    return linear[vocab](mix[rate, wide](embed[4](x)))
}
"""


@pytest.mark.parametrize(
    ("statics", "caveats"),
    [
        ({}, ("gradients",)),
        ({"rate": 0.5}, ("training", "gradients")),
        ({"rate": 0.5, "wide": True}, ("training", "batch", "gradients")),
    ],
)
def test_an_instance_has_the_caveats_whose_conditions_hold(
    statics: dict[str, float | bool], caveats: tuple[str, ...], tmp_path: Path
) -> None:
    file = tmp_path / "m.arch"
    file.write_text(BLOCK)
    assert compile_graph(file, statics={**statics, "vocab": 5}).instances["mix"].caveats == caveats


def test_an_unknown_name_in_the_condition_of_a_caveat_is_reported() -> None:
    text = 'extern block mix(x: seq[n, d]) -> seq[n, d] random when rate > 0 python "mine:Mix"\n'
    assert [diagnostic.code for diagnostic in check_text(text)] == ["E0313"]
