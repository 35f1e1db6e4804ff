"""A patience that a run cannot exhaust is warned of."""

import pytest

from archlang.plan.check import check_text

MODEL = "model small[d = 8](x: tokens[n]) -> logits[classes] { return linear[classes](last(embed[d](x))) }\n"


@pytest.mark.parametrize(
    ("settings", "evaluations"),
    [
        ("steps = 1_000, patience = 8", 0),
        ("steps = 1_000, patience = 9", 10),
        ("steps = 1_000, patience = 9, every = 50", 0),
        ("steps = 100, patience = 9, every = 30", 4),
        ("steps = 5, patience = 10", 5),
        ("epochs = 20, patience = 18", 0),
        ("epochs = 20, patience = 19", 20),
        ("epochs = 20, patience = 19, every = 5", 0),
        ("steps = 1_000", 0),
    ],
)
def test_a_patience_that_is_never_exhausted_is_warned_of(settings: str, evaluations: int) -> None:
    text = f"{MODEL}recipe r {{ task parity model small train adamw[{settings}] }}"
    mistakes = check_text(text)
    assert [mistake.code for mistake in mistakes] == ["W0205"] * bool(evaluations)
    if evaluations:
        assert f"a run has {evaluations} evaluations" in mistakes[0].message
        assert f"patience = {mistakes[0].span.text}" in settings
