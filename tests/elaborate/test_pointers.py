"""Addresses, pointers and data do not mix: the errors of the principle of data isolation, and their places."""

import pytest

from archlang.plan.check import check_text

WALK = "a = addresses(m)\nw = pointer_unit(a, s)\n"


def errors(body: str, result: str = "seq[t, e]") -> list[tuple[str, str]]:
    """The codes of the errors of a block's body, and the texts that they point at."""
    text = f"block b(m: seq[n, d], s: seq[t, e]) -> {result} {{\n{WALK}{body}\n}}\n"
    return [(diagnostic.code, diagnostic.span.text) for diagnostic in check_text(text) if diagnostic.is_error]


def test_pointers_of_a_memory_become_its_data() -> None:
    assert errors("return dereference(w, m)", "seq[t, 2 * d]") == []


def test_the_type_of_pointers_names_the_slots_that_they_point_to() -> None:
    assert errors("return w", "pointer[t, n, 2]") == []
    assert errors("return w", "pointer[t, n, 3]") == [("E0404", "return w")]


def test_addresses_and_pointers_of_another_memory_are_rejected() -> None:
    assert errors("return dereference(w, s)", "seq[t, 2 * e]") == [("E0401", "s")]
    assert errors("return dereference(a, m)", "seq[n, d]") == [("E0402", "a")]


@pytest.mark.parametrize("body", ["return norm(w)", "return w + w", "return concat(w, s)", "return attention[1](s, w)"])
def test_pointers_are_no_data(body: str) -> None:
    assert ("E0409", "w") in errors(body)


def test_a_users_block_does_not_turn_pointers_into_data() -> None:
    text = 'extern block peek(w: pointer[t, n, k]) -> seq[t, k] reads w pointwise python "mine:Peek"\n'
    assert [diagnostic.code for diagnostic in check_text(text)] == ["E0410"]
    text = 'extern block turn(w: pointer[t, n, k]) -> pointer[t, n, k] reads w full python "mine:Turn"\n'
    assert [diagnostic.code for diagnostic in check_text(text)] == []
