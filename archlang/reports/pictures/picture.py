"""Draws a graph as boxes within boxes. Before the passes, each block of the program has a box."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from archlang.errors import Span
from archlang.errors.names import rounded
from archlang.graph import operations
from archlang.graph.graph import Graph, Input, Instance, Node, Region, loop_layout, takes_positions
from archlang.graph.growth import growths
from archlang.graph.summary import summarize, weights
from archlang.reports.pictures.box import Box, Edge
from archlang.resolve.library import PACKAGE
from archlang.types import Type
from archlang.types.statics import InstanceOf, StaticValue

_SIGNS = {
    operations.Arithmetic.ADD: "+",
    operations.Arithmetic.SUBTRACT: "−",
    operations.Arithmetic.MULTIPLY: "×",
    operations.Arithmetic.DIVIDE: "÷",
    operations.Arithmetic.NEGATE: "− (negate)",
}
_ORDERED = (operations.Arithmetic.SUBTRACT, operations.Arithmetic.DIVIDE)
_INPUT_NOTES = {
    "captured": "from outside",
    "state": "state",
    "memory": "memory",
    "chunk": "chunk",
    "position": "one position",
    "before": "positions before",
    "mean": "mean so far",
}
_LINE_WIDTH = 44  # characters of statics
_LONGEST_NUMBER = 8  # characters


def draw(graph: Graph, program: str = "") -> Box:
    """Returns the picture of a graph, with the parameters and FLOPs of each box. `program` is the path of a file that
    the reader sees: the places of its lines are without it."""
    drawer = _GraphDrawer(graph, program)
    kinds = {value.id: "input" for value in graph.region.inputs}
    content = drawer.region(graph.region, kinds, {value.id: value.name for value in graph.region.inputs})
    notes = drawer.costs[""].notes
    return Box("model", "model", f"{graph.word} {graph.name}", notes=notes, boxes=content.boxes, edges=content.edges)


@dataclass(frozen=True)
class _Content:
    """What a box contains. `results` are the boxes that compute the results of its region, by their ids."""

    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]
    results: Mapping[str, str]


class _GraphDrawer:
    def __init__(self, graph: Graph, program: str) -> None:
        self.instances = graph.instances
        self.program = program
        self.costs = cost_notes(graph)
        self.applied: set[tuple[str, ...]] = set()  # the blocks whose content is drawn
        uses = Counter(path for node in graph.region.walk() for path in self._weight_paths(node))
        shared = sorted(path for path, count in uses.items() if count > 1 and not graph.instances[path].pure)
        self.badges = {path: number for number, path in enumerate(shared, 1)}

    def _weight_paths(self, node: Node) -> tuple[str, ...]:
        """Returns the paths of the instances whose weights a node uses: its own, and those passed as statics."""
        if node.instance is None:
            return ()
        statics = self.instances[node.instance].statics.values()
        return (node.instance, *(value.path for value in statics if isinstance(value, InstanceOf)))

    def region(self, region: Region, kinds: Mapping[str, str], names: Mapping[str, str]) -> _Content:
        """Returns the boxes and edges of a region.

        Args:
            kinds: The kind of box of each input, by its id; `captured` if missing.
            names: The names of inputs that are named outside the region only, by their ids."""
        boxes: dict[str, Box] = {}
        edges: list[Edge] = []
        sources: dict[str, str] = {}  # by value, the id of the box that its edges start from
        value_names = dict(names)
        literals = {
            node.id: str(node.operation.value)
            for node in region.nodes
            if isinstance(node.operation, operations.Literal)
        }
        used = {source for node in region.nodes for source in node.inputs} | set(region.results)
        for value in region.inputs:
            value_names[value.id] = value_names.get(value.id) or value.name
            boxes[value.id] = _input_box(value, kinds.get(value.id, "captured"), value_names[value.id])
            sources[value.id] = value.id
        for node in region.nodes:
            value_names[node.id] = node.name
            if isinstance(node.operation, operations.Literal):
                continue
            if isinstance(node.operation, operations.Part):
                sources[node.id] = sources[node.inputs[0]]
                if node.id in used:
                    owner = boxes[sources[node.id]]
                    output = ", ".join(filter(None, (owner.output, _named(node.name, node.type))))
                    boxes[owner.id] = replace(owner, output=output)
                continue
            boxes[node.id] = self._node(node, value_names, literals)
            sources[node.id] = node.id
            read = dict.fromkeys(sources[source] for source in node.inputs if source in sources)
            edges += [Edge(source, node.id) for source in read]
        results = {result: sources[result] for result in region.results if result in sources}
        return _Content(tuple(boxes.values()), tuple(edges), results)

    def _node(self, node: Node, names: Mapping[str, str], literals: Mapping[str, str]) -> Box:
        instance = None if node.instance is None else self.instances[node.instance]
        badge = next((self.badges[path] for path in self._weight_paths(node) if path in self.badges), 0)
        boxes: tuple[Box, ...] = ()
        edges: tuple[Edge, ...] = ()
        notes: tuple[str, ...] = ()
        repeats = False
        if isinstance(node.operation, operations.Arithmetic):
            numbers = [literals[source] for source in node.inputs if source in literals]
            title = " ".join([_SIGNS[node.operation], *numbers])
            if node.operation in _ORDERED and node.inputs[0] in literals:
                title = " ".join([*numbers, _SIGNS[node.operation]])
        elif isinstance(node.operation, operations.Loss):
            title = f"loss {node.operation.name}"
        elif isinstance(node.operation, operations.Call):
            assert instance is not None
            title = instance.block
        else:
            (body,) = node.regions
            boxes, edges = _with_results(node, body, self.region(body, *_body_inputs(node, body, names)))
            title, notes = _heading(node, body, instance)
        written, defaults = _set_and_default_statics(node, instance)
        if isinstance(node.operation, operations.Apply):
            repeats = (title, *written) in self.applied
            self.applied.add((title, *written))
        costs = self.costs.get(node.id, CostNotes())
        location, line = _location(node.span, self.program)
        return Box(
            node.id,
            node.operation.mnemonic,
            title,
            _named(node.name, node.type) if len(node.types) == 1 else "",
            notes=(*notes, *_lines(written), *costs.notes),
            details=(*_lines(written, "written: "), *_lines(defaults, "defaults: "), *costs.details),
            location=location,
            source=line,
            badge=badge,
            boxes=boxes,
            edges=edges,
            repeats=repeats,
        )


def _input_box(value: Input, kind: str, name: str) -> Box:
    notes = [_INPUT_NOTES[kind]] if kind in _INPUT_NOTES else []
    if kind == "memory" and value.type.name == "seq" and value.type.lengths[0].constant is not None:
        notes.append(f"{value.type.lengths[0]} slots")
    return Box(value.id, kind, _named(name, value.type), notes=(", ".join(notes),) if notes else ())


def _named(name: str, type: Type) -> str:
    return f"{name}: {type}" if name else str(type)


def _body_inputs(node: Node, body: Region, names: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Returns the kinds of a body's inputs, and the names of those that are named outside the body only."""
    if isinstance(node.operation, operations.Apply):
        return {value.id: "input" for value in body.inputs}, {}
    indices = loop_layout(node)
    kinds, outer_names = {}, {}
    for index, value in enumerate(body.inputs):
        if index == 0 and indices.inner:
            part = "position" if takes_positions(node) else "chunk"
            kinds[value.id] = "value" if isinstance(node.operation, operations.Gradient) else part
        elif index < indices.inner:
            kinds[value.id] = "before"
        elif index < indices.inner + indices.states:
            kinds[value.id] = "memory" if isinstance(node.operation, operations.Scan) else "state"
        elif index < indices.inner_captured:
            kinds[value.id] = "mean"
        else:
            kinds[value.id] = "captured"
            outer = node.inputs[indices.outer_captured + index - indices.inner_captured]
            outer_names[value.id] = names.get(outer, "")
    return kinds, outer_names


def _with_results(node: Node, body: Region, content: _Content) -> tuple[tuple[Box, ...], tuple[Edge, ...]]:
    """Returns the boxes and edges of a body, with a box for each result, and back edges from one step to the next."""
    result_boxes, result_edges = [], []
    applied = isinstance(node.operation, operations.Apply)
    states = 0 if applied else loop_layout(node).states
    first_state = 0 if applied else loop_layout(node).inner
    for index, result in enumerate(body.results):
        id = f"{node.id}:result{index}"
        if result in content.results:
            result_edges.append(Edge(content.results[result], id))
        if index < states:
            state = body.inputs[first_state + index]
            title = f"next {state.name}".strip()
            result_edges.append(Edge(id, state.id, back=True))
        else:
            title = "result" if applied else "emit"
        result_boxes.append(Box(id, "result", title))
    return (*content.boxes, *result_boxes), (*content.edges, *result_edges)


def _heading(node: Node, body: Region, instance: Instance | None) -> tuple[str, tuple[str, ...]]:
    match node.operation:
        case operations.Apply(block=block):
            return block, ()
        case operations.Repeat(count=count, truncated=truncated, settled=settled):
            notes = ["one set of weights"]
            if instance is not None:
                notes.append(f"drawn by {instance.block} in training")
            if truncated is not None:
                notes.append(f"gradient of {truncated} terms" if settled else f"gradient of the last {truncated}")
            if settled:
                notes.append("gradient of a fixed point")
            return f"repeat × {count}", tuple(notes)
        case operations.Stack(count=count):
            return f"stack × {count}", ("own weights each step",)
        case operations.Experts(count=count):
            return f"experts × {count}", ("own weights each", "a weighted sum, position by position")
        case operations.Gradient():
            return "gradient", ("of the loss by the value",)
        case operations.Halting(limit=limit, state=index):
            assert instance is not None
            rule = " ".join(filter(None, ("halting", body.inputs[index].name, "by", instance.block)))
            return f"repeat ≤ {limit}", (rule,)
    assert isinstance(node.operation, operations.Scan)
    notes = ["position after position" if takes_positions(node) else "chunk after chunk"]
    if node.operation.before is not None:
        notes.append(f"with the {node.operation.before} before" if node.operation.before else "with all before")
    growing = [body.inputs[loop_layout(node).inner + index].name for index in growths(node)]
    if growing:
        notes.append(f"{', '.join(growing)} growing")
    if node.operation.truncated is not None:
        notes.append(f"gradient cut after every {node.operation.truncated}")
    return "scan", tuple(notes)


def _location(span: Span | None, program: str) -> tuple[str, str]:
    if span is None:
        return "", ""
    if span.source.path == program:
        return f"line {span.line}", span.source.line(span.line).strip()
    path = Path(span.source.path)
    # A file of the library has the same name on every machine.
    name = path.relative_to(PACKAGE.parent).as_posix() if path.is_relative_to(PACKAGE) else span.source.path
    return f"{name}:{span.line}", span.source.line(span.line).strip()


def _set_and_default_statics(node: Node, instance: Instance | None) -> tuple[list[str], list[str]]:
    if isinstance(node.operation, operations.Apply):
        written, statics = node.operation.written, node.operation.statics
    elif instance is not None:
        written, statics = instance.written, {name: _static_text(value) for name, value in instance.statics.items()}
    else:
        return [], []
    texts = {name: f"{name} = {text}" for name, text in statics.items()}
    return [texts[name] for name in texts if name in written], [texts[name] for name in texts if name not in written]


def _lines(texts: Sequence[str], heading: str = "") -> tuple[str, ...]:
    lines = [""]
    for text in texts:
        joined = f"{lines[-1]}, {text}" if lines[-1] else f"{heading}{text}"
        if lines[-1] and len(joined) > _LINE_WIDTH:
            lines.append(text)
        else:
            lines[-1] = joined
    return tuple(filter(None, lines))


def _static_text(value: StaticValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and len(str(value)) > _LONGEST_NUMBER:
        return f"{value:.{_LONGEST_NUMBER - 2}g}"
    return value.path if isinstance(value, InstanceOf) else str(value)


LENGTH = 64  # positions of the sample whose FLOPs are counted


@dataclass(frozen=True)
class CostNotes:
    """`notes` are rounded and short, `details` exact."""

    notes: tuple[str, ...] = ()
    details: tuple[str, ...] = ()


def cost_notes(graph: Graph) -> Mapping[str, CostNotes]:
    """Returns the lines for each node by its id, and those for the model by the id "".

    `parameters` counts one set of weights, `executed` the weights of all steps."""
    summary = summarize(graph, LENGTH)
    notes: dict[str, CostNotes] = {}
    for node in graph.region.walk():
        cost = summary.nodes.get(node.id)
        if node.instance is None and not node.regions:
            continue
        if cost is None:
            notes[node.id] = CostNotes(("not computed",), ("no result and no auxiliary loss needs it",))
            continue
        count = weights(graph, node, summary.nodes)
        short, exact = [], []
        if count:
            executed = f", {cost.parameters:,} executed" if cost.parameters > count else ""
            short.append(f"{rounded(count)} parameters")
            exact.append(f"{count:,} parameters{executed}")
        if cost.flops:
            short.append(f"{rounded(cost.flops)} FLOPs")
            exact.append(f"{cost.flops:,} FLOPs")
        notes[node.id] = CostNotes((", ".join(short),) if short else (), tuple(exact))
    model = (
        f"{summary.unique:,} parameters, {summary.executed:,} executed{_without(summary.unknown)}",
        f"{summary.flops:,} FLOPs for a sample of {LENGTH} positions{_without(summary.uncounted)}",
    )
    notes[""] = CostNotes(model)
    return notes


def _without(blocks: Sequence[str]) -> str:
    return f", without {', '.join(blocks)}" if blocks else ""
