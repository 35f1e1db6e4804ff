"""Diagnostics as text for people."""

import io

from archlang.errors import Diagnostic, Label, Source, Span
from archlang.errors.render import coloured, plain


def shown(text: str, *marks: tuple[int, int, str], path: str = "x.arch") -> list[str]:
    """The lines under the message, for marks of one source; the first is the mistake's own."""
    source = Source(path, text)
    (start, end, label), *others = marks
    labels = tuple(Label(Span(source, *place), words) for *place, words in others)
    return plain([Diagnostic("E0101", "wrong", Span(source, start, end), label, labels)]).splitlines()[1:-1]


def test_the_span_is_underlined_with_its_label() -> None:
    source = Source("x.arch", "one\n  two three\n")
    mistake = Diagnostic("E0101", "two is wrong", Span(source, 6, 9), "here", remedy="write 2")
    assert plain([mistake]) == (
        "error[E0101]: two is wrong\n --> x.arch:2:3\n2 |   two three\n  |   ^^^ here\n  help: write 2\n\n"
    )


def test_warnings_are_labelled() -> None:
    assert plain([Diagnostic("W0201", "odd", Span(Source("x", "a"), 0, 1))]).startswith("warning[W0201]: odd\n")


def test_several_mistakes_have_an_empty_line_between() -> None:
    mistake = Diagnostic("E0101", "wrong", Span(Source("x", "a"), 0, 1))
    assert plain([mistake, mistake]) == 2 * "error[E0101]: wrong\n --> x:1:1\n1 | a\n  | ^\n\n"


def test_other_spans_are_in_the_order_of_the_lines() -> None:
    assert shown("one\ntwo\nthree\n", (4, 7, "mistake"), (8, 13, "after"), (0, 3, "before")) == [
        " --> x.arch:2:1",
        "1 | one",
        "  | --- before",
        "2 | two",
        "  | ^^^ mistake",
        "3 | three",
        "  | ----- after",
    ]


def test_spans_on_one_line_have_a_row_each() -> None:
    assert shown("one two", (0, 3, "a"), (4, 7, "b")) == [
        " --> x.arch:1:1",
        "1 | one two",
        "  | ^^^ a",
        "  |     --- b",
    ]


def test_lines_between_spans_are_omitted() -> None:
    assert shown("a\nb\nc\nd\n", (6, 7, "here"), (0, 1, "there")) == [
        " --> x.arch:4:1",
        "1 | a",
        "  | - there",
        "...",
        "4 | d",
        "  | ^ here",
    ]


def test_line_numbers_are_aligned() -> None:
    lines = shown("x\n" * 12, (20, 21, "here"), (0, 1, "there"))
    assert lines[0] == "  --> x.arch:11:1"
    assert lines[1:3] == [" 1 | x", "   | - there"]
    assert lines[4:] == ["11 | x", "   | ^ here"]


def test_spans_in_other_files_follow() -> None:
    here, there = Source("here.arch", "a"), Source("there.arch", "b b")
    mistake = Diagnostic("E0101", "wrong", Span(here, 0, 1), "", (Label(Span(there, 2, 3), "declared"),))
    assert plain([mistake]).splitlines()[1:-1] == [
        " --> here.arch:1:1",
        "1 | a",
        "  | ^",
        " --> there.arch:1:3",
        "1 | b b",
        "  |   - declared",
    ]


def test_a_long_span_shows_its_first_and_last_line() -> None:
    assert shown("a = f(\n    b,\n    c)\n", (4, 21, "call")) == [
        " --> x.arch:1:5",
        "1 | a = f(",
        "  |     ^^",
        "2 |     b,",
        "3 |     c)",
        "  |     ^^ call",
    ]
    assert shown("f(" + "\n x," * 50 + "\n)", (0, 204, "call")) == [
        "  --> x.arch:1:1",
        " 1 | f(",
        "   | ^^",
        "...",
        "52 | )",
        "   | ^ call",
    ]


def test_an_empty_span_is_marked() -> None:
    assert shown("ab", (2, 2, "end")) == [" --> x.arch:1:3", "1 | ab", "  |   ^ end"]
    assert shown("ab\n", (3, 3, "end")) == [" --> x.arch:2:1", "2 | ", "  | ^ end"]


def test_an_unread_file_is_shown_by_its_path() -> None:
    assert shown("", (0, 0, "")) == [" --> x.arch"]


def test_tabs_and_wide_characters_keep_the_columns() -> None:
    assert shown("\ta 字 b", (5, 6, "b")) == [" --> x.arch:1:6", "1 |     a 字 b", "  |          ^ b"]
    assert shown("字", (0, 1, "wide")) == [" --> x.arch:1:1", "1 | 字", "  | ^^ wide"]
    assert shown("e\u0301x", (2, 3, "x"))[2] == "  |  ^ x"


def test_long_lines_are_cut_around_the_span() -> None:
    lines = shown("a" * 500 + "BC" + "d" * 500, (500, 502, "here"))
    assert lines[0] == " --> x.arch:1:501"
    assert len(lines[1]) < 140
    assert lines[1].startswith("1 | …a")
    assert lines[1].endswith("d…")
    assert lines[1].index("BC") == lines[2].index("^^ here")
    lines = shown("a" * 500, (0, 500, "all"))
    assert len(lines[2]) < 140


def test_control_characters_are_replaced() -> None:
    source = Source("\x1b[2Jx", "a\x1b[31m\u202eb")
    text = plain([Diagnostic("E0101", "\x1b[31m\n", Span(source, 0, 1), "\r", (), "\x07")])
    assert text.count("\n") == 6
    assert all(character.isprintable() or character == "\n" for character in text)


def test_colours_do_not_change_the_text() -> None:
    from rich.console import Console

    source = Source("x.arch", "one [bold]two[/]")
    mistake = Diagnostic("E0101", "[red] is wrong", Span(source, 4, 10), "here", remedy="write 2")
    text = coloured(mistake)
    assert text.plain + "\n" == plain([mistake])
    output = io.StringIO()
    Console(file=output, force_terminal=True, width=40).print(text, soft_wrap=True)
    assert "\x1b[" in output.getvalue()
