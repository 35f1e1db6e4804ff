"""However types, kinds and statements are mixed up, a program has diagnostics, and its edits make another such text."""

import random

import pytest

from archlang.errors.edits import apply_edits
from archlang.plan.check import check_text
from tests.semantics.generator import program
from tests.semantics.mutations import mutated


@pytest.mark.parametrize(
    ("seed", "count"),
    [*((seed, 20) for seed in range(5)), *(pytest.param(seed, 400, marks=pytest.mark.slow) for seed in range(5, 15))],
)
def test_every_mixture_of_types_is_answered(seed: int, count: int) -> None:
    chance = random.Random(seed)
    for _ in range(count):
        text = program(chance.randrange(10_000))
        for _ in range(chance.randint(1, 8)):
            text = mutated(text, chance)
        mistakes = check_text(text, "mixed.arch")
        edited = apply_edits(text, [edit for mistake in mistakes for edit in mistake.edits])
        check_text(edited, "mixed.arch")
