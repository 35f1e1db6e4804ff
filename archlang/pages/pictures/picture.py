"""A model as boxes in boxes, with what flows between them: what every writer of this package draws."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from archlang.graph.graph import Graph, Input, Instance, Node, Region
from archlang.graph.layout import layout
from archlang.graph.operations import Apply, Arithmetic, Call, Halting, Literal, Part, Repeat, Scan, Stack
from archlang.pages.pictures.box import Box, Edge
from archlang.source import Span
from archlang.types import Type
from archlang.types.statics import InstanceOf

SIGNS = {
    Arithmetic.ADD: "+",
    Arithmetic.SUBTRACT: "−",
    Arithmetic.MULTIPLY: "×",
    Arithmetic.DIVIDE: "÷",
    Arithmetic.NEGATE: "− (negate)",
}
# What need not be said of a block: the static has it by default, or turns something off.
_SILENT: tuple[object, ...] = (0, 0.0, False, "none", "always")


def picture(graph: Graph, notes: Mapping[str, tuple[str, ...]] | None = None) -> Box:
    """The picture of a graph as it was written, that is, before the passes. `notes` are more lines by the id of a node;
    those of the model stand under ""."""
    drawer = _Drawer(graph, notes or {})
    names = {value.id: value.name for value in graph.region.inputs}
    boxes, edges = drawer.region(graph.region, {value.id: "input" for value in graph.region.inputs}, names)
    return Box("model", "model", f"model {graph.name}", drawer.notes.get("", ()), boxes=boxes, edges=edges)


class _Drawer:
    def __init__(self, graph: Graph, notes: Mapping[str, tuple[str, ...]]) -> None:
        self.instances = graph.instances
        self.notes = notes
        uses = Counter(path for node in graph.region.walk() for path in self._weights(node))
        shared = sorted(path for path, times in uses.items() if times > 1 and not graph.instances[path].pure)
        self.badges = {path: number for number, path in enumerate(shared, 1)}

    def _weights(self, node: Node) -> tuple[str, ...]:
        """Paths of the instances that a node computes with: its own, and a table that it is handed."""
        path = node.instance
        if path is None:
            return ()
        handed = (value.path for value in self.instances[path].statics.values() if isinstance(value, InstanceOf))
        return (path, *handed)

    def region(
        self, region: Region, kinds: Mapping[str, str], names: Mapping[str, str]
    ) -> tuple[tuple[Box, ...], tuple[Edge, ...]]:
        """The boxes of a region. A value is drawn once, below what makes it; its users hang on that."""
        boxes: list[Box] = []
        edges: list[Edge] = []
        carries: dict[str, str] = {}  # the box that an edge from a value leaves
        called = dict(names)
        numbers = {node.id: str(node.operation.value) for node in region.nodes if isinstance(node.operation, Literal)}
        used = {source for node in region.nodes for source in node.inputs} | set(region.results)

        def label(id: str, name: str, kind: Type, maker: str) -> None:
            boxes.append(Box(f"{id}:value", "value", f"{name}: {kind}" if name else str(kind)))
            edges.append(Edge(maker, f"{id}:value"))
            carries[id] = f"{id}:value"

        for value in region.inputs:
            name = called.get(value.id) or value.name
            called[value.id] = name
            boxes.append(self._input(value, kinds.get(value.id, "captured"), name))
            carries[value.id] = value.id
        for node in region.nodes:
            called[node.id] = node.name
            if isinstance(node.operation, Literal):
                continue
            if isinstance(node.operation, Part):
                if node.id in used:
                    label(node.id, node.name, node.type, node.inputs[0])
                continue
            boxes.append(self._node(node, called, numbers))
            edges += [Edge(carries[source], node.id) for source in dict.fromkeys(node.inputs) if source in carries]
            if len(node.types) == 1:
                label(node.id, node.name, node.type, node.id)
        return tuple(boxes), tuple(edges)

    def _input(self, value: Input, kind: str, name: str) -> Box:
        said = {
            "captured": "from outside",
            "state": "state",
            "memory": "memory",
            "chunk": "chunk",
            "mean": "mean so far",
        }
        notes = [str(value.type)]
        if kind in said:
            notes.insert(0, said[kind])
        if kind == "memory" and value.type.name == "seq" and value.type.lengths[0].constant is not None:
            notes.append(f"{value.type.lengths[0]} slots")
        return Box(value.id, kind, name or "(no name)", tuple(notes))

    def _node(self, node: Node, called: Mapping[str, str], numbers: Mapping[str, str]) -> Box:
        place, line = _place(node.span)
        instance = None if node.instance is None else self.instances[node.instance]
        badge = self.badges.get(node.instance or "", 0)
        if not badge and instance is not None:
            handed = [self.badges.get(one, 0) for one in self._weights(node)[1:]]
            badge = next((number for number in handed if number), 0)
        more = self.notes.get(node.id, ())
        kind = node.operation.mnemonic
        if isinstance(node.operation, Arithmetic):
            given = [numbers[source] for source in node.inputs if source in numbers]
            title = " ".join([SIGNS[node.operation], *given])
            return Box(node.id, kind, title, more, place, line)
        if isinstance(node.operation, Call):
            assert instance is not None
            return Box(node.id, kind, instance.block, (*_statics(instance), *more), place, line, badge)
        (body,) = node.regions
        kinds, names = self._inside(node, body, called)
        boxes, edges = self.region(body, kinds, names)
        boxes, edges = _closed(node, body, boxes, edges)
        title, notes = self._heading(node, body, instance)
        return Box(node.id, kind, title, (*notes, *more), place, line, badge, boxes, edges)

    def _inside(self, node: Node, body: Region, called: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
        """What the inputs of a body are, and the names of those that have a name outside only."""
        if isinstance(node.operation, Apply):
            return {value.id: "input" for value in body.inputs}, {}
        where = layout(node)
        kinds, names = {}, {}
        for index, value in enumerate(body.inputs):
            if index < where.inner:
                kinds[value.id] = "chunk"
            elif index < where.inner + where.states:
                kinds[value.id] = "memory" if isinstance(node.operation, Scan) else "state"
            elif index < where.inner_captured:
                kinds[value.id] = "mean"
            else:
                kinds[value.id] = "captured"
                names[value.id] = called.get(node.inputs[where.outer_captured + index - where.inner_captured], "")
        return kinds, names

    def _heading(self, node: Node, body: Region, instance: Instance | None) -> tuple[str, tuple[str, ...]]:
        match node.operation:
            case Apply(block=block):
                return block, ()
            case Repeat(count=count):
                return f"repeat × {count}", ("one set of weights",)
            case Stack(count=count):
                return f"stack × {count}", ("own weights each step",)
            case Halting(limit=limit, state=index):
                assert instance is not None
                state = body.inputs[index].name
                rule = f"halting {state} by {instance.block}".replace("  ", " ")
                return f"repeat ≤ {limit}", (rule, *_statics(instance))
        return "scan", ("chunk after chunk",)


def _closed(
    node: Node, body: Region, boxes: tuple[Box, ...], edges: tuple[Edge, ...]
) -> tuple[tuple[Box, ...], tuple[Edge, ...]]:
    """A body with a box for each result, and the edges that lead back from a step to the next."""
    known = {box.id for box in boxes}
    more, back = list(boxes), list(edges)
    applied = isinstance(node.operation, Apply)
    loops = 0 if applied else layout(node).states
    first = 0 if applied else layout(node).inner
    for index, result in enumerate(body.results):
        source = f"{result}:value" if f"{result}:value" in known else result
        moved = index < loops
        name = body.inputs[first + index].name if moved else ""
        title = f"next {name}".strip() if moved else ("emit" if isinstance(node.operation, Scan) else "result")
        id = f"{node.id}:result{index}"
        more.append(Box(id, "result", title))
        back.append(Edge(source, id))
        if moved:
            back.append(Edge(id, body.inputs[first + index].id, back=True))
    return tuple(more), tuple(back)


def _place(span: Span | None) -> tuple[str, str]:
    if span is None:
        return "", ""
    return f"{span.source.path}:{span.line}", span.source.line(span.line).strip()


def _statics(instance: Instance) -> tuple[str, ...]:
    """The statics that say something, a few to a line."""
    said = [f"{name} = {_word(value)}" for name, value in instance.statics.items() if _says(value)]
    return tuple(", ".join(said[start : start + 2]) for start in range(0, min(len(said), 4), 2))


def _says(value: object) -> bool:
    return not any(str(value) == str(silent) for silent in _SILENT)


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.path if isinstance(value, InstanceOf) else str(value)
