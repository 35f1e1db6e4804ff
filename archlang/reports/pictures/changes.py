"""What changed between two architectures: in words, and marked in one picture of both."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from difflib import SequenceMatcher

from archlang.graph.graph import Graph, Node, Region
from archlang.graph.operations import Apply, Arithmetic, Call, Literal, Loop, Loss, Part, step_limit
from archlang.graph.summary import summarize
from archlang.plan.overrides import static_text
from archlang.reports.pictures.box import Box


def describe_changes(before: Graph, after: Graph) -> tuple[str, ...]:
    """Returns a line for each change: blocks added or removed, loops, depths, statics, values that are computed in
    another way, and parameters. No line: the graphs are equal except for names."""
    changes = (
        *_blocks(before, after), *_loops(before, after), *_statics(before, after), *changed_values(before, after)
    )  # fmt: skip
    if not changes and is_same(before, after):
        return ()
    changes = changes or ("sizes or facts of values changed: `archlang show --graph` prints them",)
    return (*changes, *_parameters(before, after))


def _blocks(before: Graph, after: Graph) -> Iterator[str]:
    old = Counter(instance.block for instance in before.instances.values())
    new = Counter(instance.block for instance in after.instances.values())
    for block in sorted(old.keys() | new.keys()):
        count = new[block] - old[block]
        if count:
            suffix = f" ({abs(count)} times)" if abs(count) > 1 else ""
            yield f"{block.replace('_', ' ')} {'added' if count > 0 else 'removed'}{suffix}"


def _loops(before: Graph, after: Graph) -> Iterator[str]:
    old = [node.operation for node in before.region.walk() if isinstance(node.operation, Loop)]
    new = [node.operation for node in after.region.walk() if isinstance(node.operation, Loop)]
    if len(old) != len(new):
        yield f"loops {len(old)} → {len(new)}"
        return
    for old_loop, new_loop in zip(old, new, strict=True):
        if old_loop.mnemonic != new_loop.mnemonic:
            yield f"loop {old_loop.mnemonic} → {new_loop.mnemonic}"
        old_depth, new_depth = step_limit(old_loop), step_limit(new_loop)
        if old_depth != new_depth and old_depth is not None and new_depth is not None:
            yield f"depth {old_depth} → {new_depth}"


def _statics(before: Graph, after: Graph) -> Iterator[str]:
    """Compares the instances of one block at one path. A change of several instances is one line."""
    changes: Counter[str] = Counter()
    for path in sorted(before.instances.keys() & after.instances.keys()):
        old, new = before.instances[path], after.instances[path]
        if old.block == new.block:
            for name in sorted(old.statics.keys() & new.statics.keys()):
                if old.statics[name] != new.statics[name]:
                    values = (static_text(each.statics[name]) for each in (old, new))
                    changes[f"{old.block}: {name} {' → '.join(values)}"] += 1
    for change, count in changes.items():
        yield change + (f" ({count} times)" if count > 1 else "")


def _parameters(before: Graph, after: Graph) -> Iterator[str]:
    old, new = summarize(before, 1), summarize(after, 1)
    unknown = sorted({*old.unknown, *new.unknown})
    if unknown:
        yield f"the parameters of {', '.join(unknown)} are unknown"
    elif new.unique != old.unique:
        yield f"{'+' if new.unique > old.unique else '−'} {abs(new.unique - old.unique):,} parameters"


_SIGNS = {Arithmetic.ADD: "+", Arithmetic.SUBTRACT: "-", Arithmetic.MULTIPLY: "*", Arithmetic.DIVIDE: "/"}
# Facts of loops that other sentences compare, and that follow from where the loop is.
_COMPARED = frozenset(("count", "limit", "path", "instance"))
_MOST = 8


def changed_values(before: Graph, after: Graph) -> Iterator[str]:
    """Yields a line for each value that is computed in another way, named as in its program; of many, only their
    number. Other names alone are no change."""
    if _lines(before, is_named=False) == _lines(after, is_named=False):
        return
    old, new = _lines(before, is_named=True), _lines(after, is_named=True)
    changes = list(dict.fromkeys(_changes(old, new)))
    if len(changes) > _MOST:
        changes = [f"{len(changes)} values are computed in another way"]
    yield from changes or ["values of the same names are others"]


def is_same(before: Graph, after: Graph) -> bool:
    """Returns whether two graphs are equal except for the names of their values."""
    return _facts(before) == _facts(after)


def _facts(graph: Graph) -> list[object]:
    instances = [
        (each.block, each.python, dict(each.statics), dict(each.features)) for each in graph.instances.values()
    ]
    types = [value.type for value in graph.region.inputs] + [node.types for node in graph.region.walk()]
    counts = [getattr(node.operation, "count", getattr(node.operation, "limit", None)) for node in graph.region.walk()]
    return [_lines(graph, is_named=False), instances, types, counts]


def _changes(old: list[str], new: list[str]) -> Iterator[str]:
    for _, start, end, other_start, other_end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        gone, added = old[start:end], new[other_start:other_end]
        if gone == added:
            continue
        for line in gone if len(gone) != len(added) else ():
            yield f"`{line}` removed"
        for line in added if len(gone) != len(added) else ():
            yield f"`{line}` added"
        for left, right in zip(gone, added, strict=True) if len(gone) == len(added) else ():
            yield f"`{left}` → `{right}`"


def _lines(graph: Graph, is_named: bool) -> list[str]:
    writer = _ChangeWriter(graph, is_named)
    writer.write(graph.region, [], "")
    return writer.lines


class _ChangeWriter:
    """Writes a line for each value that has a name, each loop, auxiliary loss and result, with the values without a
    name in place. Unless `is_named`, numbers replace the names of values and instances."""

    def __init__(self, graph: Graph, is_named: bool) -> None:
        self.lines: list[str] = []
        self._graph = graph
        self._is_named = is_named
        self._values: dict[str, str] = {}
        self._instances: dict[str, int] = {}
        calls = Counter(node.operation.instance for node in graph.region.walk() if isinstance(node.operation, Call))
        self._shared = {instance for instance, count in calls.items() if count > 1}

    def write(self, region: Region, arguments: list[str], place: str) -> None:
        for index, value in enumerate(region.inputs):
            # What a body reads from around it are its last inputs.
            is_outer = self._is_named and len(region.inputs) - index <= len(arguments)
            outer = arguments[index - len(region.inputs)] if is_outer else ""
            self._values[value.id] = self._name(value.name) or outer or self._number()
        for node in region.nodes:
            self._node(node, place)
        self.lines.append(f"{place}return {', '.join(self._values[result] for result in region.results)}")

    def _node(self, node: Node, place: str) -> None:
        text, operation = self._text(node), node.operation
        name = self._name(node.name)
        if isinstance(operation, Loss):
            name = name or f"loss {operation.name}"
        if isinstance(operation, Loop):
            name = name or ("the loop" if self._is_named else "")
        if name or not self._is_named:
            name = name or self._number()
            self.lines.append(f"{place}{name} = {text}")
        self._values[node.id] = name if name and not isinstance(operation, Literal) else text
        arguments = [self._values[each] for each in node.inputs]
        inner = f"in {operation.block}: " if isinstance(operation, Apply) else place
        for region in node.regions:
            self.write(region, arguments, inner)

    def _text(self, node: Node) -> str:
        operation, arguments = node.operation, [self._values[each] for each in node.inputs]
        if operation in _SIGNS and len(arguments) == 2:
            return f"({arguments[0]} {_SIGNS[operation]} {arguments[1]})"
        match operation:
            case Literal(value=value):
                return str(value)
            case Part(index=index):
                return f"{arguments[0]}[{index}]"
            case Call(instance=instance):
                return f"{self._instance(instance)}({', '.join(arguments)})"
            case Apply(block=block):
                return f"{block}({', '.join(arguments)})"
        word = "loop" if isinstance(operation, Loop) else operation.mnemonic
        facts = "".join(f", {fact}" for fact in _facts_of(operation))
        return f"{word}({', '.join(arguments)}){facts}"

    def _instance(self, path: str) -> str:
        block = self._graph.instances[path].block
        if self._is_named:
            return f"{block}@{path}" if path in self._shared else block
        return f"{block}@{self._instances.setdefault(path, len(self._instances))}"

    def _name(self, name: str) -> str:
        return name if self._is_named else ""

    def _number(self) -> str:
        return f"value {len(self._values)}"


def _facts_of(operation: object) -> Iterator[str]:
    """Yields the facts of a loop that differ from their defaults."""
    if isinstance(operation, Loop):
        for fact in fields(operation):
            value = getattr(operation, fact.name)
            if fact.name not in _COMPARED and value not in (fact.default, False, None):
                yield fact.name if value is True else f"{fact.name} {value}"


# Values and inputs are not marked: they follow from the boxes that compute and read them.
_MARKED = ("call", "apply", "repeat", "stack", "halting", "scan")
_Path = tuple[str, ...]


def side_by_side(before: Box, after: Box, sentences: Sequence[str]) -> Box:
    """Returns a box with both pictures and `sentences` as its notes.

    In the first picture `gone` marks boxes that the second one lacks, in the second one `new` those that the first one
    lacks. In both `changed` marks boxes whose statics, sizes or counts differ."""
    old, new = _boxes_by_path(before, ()), _boxes_by_path(after, ())
    pair = (_marked(before, new, "gone", "a:"), _marked(after, old, "new", "b:"))
    return Box("model", "model", f"{before.title} → {after.title}", notes=tuple(sentences), boxes=pair)


def _path(box: Box, parent: _Path) -> _Path:
    """Returns the titles of a box and its parents. A loop keeps its path if its kind or its count changes."""
    return (*parent, "loop" if box.kind in ("repeat", "stack", "halting") else box.title)


def _box_facts(box: Box) -> tuple[str, ...]:
    """Returns the lines to compare: all but those that follow from the counts of the loops around the box."""
    details = (line.partition(", ")[0] if "executed" in line else line for line in box.details if "FLOPs" not in line)
    return (box.title, *(note for note in box.notes if "FLOPs" not in note and "parameters" not in note), *details)


def _boxes_by_path(box: Box, parent: _Path) -> dict[_Path, list[Box]]:
    boxes: dict[_Path, list[Box]] = {}
    for path, child in _descendants(box, parent):
        if child.kind in _MARKED:
            boxes.setdefault(path, []).append(child)
    return boxes


def _descendants(box: Box, parent: _Path) -> Iterator[tuple[_Path, Box]]:
    for child in box.boxes:
        path = _path(child, parent)
        yield path, child
        yield from _descendants(child, path)


def _marked(picture: Box, others: Mapping[_Path, Sequence[Box]], mark: str, prefix: str) -> Box:
    """Returns the picture with marks, and with a prefix that keeps its ids distinct from those of the other one."""
    seen: Counter[_Path] = Counter()

    def change(box: Box, path: _Path) -> str:
        if box is picture or box.kind not in _MARKED:
            return ""
        seen[path] += 1
        counterparts = others.get(path, ())
        if seen[path] > len(counterparts):
            return mark
        return "changed" if len(counterparts) == 1 and _box_facts(counterparts[0]) != _box_facts(box) else ""

    def visit(box: Box, parent: _Path) -> Box:
        path = parent if box is picture else _path(box, parent)
        changed = change(box, path)
        return replace(
            box,
            id=prefix + box.id,
            notes=(f"[{changed}]", *box.notes) if changed else box.notes,
            change=changed,
            boxes=tuple(visit(child, path) for child in box.boxes),
            edges=tuple(replace(edge, source=prefix + edge.source, target=prefix + edge.target) for edge in box.edges),
        )

    return visit(picture, ())
