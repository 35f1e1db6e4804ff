"""The Python of one region, as `torch.fx` writes it, and the node of the graph that each line computes."""

from __future__ import annotations

import linecache
import re
import weakref
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from torch import fx

from archlang.backend.runtime.loops import DEPTH, PONDER
from archlang.graph.graph import Node
from archlang.graph.operations import LOSSES, Halting

_ASSIGNMENT = re.compile(r"\s+(\w+) = ")
_file_numbers = count(1)


@dataclass(frozen=True, eq=False)
class Code:
    """The compiled Python of a region; `title` names it with its model.

    `function` takes the module that it runs in, the region's inputs, and masks. `origins` has the node that each line
    (from 1) computes, and `nodes` the node of each value of `graph`. `loops` are those that the region runs.
    `extras` names the results behind the region's own: `PONDER` and `DEPTH` of its halting loops, and its auxiliary
    losses, as in `losses.balance`."""

    name: str
    title: str
    source: str
    graph: fx.Graph = field(repr=False)
    function: Callable[..., Any]  # Any: as many tensors as the region has results
    origins: Mapping[int, Node] = field(repr=False)
    nodes: Mapping[str, Node] = field(repr=False)
    loops: tuple[LoweredLoop, ...]
    extras: tuple[str, ...]


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

    @property
    def extras(self) -> tuple[str, ...]:
        """The names of its results behind its states and what it emits, as `Code.extras`."""
        if not isinstance(self.node.operation, Halting):
            return self.body.extras
        losses = (name for name in self.body.extras if name.startswith(LOSSES))
        return (PONDER, *((DEPTH,) if self.has_depth else ()), *losses)

    def codes(self) -> tuple[Code, ...]:
        """Returns the body and, if it is split, its two functions."""
        return (self.body,) if self.split is None else (self.body, self.split.head, self.split.rest)


def compile_graph(
    name: str,
    title: str,
    graph: fx.Graph,
    nodes: Mapping[str, Node],
    loops: tuple[LoweredLoop, ...],
    extras: tuple[str, ...],
) -> Code:
    """Compiles a graph of torch.fx to a function. `nodes` has the node of each of its values, by their names."""
    python = graph.python_code("self")
    source = python.src.strip().replace("def forward(", f"def {name}(", 1) + "\n"
    filename = f"<archlang {title}, {next(_file_numbers)}>"
    namespace: dict[str, Any] = dict(python.globals)  # Any: a namespace of Python
    exec(compile(source, filename, "exec"), namespace)
    lines = source.splitlines(keepends=True)
    linecache.cache[filename] = (len(source), None, lines, filename)  # so that tracebacks and debuggers show it
    assigned = {number: match[1] for number, line in enumerate(lines, start=1) if (match := _ASSIGNMENT.match(line))}
    _require_names(graph, namespace[name], assigned.values())
    origins = {number: nodes[value] for number, value in assigned.items() if value in nodes}
    code = Code(name, title, source, graph, namespace[name], origins, dict(nodes), loops, extras)
    weakref.finalize(code, linecache.cache.pop, filename, None)
    return code


def _require_names(graph: fx.Graph, function: Callable[..., Any], values: Collection[str]) -> None:
    """Asserts that torch.fx renamed no value: a new name could equal another one, and a value would be lost."""
    arguments = tuple(node.name for node in graph.nodes if node.op == "placeholder")
    code = function.__code__
    assert code.co_varnames[: code.co_argcount] == ("self", *arguments)
    assert set(values) == {node.name for node in graph.nodes if node.op not in ("placeholder", "output")}
