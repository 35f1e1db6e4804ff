"""A report has each mistake once, in order, and says where it leaves some out."""

from __future__ import annotations

import pytest

from archlang.diagnostics import Diagnostic, ProgramError
from archlang.diagnostics.log import MOST_ERRORS, MOST_WARNINGS, DiagnosticLog
from archlang.source import Source, Span

SOURCE = Source("x.arch", "x" * 1_000)


def mistake(place: int, code: str = "E0201") -> Diagnostic:
    return Diagnostic(code, "no value", Span(SOURCE, place, place + 1))


def test_a_mistake_that_is_reported_twice_is_told_once() -> None:
    report = DiagnosticLog()
    report.add([mistake(5), mistake(3), mistake(5)])
    assert [found.span.start for found in report.sorted()] == [3, 5]


def test_a_mistake_of_a_block_is_not_reported_again_with_the_sizes_of_a_recipe() -> None:
    report = DiagnosticLog()
    report(Diagnostic("E0404", "this is `seq[3, vocab]`", Span(SOURCE, 5, 9)))
    report.settle()
    report(Diagnostic("E0404", "this is `seq[3, 5]`", Span(SOURCE, 5, 9)))
    report(Diagnostic("E0402", "this is `seq[3, 5]`", Span(SOURCE, 5, 9)))
    assert [found.message for found in report.sorted()] == ["this is `seq[3, 5]`", "this is `seq[3, vocab]`"]


def test_the_error_after_the_last_that_is_shown_ends_the_report() -> None:
    report = DiagnosticLog()
    report.add(mistake(place) for place in reversed(range(MOST_ERRORS)))
    report(mistake(0))
    with pytest.raises(ProgramError) as error:
        report(mistake(500))
    *shown, last = error.value.diagnostics
    assert [found.span.start for found in shown] == list(range(MOST_ERRORS))
    assert (last.code, last.span.start) == ("E0115", 500)


def test_warnings_never_hide_an_error() -> None:
    report = DiagnosticLog()
    report.add(mistake(place, "W0201") for place in range(MOST_WARNINGS + 20))
    report(mistake(900))
    *shown, error, last = report.sorted()
    assert [found.span.start for found in shown] == list(range(MOST_WARNINGS))
    assert error.code == "E0201"
    assert (last.code, last.span.start) == ("W0203", MOST_WARNINGS)
    assert str(MOST_WARNINGS + 20) in last.message


def test_only_errors_stop_a_phase() -> None:
    report = DiagnosticLog()
    report(mistake(1, "W0201"))
    report.stop_at_errors()
    report(mistake(2))
    with pytest.raises(ProgramError) as error:
        report.stop_at_errors()
    assert [found.code for found in error.value.diagnostics] == ["E0201"]
