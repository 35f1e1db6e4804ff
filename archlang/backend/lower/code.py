"""The Python of one region: what `torch.fx` writes for it, and which value of the graph each line makes."""

from __future__ import annotations

import linecache
import re
import weakref
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from torch import fx

from archlang.graph.graph import Node
from archlang.graph.operations import MapPath
from archlang.types import Type

_MAKES = re.compile(r"\s+(\w+) = ")
_numbers = count(1)


@dataclass(frozen=True, eq=False)
class Code:
    """A compiled region; `title` says of which model. `function` takes the module that it runs in, inputs, and masks.

    `origins` has the node that each line (from 1) computes, and `nodes` that of each value of `graph`. `loops` are the
    loops in it, and `joins` the joins whose products or weights it computes. `extras` counts the results behind the
    region's own: the ponder of its halting loops, and how deep they went."""

    name: str
    title: str
    source: str
    graph: fx.Graph = field(repr=False)
    function: Callable[..., Any]  # Any: as many tensors as the region has results
    origins: Mapping[int, Node] = field(repr=False)
    nodes: Mapping[str, Node] = field(repr=False)
    loops: tuple[Loop, ...]
    extras: int
    joins: tuple[Join, ...] = ()


@dataclass(frozen=True, eq=False)
class Split:
    """A body in two halves. `head` takes the arguments of the numbers `reads`; `rest` takes all of them, then what
    the head gives."""

    head: Code
    rest: Code
    reads: tuple[int, ...]


@dataclass(eq=False)
class Loop:
    """A loop of a region: the attribute under which it is called, its node, and its body. `scope` is that of the module
    that calls it; `deep` says that its depth is among its results, as no halting loop is around it."""

    name: str
    node: Node
    scope: str
    body: Code
    deep: bool
    split: Split | None = None
    """the body once more, if something in it can be computed ahead"""

    def codes(self) -> tuple[Code, ...]:
        """The body, and its halves."""
        return (self.body,) if self.split is None else (self.body, self.split.head, self.split.rest)


@dataclass(frozen=True, eq=False)
class Join:
    """A join: the attribute under which it is called, its maps and the types of their products. `scope` is that of the
    module that calls it."""

    name: str
    maps: tuple[MapPath, ...]
    types: tuple[Type, ...]
    scope: str


def write(
    name: str,
    title: str,
    graph: fx.Graph,
    origins: Mapping[str, Node],
    loops: tuple[Loop, ...],
    extras: int,
    joins: tuple[Join, ...] = (),
) -> Code:
    """Turns a graph of torch.fx into a function. `origins` are the nodes by the names that fx gave to their values."""
    python = graph.python_code("self")
    source = python.src.strip().replace("def forward(", f"def {name}(", 1) + "\n"
    filename = f"<archlang {title}, {next(_numbers)}>"
    namespace: dict[str, Any] = dict(python.globals)  # Any: a namespace of Python
    exec(compile(source, filename, "exec"), namespace)
    lines = source.splitlines(keepends=True)
    linecache.cache[filename] = (len(source), None, lines, filename)  # so that tracebacks and debuggers show it
    made = {number: match[1] for number, line in enumerate(lines, start=1) if (match := _MAKES.match(line))}
    _require_names(graph, namespace[name], made.values())
    code = Code(
        name,
        title,
        source,
        graph,
        namespace[name],
        {number: origins[value] for number, value in made.items() if value in origins},
        dict(origins),
        loops,
        extras,
        joins,
    )
    weakref.finalize(code, linecache.cache.pop, filename, None)
    return code


def _require_names(graph: fx.Graph, function: Callable[..., Any], values: Collection[str]) -> None:
    """A name that torch.fx replaces could meet another one, and a value would be lost."""
    arguments = tuple(node.name for node in graph.nodes if node.op == "placeholder")
    code = function.__code__
    assert code.co_varnames[: code.co_argcount] == ("self", *arguments)
    assert set(values) == {node.name for node in graph.nodes if node.op not in ("placeholder", "output")}
