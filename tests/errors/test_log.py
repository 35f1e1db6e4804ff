"""A log has each diagnostic once, in order, and reports the excess."""

import pytest

from archlang.errors import Diagnostic, Label, ProgramError, Source, Span
from archlang.errors.log import MOST_ERRORS, MOST_WARNINGS, DiagnosticLog

SOURCE = Source("x.arch", "x" * 1_000)
PLACE = Span(SOURCE, 5, 9)


def mistake(place: int, code: str = "E0201") -> Diagnostic:
    return Diagnostic(code, "no value", Span(SOURCE, place, place + 1))


def test_a_mistake_reported_twice_is_logged_once() -> None:
    log = DiagnosticLog()
    log.add([mistake(5), mistake(3), mistake(5)])
    assert [diagnostic.span.start for diagnostic in log.sorted()] == [3, 5]


def test_a_mistake_of_a_block_is_not_logged_again_with_the_sizes_of_a_recipe() -> None:
    log = DiagnosticLog()
    log(Diagnostic("E0404", "this is `seq[3, vocab]`", Span(SOURCE, 5, 9)))
    log.settle()
    log(Diagnostic("E0404", "this is `seq[3, 5]`", Span(SOURCE, 5, 9)))
    log(Diagnostic("E0402", "this is `seq[3, 5]`", Span(SOURCE, 5, 9)))
    assert [diagnostic.message for diagnostic in log.sorted()] == ["this is `seq[3, 5]`", "this is `seq[3, vocab]`"]


def test_the_first_error_beyond_the_limit_raises() -> None:
    log = DiagnosticLog()
    log.add(mistake(place) for place in reversed(range(MOST_ERRORS)))
    log(mistake(0))
    with pytest.raises(ProgramError) as error:
        log(mistake(500))
    *shown, last = error.value.diagnostics
    assert [diagnostic.span.start for diagnostic in shown] == list(range(MOST_ERRORS))
    assert (last.code, last.span.start) == ("E0115", 500)


def test_warnings_never_hide_an_error() -> None:
    log = DiagnosticLog()
    log.add(mistake(place, "W0201") for place in range(MOST_WARNINGS + 20))
    log(mistake(900))
    *shown, error, last = log.sorted()
    assert [diagnostic.span.start for diagnostic in shown] == list(range(MOST_WARNINGS))
    assert error.code == "E0201"
    assert (last.code, last.span.start) == ("W0203", MOST_WARNINGS)
    assert str(MOST_WARNINGS + 20) in last.message


def test_only_errors_stop_a_phase() -> None:
    log = DiagnosticLog()
    log(mistake(1, "W0201"))
    log.stop_at_errors()
    log(mistake(2))
    with pytest.raises(ProgramError) as error:
        log.stop_at_errors()
    assert [diagnostic.code for diagnostic in error.value.diagnostics] == ["E0201"]


def test_a_mistake_of_several_points_is_reported_once_with_their_number() -> None:
    log = DiagnosticLog()
    log.begin_points()
    for number in (1, 2, 2, 3):
        log(Diagnostic("E0304", f"d = {number}", PLACE, "does not hold", remedy="change it"))
    (mistake,) = log.sorted()
    assert (mistake.message, mistake.remedy) == ("d = 1", "change it; 2 other points have this error with other values")


def test_mistakes_with_other_labels_are_not_one() -> None:
    log = DiagnosticLog()
    log.begin_points()
    for place in (0, 1):
        label = Label(Span(SOURCE, place, place + 1), "required here")
        log(Diagnostic("E0304", f"d = {place}", PLACE, "does not hold", (label,), "change it"))
    assert [mistake.remedy for mistake in log.sorted()] == ["change it", "change it"]
