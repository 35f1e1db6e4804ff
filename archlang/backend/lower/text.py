"""The Python of a compiled model, for reading: every line beside the line of the program that it comes from."""

from __future__ import annotations

from collections.abc import Iterator

from archlang.backend.architecture import Architecture
from archlang.backend.lower.code import Code
from archlang.graph.graph import Node
from archlang.graph.operations import Scan

_COLUMN = 70
_WIDTH = 60


def print_torch(architecture: Architecture) -> str:
    """What the module computes, and the bodies of its loops."""
    code = architecture.program.code
    return "\n\n".join([_function(code), *_bodies(code)]) + "\n"


def _bodies(code: Code) -> Iterator[str]:
    for loop in code.loops:
        if loop.split is None:
            yield f"# the body of `self.{loop.name}`: {_head(loop.node)}\n{_function(loop.body)}"
        else:
            scans = isinstance(loop.node.operation, Scan)
            when = "for many chunks at once" if scans else "for the first step by the loop around it"
            yield f"# what `self.{loop.name}` computes ahead, {when}: {_head(loop.node)}\n{_function(loop.split.head)}"
            yield f"# the rest of the body of `self.{loop.name}`\n{_function(loop.split.rest)}"
        yield from _bodies(loop.body)


def _function(code: Code) -> str:
    lines: list[str] = []
    last = None
    for number, line in enumerate(code.source.splitlines(), start=1):
        text = line.split(";  ")[0].rstrip()  # behind it fx lets go of values that are not needed any more
        origin = code.origins.get(number)
        if origin is not None and origin is not last and origin.span is not None:
            text = f"{text:<{_COLUMN}}  # {origin.span.source.path}:{origin.span.line}  {_first_line(origin)}"
        if text:
            lines.append(text)
        last = origin
    return "\n".join(lines)


def _head(node: Node) -> str:
    """What kind of loop it is."""
    operation = node.operation
    shown = [name for name in ("count", "limit", "path", "instance") if hasattr(operation, name)]
    text = " ".join([operation.mnemonic, *(f"{name} = {getattr(operation, name)}" for name in shown)])
    return f"{text}, {node.span}" if node.span is not None else text


def _first_line(node: Node) -> str:
    assert node.span is not None
    text = node.span.text.split("\n", 1)[0].strip()
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"
