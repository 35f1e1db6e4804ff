"""Safe edits are made until none is left."""

import pytest

from archlang.errors.edits import apply_edits
from archlang.plan.check import check_text, correct

TEXT = """block b(h: seq[n, d]) -> seq[n, d] {
    a = nrom(h);
    retrun a + hh
}
"""


def test_a_mistake_behind_another_is_corrected_too() -> None:
    correction = correct(TEXT, "b.arch")
    assert correction.text == TEXT.replace("nrom(h);", "norm(h)").replace("retrun", "return")
    assert [each.code for each in correction.corrected] == ["E0102", "E0202", "E0101"]


def test_a_guess_is_left() -> None:
    (left,) = correct(TEXT, "b.arch").left
    assert (left.code, left.is_safe) == ("E0201", False)


def test_a_program_without_mistakes_stays() -> None:
    text = "block b(h: seq[n, d]) -> seq[n, d] {\n    return norm(h)\n}\n"
    assert correct(text, "b.arch").text == text


@pytest.mark.parametrize(("values", "written", "code"), [("[1..3]", "1..3", "E0303")])
def test_values_to_vary_become_a_range_or_a_list(values: str, written: str, code: str) -> None:
    recipe = "model m[d = 8](x: tokens[n]) -> logits[classes] { return embed[d](x) |> last |> linear[classes] }\n"
    recipe += f"recipe r {{\n    task ctl\n    model m\n    train adamw[steps = 1]\n    vary seed in {values}\n}}\n"
    (mistake,) = check_text(recipe, "r.arch")
    assert mistake.code == code
    assert mistake.remedy is not None
    assert f"`{written}`" in mistake.remedy
    assert not check_text(apply_edits(recipe, mistake.edits), "r.arch")


def test_the_brackets_of_a_call_are_not_those_of_a_list() -> None:
    (mistake,) = check_text("block b(h: seq[n, d]) -> seq[n, d] {\n    return dropout[1..3](h)\n}\n", "b.arch")
    assert (mistake.code, mistake.remedy, mistake.edits) == ("E0303", "write a number such as `0.1`", ())


@pytest.mark.parametrize(
    ("settings", "corrected", "remedy"),
    [
        ("steps = 8, lr = 1e-3, 0.5", None, "write its name, as in `weight_decay = 0.5`"),
        ("steps = 1,000", "steps = 1_000", "write a number without commas"),
    ],
)
def test_a_value_without_a_name_after_statics_out_of_order_is_a_mistake(
    settings: str, corrected: str | None, remedy: str
) -> None:
    recipe = "model m[d = 8](x: tokens[n]) -> logits[classes] { return embed[d](x) |> last |> linear[classes] }\n"
    recipe += f"recipe r {{\n    task ctl\n    model m\n    train adamw[{settings}]\n}}\n"
    mistakes = [mistake for mistake in check_text(recipe, "r.arch") if mistake.is_error]
    assert [(mistake.code, mistake.remedy) for mistake in mistakes] == [("E0305", remedy)]
    assert apply_edits(recipe, mistakes[0].edits) == recipe.replace(settings, corrected or settings)
