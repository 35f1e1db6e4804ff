"""Errors inside of torch, told in the lines of the `.arch` file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from archlang.backend.lower.code import Code
from archlang.graph.graph import Node


def explain(error: BaseException, code: Code) -> None:
    """Adds to an error, as a note, the place in the program that it comes from, innermost first."""
    known = {id(one.function.__code__): one for one in _all(code)}  # equal code objects may be of different regions
    for node in reversed(list(_nodes(error, known))):
        if node.span is not None:
            what = node.span.text.split("\n", 1)[0].rstrip(" {")
            error.add_note(f"{node.span}: {what}")


def _all(code: Code) -> Iterator[Code]:
    yield code
    for loop in code.loops:
        for one in loop.codes():
            yield from _all(one)


def _nodes(error: BaseException, known: Mapping[int, Code]) -> Iterator[Node]:
    """What was being computed in each frame of compiled code, outer before inner."""
    trace = error.__traceback__
    while trace is not None:
        code = known.get(id(trace.tb_frame.f_code))
        if code is not None and (node := code.origins.get(trace.tb_lineno)) is not None:
            yield node
        trace = trace.tb_next
