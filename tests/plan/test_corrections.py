"""Safe edits are made until none is left."""

from archlang.plan.corrections import correct

TEXT = """block b(h: seq[n, d]) -> seq[n, d] {
    a = nrom(h);
    retrun a + hh
}
"""


def test_a_mistake_behind_another_is_corrected_too() -> None:
    correction = correct(TEXT, "b.arch")
    assert correction.text == TEXT.replace("nrom(h);", "norm(h)").replace("retrun", "return")
    assert [each.code for each in correction.corrected] == ["E0102", "E0101", "E0202"]


def test_a_guess_is_left() -> None:
    (left,) = correct(TEXT, "b.arch").left
    assert (left.code, left.is_safe) == ("E0201", False)


def test_a_program_without_mistakes_stays() -> None:
    text = "block b(h: seq[n, d]) -> seq[n, d] {\n    return norm(h)\n}\n"
    assert correct(text, "b.arch").text == text
