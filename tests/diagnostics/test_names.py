"""Suggestions, lists and counts in messages."""

import pytest

from archlang.diagnostics.names import did_you_mean, is_typing_error, plural


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


@pytest.mark.parametrize(
    ("name", "near", "possible", "is_one"),
    [
        ("atention", "attention", ("attention", "relative_attention"), True),
        ("clt", "ctl", ("ctl", "scan"), True),
        ("Norm", "norm", ("norm", "form"), True),
        ("adamv", "adam", ("adam", "adamw"), False),
        ("state1", "state2", ("state2",), False),
        ("ab", "a", ("a",), False),
        ("retunr_all", "return", ("return",), False),
    ],
)
def test_a_single_typing_error_is_known_if_it_has_one_correction(
    name: str, near: str, possible: tuple[str, ...], is_one: bool
) -> None:
    assert is_typing_error(name, near, possible) == is_one


def test_a_name_that_begins_with_a_possible_one_suggests_it() -> None:
    assert did_you_mean("sequence", ["seq", "vec", "se"]) == "seq"
