"""Brackets without the other one, and what an unexpected token has to do with them."""

from __future__ import annotations

from archlang.diagnostics import Diagnostic
from archlang.source import Span
from archlang.syntax import mistakes
from archlang.syntax.outline import Unclosed, Unmatched
from archlang.syntax.progress import Progress


class BracketMistakes:
    """The unmatched brackets of a text, each of which is reported once."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._reported: set[Unclosed | Unmatched] = set()

    def unmatched(self, closer: int) -> Unmatched | None:
        for problem in self._progress.outline.problems:
            if isinstance(problem, Unmatched) and problem.closer == closer:
                return problem
        return None

    def is_reported(self, problem: Unmatched) -> bool:
        """Returns whether a bracket was reported, or follows from a mistake before it on its line."""
        return problem in self._reported

    def closer_on_line(self, place: int) -> str:
        """Returns the first bracket after a place on its line that is unmatched, if it is `)` or `]`; else an empty
        text. It counts as reported."""
        problems = self._progress.outline.problems
        problem = next((problem for problem in problems if _place(problem) > place), None)
        if not isinstance(problem, Unmatched) or not self._progress.same_line(place, problem.closer):
            return ""
        closer = self._progress.text[problem.closer]
        if closer == "}":
            return ""
        self._reported.add(problem)
        return closer

    def unclosed(self, place: int) -> Unclosed | None:
        """Returns the unclosed bracket that explains an unexpected token at this place, if any."""
        for problem in self._progress.outline.problems:
            if isinstance(problem, Unclosed) and problem not in self._reported:
                begin = problem.noticed if self._progress.text[problem.opener] == "{" else problem.opener + 1
                is_near = place <= problem.noticed or self._progress.same_line(problem.noticed, place)
                if begin <= place and (is_near or self._progress.stack.is_open(problem.opener)):
                    return problem
        return None

    def end_of_body(self, place: int) -> int | None:
        """Returns the end of the body whose `{` is missing at a place; None if no `}` ends it before the next item."""
        if self._progress.stack.brace_around() is not None or "LBRACE" not in self._progress.stack.accepted():
            return None
        return self.closer_after(place)

    def closer_after(self, place: int) -> int | None:
        """Returns the end of a `}` without a `{` that ends the lines from a place on; None if there is none before the
        next item."""
        outline = self._progress.outline
        problem = next((problem for problem in outline.problems if _place(problem) >= place), None)
        if not isinstance(problem, Unmatched) or self._progress.text[problem.closer] != "}":
            return None
        for point in outline.points_after(place):
            # An indented `model` can be a part of a recipe.
            if place < point.start < problem.closer and point.is_item and not self._begins_model(point.start):
                return None
        self._reported.add(problem)
        return problem.closer + 1

    def _begins_model(self, place: int) -> bool:
        return self._progress.text.startswith("model", place) and not self._progress.text.startswith(
            ("\n", "\r"), place - 1
        )

    def skip_on_line(self, place: int) -> None:
        """Does not report the brackets on the line of an unexpected token that match no other because of it: brackets
        after it, and `{` if it is one."""
        is_brace = self._progress.text[place] == "{"
        self._reported |= {
            problem
            for problem in self._progress.outline.problems
            if (
                problem.opener is None and problem.closer > place and self._progress.same_line(place, problem.closer)
                if isinstance(problem, Unmatched)
                else self._progress.same_line(problem.opener, place)
                and (is_brace if self._progress.text[problem.opener] == "{" else problem.opener > place)
            )
        }

    def skip_between(self, start: int, end: int) -> None:
        """Does not report the closing `)` and `]` in a skipped text whose opening brackets are missing."""
        self._reported |= {
            problem
            for problem in self._progress.outline.problems
            if isinstance(problem, Unmatched)
            and start < problem.closer < end
            and self._progress.text[problem.closer] != "}"
        }

    def unreported(self, offsets: list[int]) -> list[Unclosed | Unmatched]:
        """Returns the unmatched brackets that were not reported; there are mistakes at `offsets`."""
        problems = [problem for problem in self._progress.outline.problems if problem not in self._reported]
        return [problem for problem in problems if not self._ends_half_header(problem, offsets)]

    def mistake_of(self, problem: Unclosed | Unmatched, noticed: Span | None = None) -> Diagnostic:
        """Returns the diagnostic of an unmatched bracket, which counts as reported. `noticed` is where parsing failed
        because of it."""
        self._reported.add(problem)
        opener = None if problem.opener is None else self._progress.span(problem.opener, problem.opener + 1)
        if isinstance(problem, Unmatched):
            return mistakes.unmatched_closer(self._progress.span(problem.closer, problem.closer + 1), opener)
        assert opener is not None, "an unclosed bracket has an opening one"
        if noticed is None:
            end = min(problem.noticed, len(self._progress.text.rstrip()))
            noticed = self._progress.span(end, min(end + 1, len(self._progress.text)))
        return mistakes.unclosed_bracket(opener, noticed)

    def _ends_half_header(self, problem: Unclosed | Unmatched, offsets: list[int]) -> bool:
        """Returns whether a problem is the closing bracket of a header that breaks off before its opening bracket."""
        if (
            not isinstance(problem, Unmatched)
            or problem.opener is not None
            or self._progress.text[problem.closer] == "}"
        ):
            return False
        outline = self._progress.outline
        items = [point.start for point in outline.points if point.is_item and point.start < problem.closer]
        start = items[-1] if items else 0
        braces = any(start < brace < problem.closer for brace in outline.around)
        return not braces and any(start <= place < problem.closer for place in offsets)


def _place(problem: Unclosed | Unmatched) -> int:
    return problem.closer if isinstance(problem, Unmatched) else problem.noticed
