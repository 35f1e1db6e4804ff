"""Suggestions, lists and counts in messages."""

import re

import pytest

from archlang.errors import Diagnostic, Source, Span
from archlang.errors.names import did_you_mean, is_typing_error, misspelt, plural, suggest


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
        ("ret", ["let", "repeat", "return"], "return"),
        ("wh", ["pure", "where"], "where"),
        ("form", ["format", "from"], "from"),
        ("geometric", ["attention", "geometric_attention"], "geometric_attention"),
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
        # One letter doubled, missing, wrong, and two in another order.
        ("lrr", "lr", ("lr", "steps"), True),
        ("sed", "seed", ("seed", "model.d"), True),
        ("xpo", "xpos", ("xpos", "none"), True),
        ("enbed", "embed", ("embed", "norm"), True),
        ("hedas", "heads", ("heads", "head"), True),
        ("tsak.order", "task.order", ("task.order", "model.d"), True),
        ("copygate", "copy_gate", ("copy_gate",), True),
        # Another name may be meant.
        ("lst", "last", ("last", "lstm"), False),
        ("Norm", "norm", ("norm", "NORM"), False),
        ("model.k", "model.d", ("model.d",), False),
        ("width_k", "width_v", ("width_v",), False),
        ("min", "sin", ("sin",), False),
        ("h", "hh", ("hh",), False),
        ("rl", "lr", ("lr",), False),
    ],
)
def test_a_single_typing_error_is_known_if_it_has_one_correction(
    name: str, near: str, possible: tuple[str, ...], is_one: bool
) -> None:
    assert is_typing_error(name, near, possible) == is_one


@pytest.mark.parametrize(
    ("name", "possible", "remedy"),
    [
        ("lst", ("lstm", "last", "norm"), "`last` or `lstm`"),
        ("adamv", ("adam", "adamw", "lion"), "`adam` or `adamw`"),
        ("abx", ("abxyz", "abc"), "`abc` or `abxyz`"),  # another letter, or half of a word
        ("att", ("act", "attention", "attention_weights"), "`act` or `attention`"),
        ("gate", ("gates", "Gate"), "`Gate`"),
    ],
)
def test_all_names_that_are_as_near_are_suggested(name: str, possible: tuple[str, ...], remedy: str) -> None:
    assert sorted(re.findall("`[^`]*`", suggest(name, possible, ""))) == re.findall("`[^`]*`", remedy)


@pytest.mark.parametrize(
    ("name", "near", "is_safe"),
    [
        ("hedas", "heads", True),
        ("clases", "classes", True),
        ("stattes", "states", True),
        ("key", "keys", False),
        ("state", "stare", False),
        ("attn_kq", "attn_qk", False),
        ("aa", "a", False),
    ],
)
def test_a_local_name_is_corrected_only_after_a_slip_of_the_fingers(name: str, near: str, is_safe: bool) -> None:
    span = Span(Source("p.arch", name), 0, len(name))
    mistake = misspelt(Diagnostic("E0201", "", span), name, (near, "other"), is_local=True)
    assert mistake.is_safe == is_safe


def test_a_name_with_two_likely_corrections_has_an_edit_for_each() -> None:
    span = Span(Source("p.arch", "lst"), 0, 3)
    mistake = misspelt(Diagnostic("E0202", "", span), "lst", ("lstm", "last", "norm"))
    assert sorted(edit.text for edit in (*mistake.edits, *mistake.alternatives)) == ["last", "lstm"]
    assert not mistake.is_safe


def test_a_name_that_begins_with_a_possible_one_suggests_it() -> None:
    assert did_you_mean("sequence", ["seq", "vec", "se"]) == "seq"
