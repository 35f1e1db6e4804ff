"""A mistake is reported once, without the mistakes that only follow from it."""

import pytest

from archlang.plan.check import check_text

RECIPE = "recipe q { task ctl model small train adamw[steps = 10] }\n"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("model small(x: tokens[n]) -> logits[classes] { return embed[8](x) + }\n" + RECIPE, "E0101"),
        ('use "./absent.arch"\n' + RECIPE, "E0208"),
        ('use "./absent.arch" as mine\nblock b(h: seq[n, d]) -> seq[n, d] { return mine.layer(h) }', "E0208"),
        (
            "block a(h: seq[n, d]) -> seq[n, d] { return h + }\nblock b(h: seq[n, d]) -> seq[n, d] { return a(h) }",
            "E0101",
        ),
    ],
    ids=["model with a mistake", "unread file", "unread file with a prefix", "block with a mistake"],
)
def test_a_name_whose_definition_could_not_be_read_is_not_reported(text: str, code: str) -> None:
    assert [diagnostic.code for diagnostic in check_text(text)] == [code]


def test_a_misspelt_block_beside_a_syntax_error_is_reported() -> None:
    text = "block a(h: seq[n, d]) -> seq[n, d] { return h + }\nblock b(h: seq[n, d]) -> seq[n, d] { return nrom(h) }"
    assert [diagnostic.code for diagnostic in check_text(text)] == ["E0101", "E0202"]


@pytest.mark.parametrize("supervise", ["last", "mean", "every"])
@pytest.mark.parametrize(
    ("block", "code"), [("global_halt", []), ("token_halt", ["E0620"]), ("global_halt[causal = true]", ["E0620"])]
)
def test_steps_without_a_halting_probability_for_each_result_are_not_supervised(
    block: str, code: list[str], supervise: str
) -> None:
    text = f"""
    model m(x: tokens[n]) -> logits[classes] {{
        h = embed[4](x)
        y = repeat 3 halting h by {block} {{
            h <- tanh(h)
            emit linear[classes](last(h))
        }}
        return y
    }}
    recipe r {{
        task ctl
        model m
        train adamw[steps = 1, supervise = {supervise}]
    }}
    """
    expected = [] if supervise == "last" else code
    assert [diagnostic.code for diagnostic in check_text(text)] == expected
