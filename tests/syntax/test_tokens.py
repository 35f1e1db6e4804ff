"""Limits on the number and the length of tokens."""

import pytest

from archlang.errors import Diagnostic, Source
from archlang.syntax.parser import parse_setting, parse_tolerantly, read_tokens
from archlang.syntax.tokens import LONGEST_WORD, MOST_WORDS, pieces


def excess(text: str) -> Diagnostic | None:
    return read_tokens(Source("x.arch", text))[0]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", 0),
        (" \n\t\r\n", 0),
        ("a = norm(h)", 6),
        ("# a whole comment\na", 2),
        ('use "./a file.arch"', 2),
        ("mine.layer", 1),
        ("1..5", 3),
        ("é ±", 2),
    ],
)
def test_tokens_are_names_numbers_strings_signs_and_comments(text: str, count: int) -> None:
    assert len([*pieces(text)]) == count


def test_a_file_can_have_the_limit_of_tokens_and_no_more() -> None:
    assert excess("a " * MOST_WORDS) is None
    mistake = excess("a " * MOST_WORDS + "last")
    assert mistake is not None
    assert (mistake.code, mistake.span.text) == ("E0113", "last")


@pytest.mark.parametrize(("before", "after"), [("", ""), ('"', '"'), ("a.", ""), ("1_", "")])
def test_names_numbers_and_strings_can_have_the_limit_of_characters_and_no_more(before: str, after: str) -> None:
    quotes = 2 if after else 0
    sign = "1" if before == "1_" else "x"
    word = before + sign * (LONGEST_WORD + quotes - len(before) - len(after)) + after
    assert excess(f"a = {word} b") is None
    longer = before + sign + word[len(before) :]
    mistake = excess(f"a = {longer} b")
    assert mistake is not None
    assert (mistake.code, mistake.span.text) == ("E0114", longer)


def test_comments_have_any_length() -> None:
    assert excess(f'# "{"x" * 2 * LONGEST_WORD}"\n') is None
    assert excess(f'a = "#" # {"x" * 2 * LONGEST_WORD}') is None


def test_a_text_with_too_many_tokens_is_not_parsed() -> None:
    program, diagnostics = parse_tolerantly(Source("x.arch", "block b(h: s) -> s { return h }\n" * MOST_WORDS))
    assert program.items == ()
    assert [mistake.code for mistake in diagnostics] == ["E0113"]


def test_a_setting_has_the_same_limits() -> None:
    assert [mistake.code for mistake in parse_setting("model.d", "+" * (MOST_WORDS + 1))[1]] == ["E0113"]
    assert [mistake.code for mistake in parse_setting("model.d", "1" * (LONGEST_WORD + 1))[1]] == ["E0114"]


def test_a_zero_byte_in_a_string_is_reported() -> None:
    (mistake,) = parse_tolerantly(Source("x.arch", 'use "./a\0b.arch"'))[1]
    assert (mistake.code, mistake.span.start) == ("E0102", 8)
