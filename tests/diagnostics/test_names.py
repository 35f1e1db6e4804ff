"""Suggestions, lists and counts in messages."""

import pytest

from archlang.diagnostics.names import did_you_mean, plural


@pytest.mark.parametrize(
    ("name", "possible", "meant"),
    [
        ("modle", ["model", "block"], "model"),
        ("retrun", {"return", "repeat"}, "return"),
        ("Norm", ["form", "norm"], "norm"),
        ("atention", ["attention", "relative_attention"], "attention"),
        ("relative_atention", ["attention", "relative_attention"], "relative_attention"),
        ("head", ["heads"], "heads"),
        ("xyz", ["norm", "linear"], None),
        ("norm", ["norm"], None),
        ("h", ["heads", "H"], None),
        ("", ["heads"], None),
        ("x" * 1_000_000, ["x"], None),
        ("name", [], None),
    ],
)
def test_the_most_similar_name_is_suggested(name: str, possible: list[str], meant: str | None) -> None:
    assert did_you_mean(name, possible) == meant


def test_the_suggestion_does_not_depend_on_the_order() -> None:
    assert did_you_mean("gat", ["gate", "gats"]) == did_you_mean("gat", ["gats", "gate"])


def test_a_count_agrees_with_its_noun() -> None:
    assert [plural(count, "size") for count in (0, 1, 2)] == ["0 sizes", "1 size", "2 sizes"]
