"""A seed that no run can have is a mistake of the recipe that lists it."""

import pytest

from archlang.plan.check import check_text

RECIPE = """model small(x: tokens[n]) -> logits[classes] { return linear[classes](last(embed[8](x))) }
recipe r { task ctl model small train adamw[steps = 1] vary seed in """


@pytest.mark.parametrize(
    ("seeds", "wrong"),
    [
        ("[0, 4_294_967_295]", []),
        ("1..3", []),
        ("[-1, 1]", ["-1"]),
        ("[1, 4_294_967_296]", ["4_294_967_296"]),
        ("[1, -2, -3]", ["-2", "-3"]),
    ],
)
def test_a_seed_out_of_bounds_is_reported_at_its_place(seeds: str, wrong: list[str]) -> None:
    diagnostics = check_text(f"{RECIPE}{seeds} }}")
    assert [(diagnostic.code, diagnostic.span.text) for diagnostic in diagnostics] == [("E0624", w) for w in wrong]


def test_a_claim_about_a_seed_out_of_bounds_is_reported() -> None:
    text = f'{RECIPE}[1] claim test.accuracy = 0.5 at seed = -1 from "p" }}'
    assert [(each.code, each.span.text) for each in check_text(text)][:1] == [("E0624", "-1")]


def test_a_range_with_negative_seeds_is_reported() -> None:
    diagnostics = check_text(f"{RECIPE}-1..2 }}")
    assert [(diagnostic.code, diagnostic.span.text) for diagnostic in diagnostics] == [("E0624", "-1..2")]
