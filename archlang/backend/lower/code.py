"""The Python of one region, as `torch.fx` writes it, and the node of the graph that each line computes, for errors."""

from __future__ import annotations

import linecache
import re
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from torch import fx, nn

from archlang.backend.lower.row_blocks import fuse_rows
from archlang.backend.lower.slices import cut_once
from archlang.backend.runtime.loops import DEPTH, PONDER
from archlang.backend.runtime.row_blocks import RowBlocks
from archlang.backend.runtime.scan_gradients import ScanGradient
from archlang.graph.graph import Instance, Node
from archlang.graph.operations import LOSSES, Halting
from archlang.types import Type

_ASSIGNMENT = re.compile(r"\s+(\w+) = ")
_file_numbers = count(1)


@dataclass(frozen=True, eq=False)
class Code:
    """The compiled Python of a region; `title` names it with its model.

    `function` takes the module that it runs in, the region's inputs, and masks. `origins` has the node that each line
    (from 1) computes, and `nodes` the node of each value of `graph`. `loops` are those that the region runs.
    `extras` names the results behind the region's own: `PONDER` and `DEPTH` of its halting loops, and its auxiliary
    losses, as in `losses.balance`. `types` has the types of values of `graph`, by their names. `fused` is the graph
    after the passes, which `function` computes; in it, `groups` are the maps that are computed by rows, by the names of
    their values, and `rows` are their bodies. `obstacles` has the values because of which other maps are held
    as wholes."""

    name: str
    title: str
    source: str
    graph: fx.Graph = field(repr=False)
    function: Callable[..., Any]  # Any: as many tensors as the region has results
    origins: Mapping[int, Node] = field(repr=False)
    nodes: Mapping[str, Node] = field(repr=False)
    loops: tuple[LoweredLoop, ...]
    extras: tuple[str, ...]
    types: Mapping[str, Type] = field(repr=False)
    fused: fx.Graph = field(repr=False)
    groups: Mapping[str, RowBlocks] = field(repr=False)
    rows: tuple[Code, ...]
    obstacles: Mapping[str, str]


@dataclass(frozen=True, eq=False)
class SplitCode:
    """A body in two functions. `head` takes the arguments of the indices `reads`; `rest` takes all arguments, then the
    results of `head`."""

    head: Code
    rest: Code
    reads: tuple[int, ...]


@dataclass(eq=False)
class LoweredLoop:
    """A loop of a region: the attribute that holds it, its node, and its body.

    `scope` is that of the module that calls it. `has_depth` says that its depth is among its results, because no
    halting loop is around it."""

    name: str
    node: Node
    scope: str
    body: Code
    has_depth: bool
    split: SplitCode | None = None
    """the body in two functions, if the first of them can run earlier"""
    parallel: Code | None = None
    """the body for all positions at once, if the states of a scan are affine in themselves"""
    obstacle: str = ""
    """why a scan has no such body"""
    gradient: ScanGradient | None = None
    """the body of another scan with a backward pass of its own, if it has one"""
    gradient_codes: tuple[Code, ...] = ()
    """its functions"""
    gradient_obstacle: str = ""
    """why it has none"""

    @property
    def extras(self) -> tuple[str, ...]:
        """The names of its results behind its states and what it emits, as `Code.extras`."""
        if not isinstance(self.node.operation, Halting):
            return self.body.extras
        losses = (name for name in self.body.extras if name.startswith(LOSSES))
        return (PONDER, *((DEPTH,) if self.has_depth else ()), *losses)

    def codes(self) -> tuple[Code, ...]:
        """Returns the body and its other forms."""
        halves = () if self.split is None else (self.split.head, self.split.rest)
        return (self.body, *halves, *(() if self.parallel is None else (self.parallel,)), *self.gradient_codes)


@dataclass(frozen=True)
class PassContext:
    """What the passes read: the instances of a model and their classes, by their paths, and the names of passes to
    omit."""

    instances: Mapping[str, Instance]
    classes: Mapping[str, type[nn.Module]]
    without: frozenset[str]


def compile_graph(
    name: str,
    title: str,
    graph: fx.Graph,
    nodes: Mapping[str, Node],
    types: Mapping[str, Type],
    loops: tuple[LoweredLoop, ...],
    extras: tuple[str, ...],
    context: PassContext | None,
) -> Code:
    """Compiles a graph of torch.fx to a function, after the passes of a context. `nodes` and `types` are those of its
    values, by their names."""
    # The bodies of groups of rows, which `fuse_rows` compiles through this function.
    rows: list[Code] = []

    def compile_rows(part: str, body: fx.Graph, origins: Mapping[str, Node]) -> Callable[..., Any]:
        rows.append(compile_graph(part, f"{title}.{part}", body, origins, {}, (), (), None))
        return rows[-1].function

    fused, groups, obstacles = graph, dict[str, RowBlocks](), dict[str, str]()
    if context is not None and "slices" not in context.without:
        fused = cut_once(fused, nodes, context.instances, context.classes)
    if context is not None and "rows" not in context.without:
        fused, groups, obstacles = fuse_rows(fused, nodes, types, context.instances, context.classes, compile_rows)
    python = fused.python_code("self")
    source = python.src.strip().replace("def forward(", f"def {name}(", 1) + "\n"
    source = re.sub(r"\barchlang_rows_of_\w+\(", r"\g<0>self, ", source)  # torch.fx has no value for the module
    filename = f"<archlang {title}, {next(_file_numbers)}>"
    namespace: dict[str, Any] = dict(python.globals)  # Any: a namespace of Python
    exec(compile(source, filename, "exec"), namespace)
    lines = source.splitlines(keepends=True)
    linecache.cache[filename] = (len(source), None, lines, filename)  # so that tracebacks and debuggers show it
    # Each line of the source assigns one value, so a line of a traceback leads to its node of the graph.
    assigned = {number: match[1] for number, line in enumerate(lines, start=1) if (match := _ASSIGNMENT.match(line))}
    _require_names(fused, namespace[name], assigned.values())
    origins = {number: nodes[value] for number, value in assigned.items() if value in nodes}
    of_region = namespace[name], origins, dict(nodes), loops, extras, dict(types)
    code = Code(name, title, source, graph, *of_region, fused, groups, tuple(rows), obstacles)
    # Without this, the sources of deleted modules would fill the cache of the process.
    weakref.finalize(code, linecache.cache.pop, filename, None)
    return code


def _require_names(graph: fx.Graph, function: Callable[..., Any], values: Collection[str]) -> None:
    """Asserts that torch.fx renamed no value: a new name could equal another one, and a value would be lost."""
    arguments = tuple(node.name for node in graph.nodes if node.op == "placeholder")
    code = function.__code__
    assert code.co_varnames[: code.co_argcount] == ("self", *arguments)
    assert set(values) == {node.name for node in graph.nodes if node.op not in ("placeholder", "output")}


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
