"""Sentences about a name: what it costs, which positions it may depend on, and where a static gets its value."""

import re
from collections.abc import Iterator, Mapping

from archlang.editor.completion_options import allowed_values
from archlang.editor.document import Document
from archlang.editor.graphs import GraphItem, concrete_graph, part_around
from archlang.editor.symbols import Item, Meaning
from archlang.errors import Span
from archlang.graph.causality import horizons
from archlang.graph.graph import Graph, Node
from archlang.graph.operations import Apply, Call
from archlang.graph.summary import summarize, weights
from archlang.syntax.tree import Definition
from archlang.types.causality import Horizon, Reach

# Positions of the sample whose FLOPs are counted.
LENGTH = 64
# The longest space around `<-` in an update.
_LONGEST_UPDATE = 200
_BINDER = re.compile(r"\s*(?:=|<-)\s*")
_POSITIONS = {
    Reach.POINTWISE: "position i of `{}`",
    Reach.CAUSAL: "positions 0 to i of `{}`",
    Reach.PAIRED: "the positions of `{}` up to the row or the column",
    Reach.MIRRORED: "position n - 1 - i of `{}`",
    Reach.BEFORE: "the positions of `{}` before the part",
    Reach.START: "the positions of `{}` up to the start of the part",
}


def call_details(document: Document, callee: Span) -> Iterator[str]:
    """Yields what the call of a block costs, and what its result may depend on. `callee` is where it is named."""
    calls = [
        (node, graph, words)
        for node, graph, words in _nodes_around(document, callee)
        if isinstance(node.operation, Call | Apply) and node.span is not None and node.span.start == callee.start
    ]
    if calls:
        node, graph, words = min(calls, key=lambda call: call[0].span.end if call[0].span else 0)
        yield from _costs_of_call(node, graph, words)
        yield from _dependence(node, _horizons_by_input(graph))


def value_details(document: Document, symbol: Meaning) -> Iterator[str]:
    """Yields what a value may depend on: for each line that binds or updates it, if they differ."""
    end, name = symbol.span.end, symbol.name
    update = re.compile(rf"(?<![\w.]){re.escape(name)}[ \t]*<-\s*\Z")
    by_line: dict[int, list[str]] = {}
    horizons_in: dict[str, Mapping[str, Horizon]] = {}  # by the name of the input
    last = next((item.span.end for item in document.program.items if item.span.start <= end < item.span.end), end)
    for node, graph, _ in _nodes_around(document, symbol.span):
        if node.span is None or not end < node.span.start < last:  # a block of the file may be part of the graph
            continue
        start = node.span.start
        is_first = node.name == name and _BINDER.fullmatch(document.text, end, start) is not None
        if is_first or update.search(document.text, max(end, start - _LONGEST_UPDATE - len(name)), start):
            horizons_in = horizons_in or _horizons_by_input(graph)
            by_line.setdefault(node.span.line, list(_dependence(node, horizons_in)))
    if len({tuple(parts) for parts in by_line.values()}) == 1:
        yield from next(iter(by_line.values()))
        return
    for line, parts in by_line.items():
        for sentence in parts:
            yield f"Line {line}: {sentence[0].lower()}{sentence[1:]}"


def item_details(document: Document, item: Item) -> Iterator[str]:
    """Yields what a model or a block of the document costs as a whole, and what its result may depend on."""
    if not isinstance(item, Definition) or item.span.source.path != document.path:
        return
    concrete = concrete_graph(document, GraphItem(item.word, item.name))
    if concrete is None:
        return
    graph, words = concrete
    summary = summarize(graph, LENGTH)
    counts = [(summary.unique, "parameters", summary.unknown), (summary.flops, "FLOPs", summary.uncounted)]
    yield from _sentence([f"{count:,} {noun}" for count, noun, unknown in counts if count and not unknown], words)
    result = graph.region.results[0]
    yield from _depends({name: values.get(result) for name, values in _horizons_by_input(graph).items()})


def static_details(symbol: Meaning, item: Item | None) -> Iterator[str]:
    """Yields the words that a static of an item can be, and where it is declared."""
    values = () if item is None or symbol.static is None else allowed_values(item, symbol.static)
    if values:
        yield f"Values: {', '.join(f'`{value}`' for value in values)}"
    yield f"Declared at `{symbol.span.source.path}:{symbol.span.line}`"


def _nodes_around(document: Document, place: Span) -> Iterator[tuple[Node, Graph, str]]:
    """Yields the nodes of the model or block around a place, with its graph and the words for its sizes."""
    part = part_around(document, place.start) if place.source.path == document.path else None
    concrete = None if part is None or part.word == "recipe" else concrete_graph(document, part)
    if concrete is not None:
        graph, words = concrete
        for node in graph.region.walk():
            if node.span is not None and node.span.source.path == document.path:
                yield node, graph, words


def _costs_of_call(node: Node, graph: Graph, words: str) -> Iterator[str]:
    nodes = summarize(graph, LENGTH).nodes
    cost = nodes.get(node.id)
    if cost is not None:
        counts = [(weights(graph, node, nodes), "parameters"), (cost.flops, "FLOPs")]
        yield from _sentence([f"{count:,} {noun}" for count, noun in counts if count], words)


def _sentence(counts: list[str], words: str) -> Iterator[str]:
    if counts:
        yield f"{' and '.join(counts)} for {LENGTH} positions" + (f", {words}" if words else "")


def _horizons_by_input(graph: Graph) -> dict[str, Mapping[str, Horizon]]:
    return {value.name: horizons(graph, value.name, with_length=False) for value in graph.region.inputs}


def _dependence(node: Node, horizons_in: Mapping[str, Mapping[str, Horizon]]) -> Iterator[str]:
    yield from _depends({name: values.get(node.id) for name, values in horizons_in.items()})


def _depends(horizon_of_input: dict[str, Horizon | None]) -> Iterator[str]:
    """Yields the sentence about the horizons of a value in the inputs."""
    positions = [_positions(name, horizon) for name, horizon in horizon_of_input.items() if horizon is not None]
    seen = [text for text in positions if text]
    if seen:
        yield f"Position i may depend on {' and '.join(seen)}"
    elif positions:
        yield "Depends on no input"


def _positions(name: str, horizon: Horizon) -> str:
    if horizon.reach is Reach.NOTHING:
        return ""
    if horizon.reach is Reach.WITHIN:
        return f"every position of `{name}`" + (" up to the end of the part" if horizon.scan else "")
    return _POSITIONS[horizon.reach].format(name)
