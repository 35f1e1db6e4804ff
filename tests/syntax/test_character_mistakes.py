"""Characters that no word or sign of the language has, and their edits."""

import pytest

from archlang.errors.edits import apply_edits
from archlang.errors.source import Source
from archlang.syntax.parser import parse_tolerantly


@pytest.mark.parametrize(
    ("character", "shown", "remedy"),
    [
        ("'", "`'`", 'write strings in double quotes: `"…"`'),
        ("“x”", "`“`", 'write straight quotes: `"…"`'),
        ("−1", "`−`", "write `-`"),
        ("größe", "`größe`", "write names with the letters a to z, digits and `_`"),
        ("$x", "`$`", "delete it, or move it into a string or a comment"),
        ("!x", "`!`", "write `not`, or `!=` for a comparison"),
        (".5", "`.`", "write `0.5`"),
        ("0. ", "`.`", "write `0.0`, or delete the point"),
        ("\0", "the invisible character U+0000", "delete it, or move it into a string or a comment"),
        ("\u202e", "the invisible character U+202E", "delete it, or move it into a string or a comment"),
        ("\ufeff", "the invisible character U+FEFF", "delete it, or move it into a string or a comment"),
    ],
)
def test_unknown_characters_are_shown(character: str, shown: str, remedy: str) -> None:
    (mistake,) = parse_tolerantly(Source("x.arch", f"block b(h: s) -> s {{ a = {character}\n}}"))[1]
    assert (mistake.code, mistake.message) == ("E0102", f"{shown} is not allowed outside strings and comments")
    assert mistake.remedy == remedy


@pytest.mark.parametrize(
    ("half", "whole", "is_safe"),
    [
        ("f[.5](h)", "f[0.5](h)", True),
        ("f[rate = .1, b = 2](h)", "f[rate = 0.1, b = 2](h)", True),
        ("f[0.](h)", "f[0.0](h)", False),
        ("f[1_0.](h)", "f[1_0.0](h)", False),
        ("f['a b'](h)", 'f["a b"](h)', True),
        ("f[“a”](h)", 'f["a"](h)', True),
    ],
)
def test_the_edit_of_an_unknown_character_leaves_a_sound_text(half: str, whole: str, is_safe: bool) -> None:
    source = Source("x.arch", f"block b(h: s) -> s {{ return {half} }}")
    (mistake,) = parse_tolerantly(source)[1]
    assert (mistake.code, mistake.is_safe) == ("E0102", is_safe)
    corrected = apply_edits(source.text, mistake.edits)
    assert corrected == source.text.replace(half, whole)
    assert not parse_tolerantly(Source("x.arch", corrected))[1]


@pytest.mark.parametrize("word", ["embеd", "ｅｍｂｅｄ", "еmbеd"])
def test_a_letter_of_another_alphabet_that_looks_like_a_latin_one_is_replaced(word: str) -> None:
    text = f"block b(x: tokens[n]) -> seq[n, 4] {{ return {word}[4](x) }}"
    (mistake,) = parse_tolerantly(Source("x.arch", text))[1]
    assert (mistake.code, mistake.is_safe) == ("E0102", True)
    assert apply_edits(text, mistake.edits) == text.replace(word, "embed")


def test_the_edit_of_half_a_string_in_other_quotes_is_not_safe() -> None:
    (mistake, *_) = parse_tolerantly(Source("x.arch", "block b(h: s) -> s { return f['a](h) }"))[1]
    assert (mistake.code, mistake.is_safe) == ("E0102", False)
