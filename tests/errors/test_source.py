"""Lines, columns and spans of a text."""

import pytest

from archlang.errors import Source, Span

SOURCE = Source("x.arch", "one\ntwo\r\n\nfour")


@pytest.mark.parametrize(
    ("offset", "position"),
    [(0, (1, 1)), (3, (1, 4)), (4, (2, 1)), (8, (2, 5)), (9, (3, 1)), (10, (4, 1)), (14, (4, 5))],
)
def test_lines_and_columns_count_from_one(offset: int, position: tuple[int, int]) -> None:
    assert SOURCE.position(offset) == position


def test_a_line_has_no_line_end() -> None:
    assert [SOURCE.line(number) for number in range(1, 5)] == ["one", "two", "", "four"]
    assert Source("x.arch", "").line(1) == ""


def test_a_lone_carriage_return_ends_a_line() -> None:
    source = Source("x.arch", "one\rtwo\n\rfour")
    assert [source.line(number) for number in range(1, 5)] == ["one", "two", "", "four"]
    assert source.position(5) == (2, 2)


def test_a_span_has_a_text_and_a_place() -> None:
    span = Span(SOURCE, 4, 7)
    assert (span.text, span.line, span.column, str(span)) == ("two", 2, 1, "x.arch:2:1")


def test_a_span_reaches_to_another() -> None:
    assert Span(SOURCE, 0, 3).to(Span(SOURCE, 4, 7)).text == "one\ntwo"


def test_showing_a_source_does_not_show_its_text() -> None:
    assert repr(SOURCE) == "Source(path='x.arch')"
    assert repr(Span(SOURCE, 0, 3)) == "Span(x.arch:1:1)"
