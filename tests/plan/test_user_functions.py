"""Functions of the user's own are named after their files."""

import pytest

from archlang.plan.check import check_text

RECIPE = """model small[d = 8](x: tokens[n]) -> logits[classes] {{ return embed[d](x) |> last |> linear[classes] }}
recipe r {{ task ctl model small train adamw[steps = 1, {}] }}
"""


@pytest.mark.parametrize(
    "setting",
    [
        "loss = mse",
        "rate = zigzag",
        "metrics = [accuracy]",
        "metrics = [a.b, accuracy]",
        "metrics = [1]",
        "metrics = [norm]",
    ],
)
def test_a_function_without_a_file_is_a_mistake(setting: str) -> None:
    (mistake,) = check_text(RECIPE.format(setting))
    assert mistake.code == "E0623"


@pytest.mark.parametrize("setting", ["loss = stablemax", "loss = mine.mse", "rate = none", "metrics = [mine.a]"])
def test_what_is_shipped_and_what_has_a_file_is_accepted(setting: str) -> None:
    assert check_text(RECIPE.format(setting)) == ()


def test_a_misspelt_loss_is_corrected() -> None:
    (mistake,) = check_text(RECIPE.format("loss = stablmax"))
    assert mistake.remedy == "did you mean `stablemax`?"
