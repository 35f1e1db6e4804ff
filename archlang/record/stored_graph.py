"""A graph of a run folder: checked like one that is compiled, because another program may have written it."""

import re
from collections.abc import Iterable, Iterator, Mapping

from archlang.elaborate.binding import LARGEST_SIZE
from archlang.elaborate.library_facts import with_library_facts
from archlang.elaborate.model_size import MOST_LOOP_STEPS, MOST_OPERATIONS
from archlang.graph.graph import Graph, Region
from archlang.graph.operations import OwnWeights, step_limit
from archlang.graph.scope import scope_of
from archlang.graph.text import parse_graph
from archlang.graph.verifier import MalformedGraph, verify
from archlang.types import Dim
from archlang.types.statics import Symbol

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def parse_stored_graph(text: str) -> Graph:
    """Returns the graph of a text, with the facts of the library's blocks.

    Raises:
        ValueError: the text is not that of a graph, the graph breaks a rule, or the model is too large."""
    graph = parse_graph(text)
    try:
        verify(graph)
    except MalformedGraph as error:
        raise ValueError(str(error)) from error
    _check_names(graph)
    _check_sizes(graph)
    _check_loops(graph.region, 1)
    _check_modules(graph)
    return with_library_facts(graph)


def _check_names(graph: Graph) -> None:
    """Raises:
    ValueError: a name is no word of the language, or a path not one of such words."""
    nodes = list(graph.region.walk())
    inputs = [value for region in (graph.region, *(body for node in nodes for body in node.regions))
              for value in region.inputs]  # fmt: skip
    for word in filter(None, (graph.name, *(value.name for value in inputs), *(node.name for node in nodes))):
        if not _WORD.fullmatch(word):
            raise ValueError(f"{word!r} is no name")
    symbols = [str(value) for instance in graph.instances.values() for value in _leaves(instance.statics.values())
               if isinstance(value, Symbol)]  # fmt: skip
    facts = [value for node in nodes for value in _leaves(vars(node.operation).values()) if isinstance(value, str)]
    for path in (*graph.instances, *symbols, *filter(None, facts)):
        if not all(_WORD.fullmatch(word) or word == "*" for word in path.split(".")):
            raise ValueError(f"{path!r} is no path of names")


def _leaves(values: Iterable[object]) -> Iterator[object]:
    for value in values:
        yield from _leaves(value) if isinstance(value, tuple) else (value,)


def _check_sizes(graph: Graph) -> None:
    for path, instance in graph.instances.items():
        for name, size in instance.features.items():
            _check_size(f"`{name}` of @{path}", size)
    for node in graph.region.walk():
        for kind in node.types:
            for size in kind.dims:
                _check_size(node.id, size)


def _check_size(what: str, size: Dim) -> None:
    if size.is_unwieldy or (size.constant is not None and not 0 <= size.constant <= LARGEST_SIZE):
        raise ValueError(f"{what} has the size {size}, which is not between 0 and {LARGEST_SIZE:,}")


def _check_loops(region: Region, steps: int) -> None:
    """Raises:
    ValueError: nested loops take more steps than a program may."""
    for node in region.nodes:
        inner = steps * max(1, step_limit(node.operation) or 1)
        if inner > MOST_LOOP_STEPS:
            raise ValueError(f"the loop {node.id} and those around it take more than {MOST_LOOP_STEPS:,} steps")
        for body in node.regions:
            _check_loops(body, inner)


def _check_modules(graph: Graph) -> None:
    """Raises:
    ValueError: the model has more operations or modules than a program may."""
    nodes = list(graph.region.walk())
    counts = {node.operation.path: node.operation.count for node in nodes if isinstance(node.operation, OwnWeights)}
    modules = sum(_copies(path, counts) for path in (*graph.instances, *counts))
    if max(len(nodes), modules) > MOST_OPERATIONS:
        raise ValueError(f"the model has more than {MOST_OPERATIONS:,} operations or modules")


def _copies(path: str, counts: Mapping[str, int]) -> int:
    """Returns how many modules a path stands for: one for each step of the stacks around it; a stack has its steps."""
    copies = counts.get(path, 1)
    while scope := scope_of(path):
        path = scope.removesuffix(".*")
        copies *= counts.get(path, 0)
    return copies
