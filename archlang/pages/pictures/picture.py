"""Draws a graph as boxes within boxes. Before the passes, each block of the program has a box."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from archlang.graph.graph import Graph, Input, Instance, Node, Region
from archlang.graph.growth import growths
from archlang.graph.loop_layout import loop_layout, takes_positions
from archlang.graph.operations import (
    Apply,
    Arithmetic,
    Call,
    Charge,
    Experts,
    Halting,
    Literal,
    Part,
    Repeat,
    Scan,
    Stack,
)
from archlang.names.library import PACKAGE
from archlang.pages.pictures.box import Box, Edge
from archlang.pages.pictures.cost_notes import cost_notes
from archlang.source import Span
from archlang.types import Type
from archlang.types.statics import InstanceOf, StaticValue

_SIGNS = {
    Arithmetic.ADD: "+",
    Arithmetic.SUBTRACT: "−",
    Arithmetic.MULTIPLY: "×",
    Arithmetic.DIVIDE: "÷",
    Arithmetic.NEGATE: "− (negate)",
}
_INPUT_NOTES = {
    "captured": "from outside",
    "state": "state",
    "memory": "memory",
    "chunk": "chunk",
    "position": "one position",
    "before": "positions before",
    "mean": "mean so far",
}
# Statics with these values are omitted: they are the default or turn a feature off.
_OMITTED_VALUES = ("0", "0.0", "False", "none", "always")
_MOST_STATICS = 4
_STATICS_PER_LINE = 2


def draw(graph: Graph) -> Box:
    """Returns the picture of a graph, with the parameters and FLOPs of each box."""
    drawer = _GraphDrawer(graph)
    kinds = {value.id: "input" for value in graph.region.inputs}
    boxes, edges = drawer.region(graph.region, kinds, {value.id: value.name for value in graph.region.inputs})
    return Box("model", "model", f"model {graph.name}", drawer.notes[""], boxes=boxes, edges=edges)


class _GraphDrawer:
    def __init__(self, graph: Graph) -> None:
        self.instances = graph.instances
        self.notes = cost_notes(graph)
        uses = Counter(path for node in graph.region.walk() for path in self._weight_paths(node))
        shared = sorted(path for path, count in uses.items() if count > 1 and not graph.instances[path].pure)
        self.badges = {path: number for number, path in enumerate(shared, 1)}

    def _weight_paths(self, node: Node) -> tuple[str, ...]:
        """Returns the paths of the instances whose weights a node uses: its own, and those passed as statics."""
        if node.instance is None:
            return ()
        statics = self.instances[node.instance].statics.values()
        return (node.instance, *(value.path for value in statics if isinstance(value, InstanceOf)))

    def region(
        self, region: Region, kinds: Mapping[str, str], names: Mapping[str, str]
    ) -> tuple[tuple[Box, ...], tuple[Edge, ...]]:
        """Returns the boxes and edges of a region. Each value is drawn once, below the box that computes it.

        Args:
            kinds: The kind of box of each input, by its id; `captured` if missing.
            names: The names of inputs that are named outside the region only, by their ids."""
        boxes: list[Box] = []
        edges: list[Edge] = []
        sources: dict[str, str] = {}  # by value, the id of the box that its edges start from
        value_names = dict(names)
        literals = {node.id: str(node.operation.value) for node in region.nodes if isinstance(node.operation, Literal)}
        used = {source for node in region.nodes for source in node.inputs} | set(region.results)

        def add_value(id: str, name: str, type: Type, computed_by: str) -> None:
            sources[id] = f"{id}:value"
            boxes.append(Box(sources[id], "value", f"{name}: {type}" if name else str(type)))
            edges.append(Edge(computed_by, sources[id]))

        for value in region.inputs:
            value_names[value.id] = value_names.get(value.id) or value.name
            boxes.append(_input_box(value, kinds.get(value.id, "captured"), value_names[value.id]))
            sources[value.id] = value.id
        for node in region.nodes:
            value_names[node.id] = node.name
            if isinstance(node.operation, Literal):
                continue
            if isinstance(node.operation, Part):
                if node.id in used:
                    add_value(node.id, node.name, node.type, node.inputs[0])
                continue
            boxes.append(self._node(node, value_names, literals))
            edges += [Edge(sources[source], node.id) for source in dict.fromkeys(node.inputs) if source in sources]
            if len(node.types) == 1:
                add_value(node.id, node.name, node.type, node.id)
        return tuple(boxes), tuple(edges)

    def _node(self, node: Node, names: Mapping[str, str], literals: Mapping[str, str]) -> Box:
        instance = None if node.instance is None else self.instances[node.instance]
        badge = next((self.badges[path] for path in self._weight_paths(node) if path in self.badges), 0)
        boxes: tuple[Box, ...] = ()
        edges: tuple[Edge, ...] = ()
        notes: tuple[str, ...] = ()
        if isinstance(node.operation, Arithmetic):
            numbers = [literals[source] for source in node.inputs if source in literals]
            title = " ".join([_SIGNS[node.operation], *numbers])
        elif isinstance(node.operation, Charge):
            title = f"charge {node.operation.name}"
        elif isinstance(node.operation, Call):
            assert instance is not None
            title, notes = instance.block, _static_lines(instance)
        else:
            (body,) = node.regions
            boxes, edges = self.region(body, *_body_inputs(node, body, names))
            boxes, edges = _with_results(node, body, boxes, edges)
            title, notes = _heading(node, body, instance)
        notes = (*notes, *self.notes.get(node.id, ()))
        location, line = _location(node.span)
        return Box(node.id, node.operation.mnemonic, title, notes, location, line, badge, boxes, edges)


def _input_box(value: Input, kind: str, name: str) -> Box:
    notes = [str(value.type)]
    if kind in _INPUT_NOTES:
        notes.insert(0, _INPUT_NOTES[kind])
    if kind == "memory" and value.type.name == "seq" and value.type.lengths[0].constant is not None:
        notes.append(f"{value.type.lengths[0]} slots")
    return Box(value.id, kind, name or "(no name)", tuple(notes))


def _body_inputs(node: Node, body: Region, names: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Returns the kinds of a body's inputs, and the names of those that are named outside the body only."""
    if isinstance(node.operation, Apply):
        return {value.id: "input" for value in body.inputs}, {}
    indices = loop_layout(node)
    kinds, outer_names = {}, {}
    for index, value in enumerate(body.inputs):
        if index == 0 and indices.inner:
            kinds[value.id] = "position" if takes_positions(node) else "chunk"
        elif index < indices.inner:
            kinds[value.id] = "before"
        elif index < indices.inner + indices.states:
            kinds[value.id] = "memory" if isinstance(node.operation, Scan) else "state"
        elif index < indices.inner_captured:
            kinds[value.id] = "mean"
        else:
            kinds[value.id] = "captured"
            outer = node.inputs[indices.outer_captured + index - indices.inner_captured]
            outer_names[value.id] = names.get(outer, "")
    return kinds, outer_names


def _with_results(
    node: Node, body: Region, boxes: tuple[Box, ...], edges: tuple[Edge, ...]
) -> tuple[tuple[Box, ...], tuple[Edge, ...]]:
    """Adds a box for each result of a body, and the back edges from one step to the next."""
    values = {box.id for box in boxes}
    result_boxes, result_edges = [], []
    applied = isinstance(node.operation, Apply)
    states = 0 if applied else loop_layout(node).states
    first_state = 0 if applied else loop_layout(node).inner
    for index, result in enumerate(body.results):
        id = f"{node.id}:result{index}"
        result_edges.append(Edge(f"{result}:value" if f"{result}:value" in values else result, id))
        if index < states:
            state = body.inputs[first_state + index]
            title = f"next {state.name}".strip()
            result_edges.append(Edge(id, state.id, back=True))
        else:
            title = "result" if applied else "emit"
        result_boxes.append(Box(id, "result", title))
    return (*boxes, *result_boxes), (*edges, *result_edges)


def _heading(node: Node, body: Region, instance: Instance | None) -> tuple[str, tuple[str, ...]]:
    """Returns the title and the notes of a block or a loop."""
    match node.operation:
        case Apply(block=block):
            return block, ()
        case Repeat(count=count, truncated=truncated):
            notes = ["one set of weights"]
            if instance is not None:
                notes += [f"drawn by {instance.block} in training", *_static_lines(instance)]
            if truncated is not None:
                notes.append(f"gradient of the last {truncated}")
            return f"repeat × {count}", tuple(notes)
        case Stack(count=count):
            return f"stack × {count}", ("own weights each step",)
        case Experts(count=count):
            return f"experts × {count}", ("own weights each", "a weighted sum, position by position")
        case Halting(limit=limit, state=index):
            assert instance is not None
            rule = " ".join(filter(None, ("halting", body.inputs[index].name, "by", instance.block)))
            return f"repeat ≤ {limit}", (rule, *_static_lines(instance))
    assert isinstance(node.operation, Scan)
    notes = ["position after position" if takes_positions(node) else "chunk after chunk"]
    if node.operation.before is not None:
        notes.append(f"with the {node.operation.before} before" if node.operation.before else "with all before")
    growing = [body.inputs[loop_layout(node).inner + index].name for index in growths(node)]
    if growing:
        notes.append(f"{', '.join(growing)} growing")
    if node.operation.truncated is not None:
        notes.append(f"gradient cut after every {node.operation.truncated}")
    return "scan", tuple(notes)


def _location(span: Span | None) -> tuple[str, str]:
    """Returns `file:line` and the text of the line."""
    if span is None:
        return "", ""
    path = Path(span.source.path)
    # A file of the library has the same name on every machine.
    name = path.relative_to(PACKAGE.parent).as_posix() if path.is_relative_to(PACKAGE) else span.source.path
    return f"{name}:{span.line}", span.source.line(span.line).strip()


def _static_lines(instance: Instance) -> tuple[str, ...]:
    """Returns the first statics of an instance that are not omitted, a few on each line."""
    texts = [
        f"{name} = {_static_text(value)}"
        for name, value in instance.statics.items()
        if str(value) not in _OMITTED_VALUES
    ]
    starts = range(0, min(len(texts), _MOST_STATICS), _STATICS_PER_LINE)
    return tuple(", ".join(texts[start : start + _STATICS_PER_LINE]) for start in starts)


def _static_text(value: StaticValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.path if isinstance(value, InstanceOf) else str(value)
