"""Adds to errors from torch the places in the `.arch` file that they come from."""

from collections.abc import Iterator

from archlang.backend.lower.code import Code
from archlang.graph.graph import Node


def add_source_notes(error: BaseException, code: Code) -> None:
    """Adds to an error a note for each node that was being computed, innermost first."""
    # By identity: code objects of different regions may be equal.
    codes = {id(region.function.__code__): region for region in all_codes(code)}
    nodes: list[Node] = []  # that each frame of compiled code was computing, outer before inner
    trace = error.__traceback__
    while trace is not None:
        code_of_frame = codes.get(id(trace.tb_frame.f_code))
        if code_of_frame is not None and (origin := code_of_frame.origins.get(trace.tb_lineno)) is not None:
            nodes.append(origin)
        trace = trace.tb_next
    for node in reversed(nodes):
        if node.span is not None:
            line = node.span.text.split("\n", 1)[0].rstrip(" {")
            error.add_note(f"{node.span}: {line}")


def all_codes(code: Code) -> Iterator[Code]:
    """Yields the code of a region, and of those in it."""
    yield code
    yield from code.rows
    for loop in code.loops:
        for body in loop.codes():
            yield from all_codes(body)
