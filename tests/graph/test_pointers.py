"""Addresses, pointers and data do not mix: what the principle of data isolation forbids, and where it says so."""

from __future__ import annotations

import pytest

from archlang.plan.check import check_text

WALK = "a = addresses(m)\nw = pointer_unit(a, s)\n"


def found(body: str, result: str = "seq[t, e]") -> list[tuple[str, str]]:
    """The codes of the errors of a block's body, and the texts that they point at."""
    text = f"block b(m: seq[n, d], s: seq[t, e]) -> {result} {{\n{WALK}{body}\n}}\n"
    return [(one.code, one.span.text) for one in check_text(text) if one.is_error]


def test_pointers_of_a_memory_become_its_data() -> None:
    assert found("return dereference(w, m)", "seq[t, 2 * d]") == []


def test_a_trajectory_says_over_which_slots_it_walks() -> None:
    assert found("return w", "pointer[t, n, 2]") == []
    assert found("return w", "pointer[t, n, 3]") == [("E0404", "return w")]


def test_pointers_of_another_memory_are_refused() -> None:
    assert found("return dereference(w, s)", "seq[t, 2 * e]") == [("E0401", "s")]


def test_addresses_that_nothing_points_at_are_no_pointers() -> None:
    assert found("return dereference(a, m)", "seq[n, d]") == [("E0402", "a")]


@pytest.mark.parametrize("body", ["return norm(w)", "return w + w", "return concat(w, s)", "return attention[1](s, w)"])
def test_pointers_are_no_data(body: str) -> None:
    assert ("E0409", "w") in found(body)


def test_a_block_of_ones_own_does_not_turn_pointers_into_data() -> None:
    text = 'extern block peek(w: pointer[t, n, k]) -> seq[t, k] reads w pointwise python "mine:Peek"\n'
    assert [one.code for one in check_text(text)] == ["E0410"]
    text = 'extern block turn(w: pointer[t, n, k]) -> pointer[t, n, k] reads w full python "mine:Turn"\n'
    assert [one.code for one in check_text(text)] == []
