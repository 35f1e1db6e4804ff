"""A schedule that moves a static is one of optimizers with this static."""

import pytest

from archlang.plan.check import check_text

TEXT = """extern optimizer own[lr: float = 0.1{}]
    with training
    python "mine:Own"
model small(x: tokens[n]) -> logits[classes] {{ return linear[classes](last(embed[8](x))) }}
recipe r {{ task ctl model small train own[steps = 3, schedule = onecycle, warmup = 1] }}
"""


@pytest.mark.parametrize(
    ("statics", "is_refused"), [("", True), (", beta1: float = 0.9", True), (", beta1 = 0.9, beta2 = 0.9", False)]
)
def test_one_cycle_needs_the_statics_that_it_moves(statics: str, is_refused: bool) -> None:
    codes = [(each.code, each.span.text) for each in check_text(TEXT.format(statics))]
    assert codes == [("E0304", "onecycle")] * is_refused
