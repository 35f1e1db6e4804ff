"""Prints the Python of a compiled model, each line beside the line of the program that it comes from."""

from collections.abc import Iterator

from archlang.backend.architecture import Architecture
from archlang.backend.lower.code import Code
from archlang.errors.visible import visible
from archlang.graph.graph import Node
from archlang.graph.operations import Scan

_COLUMN = 70
_WIDTH = 60


def print_torch(architecture: Architecture) -> str:
    """Returns the Python of the module's forward function and of the bodies of its loops."""
    code = architecture.program.code
    return "\n\n".join([_function(code), *_bodies(code)]) + "\n"


def scan_forms(code: Code) -> Iterator[str]:
    """Yields how each scan runs, and what prevents that it is computed for all positions at once."""
    for loop in code.loops:
        if isinstance(loop.node.operation, Scan):
            form, reason = "step by step", visible(f": {loop.obstacle}") if loop.obstacle else ""
            if loop.parallel is not None:
                form = "for all positions at once, where no factor of a state is above 1"
            elif loop.gradient is None and loop.gradient_obstacle not in ("", loop.obstacle):
                reason += visible(f"; its backward pass is torch's: {loop.gradient_obstacle}")
            elif loop.gradient is not None and loop.gradient.lstm is None:
                form += ", with a backward pass of its own"
            elif loop.gradient is not None:
                form, reason = "as one operation of torch, an LSTM", ""
            yield f"the scan at {visible(str(loop.node.span))} runs {form}{reason}"
        yield from scan_forms(loop.body)


def map_forms(code: Code) -> Iterator[str]:
    """Yields which maps are computed by rows, and what prevents that others are."""
    yield from _whole_maps(code)
    names = {rows.name for rows in code.rows}
    for rows in code.rows:
        if rows.origins:
            last = rows.origins[max(rows.origins)]
            others = {
                "_fused": "torch's fused attention",
                "_score": "flex_attention",
                "_near": "those keys alone whose weights are not 0",
            }
            forms = ["by rows", *(f"by {form}" for end, form in others.items() if rows.name + end in names)]
            yield visible(f"the maps of `{_first_line(last)}` at {last.span} are computed {' or '.join(forms)}")
    for loop in code.loops:
        yield from map_forms(loop.body)


def _whole_maps(code: Code) -> Iterator[str]:
    for name, reader in code.obstacles.items():
        by, reason = code.nodes.get(reader), "what it leads to reads it again"
        if reader in code.obstacles and reader != name:
            reason = f"so is `{reader}`"
        elif by is not None and by.span is not None and reader != name:
            reason = visible(f"{_first_line(by)}, {by.span}, does not take it by rows")
        yield f"the map `{name}` is held as a whole: {reason}"


def _bodies(code: Code) -> Iterator[str]:
    yield from (f"# {line}" for line in _whole_maps(code))
    for rows in code.rows:
        yield f"# rows of maps\n{_function(rows)}"
    for loop in code.loops:
        if loop.parallel is not None:
            title = f"# `self.{loop.name}` for all positions at once: {_describe(loop.node)}"
            yield f"{title}\n{_function(loop.parallel)}"
        elif loop.obstacle and (loop.gradient is None or loop.gradient.lstm is None):
            yield f"# `self.{loop.name}` runs step by step: {visible(loop.obstacle)}"
        if loop.gradient is not None:
            functions = "\n\n".join(map(_function, loop.gradient_codes))
            form = (
                "with its backward pass"
                if loop.gradient.lstm is None
                else "as an LSTM of torch, or with its backward pass"
            )
            yield f"# `self.{loop.name}` {form}: {_describe(loop.node)}\n{functions}"
        elif loop.gradient_obstacle not in ("", loop.obstacle):
            yield f"# `self.{loop.name}` has no backward pass of its own: {visible(loop.gradient_obstacle)}"
        if loop.split is None:
            yield f"# the body of `self.{loop.name}`: {_describe(loop.node)}\n{_function(loop.body)}"
        else:
            title = f"# the head of the body of `self.{loop.name}`, called once for many steps: {_describe(loop.node)}"
            yield f"{title}\n{_function(loop.split.head)}"
            yield f"# the rest of the body of `self.{loop.name}`\n{_function(loop.split.rest)}"
        yield from _bodies(loop.body)


def _function(code: Code) -> str:
    lines: list[str] = []
    last = None
    for number, line in enumerate(code.source.splitlines(), start=1):
        text = line.split(";  ")[0].rstrip()  # then torch.fx deletes unused values
        origin = code.origins.get(number)
        if origin is not None and origin is not last and origin.span is not None:
            place = visible(f"{origin.span.source.path}:{origin.span.line}  {_first_line(origin)}")
            text = f"{text:<{_COLUMN}}  # {place}"
        if text:
            lines.append(text)
        last = origin
    return "\n".join(lines)


def _describe(node: Node) -> str:
    """The kind of a loop, its settings and its place."""
    operation = node.operation
    names = ("count", "limit", "path", "instance", "truncated", "settled")
    settings = {name: value for name in names if (value := getattr(operation, name, None))}
    text = " ".join([operation.mnemonic, *(f"{name} = {value}" for name, value in settings.items())])
    return visible(f"{text}, {node.span}") if node.span is not None else text


def _first_line(node: Node) -> str:
    assert node.span is not None
    text = node.span.text.split("\n", 1)[0].strip()
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"
