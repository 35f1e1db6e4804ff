"""From an optimized graph to a module."""

from __future__ import annotations

from torch import nn

from archlang.backend import mistakes
from archlang.backend.architecture import Architecture
from archlang.backend.lower.code import Code, Loop
from archlang.backend.lower.instances import plant
from archlang.backend.lower.names import relative
from archlang.backend.lower.regions import lower
from archlang.backend.runtime.halting import HaltingBlock
from archlang.backend.runtime.joined_linear import Join
from archlang.backend.runtime.loops import Halting, Halves, Repeat, Scan, Stack, find
from archlang.graph import operations
from archlang.graph.graph import Graph, Node
from archlang.graph.loop_layout import has_halting_positions


def build_module(graph: Graph, *, plugins: bool = False, ahead: bool = True) -> Architecture:
    """The module of an optimized graph. `plugins` allows Python outside of `archlang.blocks`, which is then imported.
    Unless `ahead`, scans compute chunk by chunk.

    Raises:
        BuildError: a size is unknown, or a block's Python is missing or not allowed."""
    # Features must be numbers now; lengths stay open.
    if unknown := graph.unknown_sizes():
        raise mistakes.unknown_sizes(graph.name, unknown)
    program = lower(graph, ahead=ahead)
    architecture = Architecture(program)
    plant(architecture, graph, plugins=plugins)
    _attach(architecture, program.code, graph)
    return architecture


def _attach(owner: nn.Module, code: Code, graph: Graph) -> None:
    """Gives the module that runs some code the loops and joins in it, as plain attributes: they own no weights."""
    for join in code.joins:
        paths = tuple(f"{relative(path, join.scope)}.{name}" for path, name in join.maps)
        widths = [kind.feature for kind in join.types]
        sizes = tuple(width.constant for width in widths if width is not None and width.constant is not None)
        owner.__dict__[join.name] = Join(owner, paths, sizes)
    for loop in code.loops:
        runtime = _runtime(owner, loop, graph)
        owner.__dict__[loop.name] = runtime
        for runner in runtime.steps() if isinstance(runtime, Stack) else [owner]:
            _attach(runner, loop.body, graph)


def _runtime(owner: nn.Module, loop: Loop, graph: Graph) -> Repeat | Stack | Halting | Scan:
    node, body, extras = loop.node, loop.body.function, loop.body.extras
    halves = None
    if loop.split is not None:
        halves = Halves(loop.split.head.function, loop.split.rest.function, loop.split.reads)
    match node.operation:
        case operations.Repeat(count=count):
            return Repeat(owner, body, count, len(node.types), extras, halves)
        case operations.Stack(path=path):
            return Stack(owner, body, relative(path, loop.scope), len(node.types), extras, halves)
        case operations.Scan(carried=carried, emits=emits):
            return Scan(owner, body, carried, emits, extras, halves)
    assert isinstance(node.operation, operations.Halting)
    instance = graph.instances[node.operation.instance]
    path = relative(instance.path, loop.scope)
    block = find(owner, path.split("."))
    if not isinstance(block, HaltingBlock):
        raise mistakes.not_halting(instance)
    return Halting(
        owner,
        body,
        path,
        limit=node.operation.limit,
        halted=node.operation.state,
        mixture=node.operation.mixture,
        # The vocabulary is a size of tokens, but no axis.
        ranks=tuple(1 + len(kind.dims) - (kind.name == "tokens") for kind in node.types),
        along=tuple(has_halting_positions(node, index) for index in range(len(node.types))),
        extras=extras,
        depth=loop.deep,
        compact=not any(_is_mixing(inner, graph) for inner in node.regions[0].walk()),
        halves=halves,
    )


def _is_mixing(node: Node, graph: Graph) -> bool:
    """Whether a node computes something of one sample from another one."""
    return node.instance is not None and "batch" in graph.instances[node.instance].caveats
