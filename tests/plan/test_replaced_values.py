"""Values of a recipe that no point has are checked too."""

import pytest

from archlang.plan.check import check_text

MODEL = """model small[d = 8, kind: symbol = relu](x: tokens[n]) -> logits[classes]
    where kind in [relu, gelu] {
    h = embed[d](x)
    if kind == relu { a = relu(h) } else { a = gelu(h) }
    return linear[classes](last(a))
}
"""
VARIED = "vary task.order in [forward, backward], model.d in [8, 16], train.lr in [0.1, 1e-3]"


def recipe(task: str = "ctl", claim: str = "", lines: str = VARIED) -> str:
    claim = f'claim test.accuracy = 0.5 at {claim} from "p"' if claim else ""
    return f"{MODEL}recipe r {{ task {task} model small train adamw[steps = 1] {lines} {claim} }}\n"


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        (recipe(task="ctl[order = sideways]"), "E0304", "sideways"),
        (
            recipe(lines="vary model.kind in [relu, gelu]").replace("model small t", "model small[8, tanh] t"),
            "E0304",
            "tanh",
        ),
        (recipe(claim="task.order = sideways"), "E0304", "sideways"),
        (recipe(claim="train.schedule = sine"), "E0304", "sine"),
        (recipe(claim="train.batch = 0"), "E0304", "0"),
        (recipe(claim="model.kind = rleu"), "E0304", "rleu"),
        (recipe(claim="model.d = 61"), "W0207", "61"),
        (recipe(claim="train.lr = 0.01"), "W0207", "0.01"),
    ],
)
def test_a_value_that_no_point_has_is_a_mistake(text: str, code: str, place: str) -> None:
    (mistake,) = check_text(text)
    assert (mistake.code, mistake.span.text) == (code, place)


@pytest.mark.parametrize(
    "text",
    [
        recipe(task="ctl[order = forward]", claim="task.order = backward, model.d = 16, train.lr = 0.001"),
        recipe(claim="model.d = 61", lines=""),
        recipe(claim="train.schedule = cosine, test.length = 9"),
    ],
)
def test_a_value_of_a_point_and_one_of_what_does_not_vary_are_accepted(text: str) -> None:
    assert check_text(text) == ()
