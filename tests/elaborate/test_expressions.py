"""Arithmetic broadcasts features of size 1 and vectors, and explains operands that do not fit."""

import pytest

from archlang.errors import Diagnostic
from archlang.plan.check import check_text


def mistakes(inputs: str, expression: str, result: str = "seq[n, d]") -> list[Diagnostic]:
    return list(check_text(f"block b({inputs}) -> {result} {{\n    return {expression}\n}}\n"))


@pytest.mark.parametrize("operator", "+-*/")
@pytest.mark.parametrize(
    ("inputs", "result"),
    [
        ("a: seq[n, d], b: seq[n, 1]", "seq[n, d]"),
        ("a: seq[n, d], b: vec[d]", "seq[n, d]"),
        ("a: seq[n, 1], b: vec[d]", "seq[n, d]"),
        ("a: vec[d], b: vec[1]", "vec[d]"),
        ("a: map[n, m, d], b: map[n, m]", "map[n, m, d]"),
        ("a: map[n, m, d], b: vec[d]", "map[n, m, d]"),
        ("a: map[n, m], b: vec[d]", "map[n, m, d]"),
        ("a: map[n, m, d], b: vec[1]", "map[n, m, d]"),
        ("a: map[n, m, d], b: map[n, m, d]", "map[n, m, d]"),
        ("a: seq[n, d], b: vec[1]", "seq[n, d]"),
    ],
)
def test_a_feature_of_size_1_and_a_vector_broadcast(inputs: str, result: str, operator: str) -> None:
    assert mistakes(inputs, f"a {operator} b", result) == []
    assert mistakes(inputs, f"b {operator} a", result) == []


@pytest.mark.parametrize(
    ("inputs", "remedy"),
    [
        ("a: seq[n, d], b: seq[n, e]", "`linear[d]`"),
        ("a: seq[n, d], b: vec[e]", "`linear[d]`"),
        ("a: seq[n, d], b: seq[m, d]", "as long as"),
        ("a: map[n, n, 2], b: map[n, n, 3]", "features"),
        ("a: map[n, m], b: map[m, n]", "a number"),
        ("a: seq[n, d], b: map[n, n]", "`outer_sum`"),
        ("a: seq[n, 1], b: seq[1, d]", "as long as each other"),
    ],
)
def test_operands_that_do_not_fit_have_a_remedy_for_what_differs(inputs: str, remedy: str) -> None:
    (mistake,) = mistakes(inputs, "a + b")
    assert mistake.code == "E0406"
    assert len(mistake.labels) == 2
    assert mistake.remedy is not None
    assert remedy in mistake.remedy


def test_a_state_keeps_its_type_when_it_meets_a_wider_value() -> None:
    text = "block b(h: seq[n, d]) -> seq[n, 1] {\n    g = linear[1](h)\n    repeat 2 { g <- g * h }\n    return g\n}\n"
    assert [mistake.code for mistake in check_text(text)] == ["E0405"]


def test_a_list_in_place_of_a_value_is_one_mistake_with_its_remedy() -> None:
    (mistake,) = check_text("block b(h: seq[n, d]) -> seq[n, d] { return [h, h] }", "b.arch")
    assert (mistake.code, mistake.span.text) == ("E0418", "[h, h]")
    assert mistake.remedy.startswith("join values with a block, as in `concat(a, b)`")
