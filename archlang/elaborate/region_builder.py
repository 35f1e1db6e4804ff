"""A region that is being filled with nodes; it captures the values that it uses from outside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from archlang.elaborate import mistakes
from archlang.errors import Diagnostic, Span
from archlang.errors.effort import spend
from archlang.graph.graph import Input, Node, Region
from archlang.graph.operations import Operation, Part
from archlang.types import Type

MOST_OPERATIONS = 20_000
"""Operations that a model unfolds to, and modules that it has."""
MOST_LOOP_STEPS = 1_000_000
"""Steps of nested loops together."""
MOST_PARAMETERS = 1_000_000_000_000
"""Parameters of a model: 4 TB of 32-bit weights, which every device of a run holds whole."""


class TooLarge(Exception):
    """A model exceeds a limit; `mistake` says which."""

    def __init__(self, mistake: Diagnostic) -> None:
        self.mistake = mistake
        super().__init__()


class ModelSize:
    """Counts the values, modules and loop steps of one model while it is elaborated, and numbers its values."""

    def __init__(self) -> None:
        self._values = 0
        self._modules = 0
        self._parameters = 0
        self._stack_counts: dict[str, int] = {}
        self._steps = 1

    def new_id(self) -> str:
        """Returns an id that no other value of the model has."""
        spend()
        self._values += 1
        return f"%{self._values}"

    def check_operations(self, span: Span) -> None:
        """Raises:
        TooLarge: the model has more than `MOST_OPERATIONS` values."""
        if self._values > MOST_OPERATIONS:
            raise TooLarge(mistakes.too_large(span, MOST_OPERATIONS))

    def add_modules(self, path: str, span: Span, count: int = 1, parameters: int = 0) -> None:
        """Counts `count` modules at `path`, each with `parameters`, once for each step of the stacks around it.

        Raises:
            TooLarge: the model has more than `MOST_OPERATIONS` modules, or more than `MOST_PARAMETERS`."""
        for stack, steps in self._stack_counts.items():
            if path.startswith(f"{stack}.*"):
                count *= steps
        self._modules += count
        if self._modules > MOST_OPERATIONS:
            raise TooLarge(mistakes.too_large(span, MOST_OPERATIONS))
        self._parameters += count * parameters
        if self._parameters > MOST_PARAMETERS:
            raise TooLarge(mistakes.too_many_parameters(span, self._parameters, MOST_PARAMETERS))

    def add_stack(self, path: str, span: Span, count: int | None) -> None:
        """Counts the modules of a stack: one for each step. None is an unknown count.

        Raises:
            TooLarge: the model has more than `MOST_OPERATIONS` modules."""
        self.add_modules(path, span, count or 0)
        self._stack_counts[path] = 1 if count is None else count

    @contextmanager
    def inside_loop(self, count: int | None, span: Span) -> Iterator[None]:
        """Holds while the body of a loop of `count` steps is elaborated. None is an unknown count.

        Raises:
            TooLarge: the loop and those around it take more than `MOST_LOOP_STEPS` steps together."""
        steps_around = self._steps
        self._steps *= 1 if count is None else max(1, count)
        if self._steps > MOST_LOOP_STEPS:
            raise TooLarge(mistakes.too_many_steps(span, MOST_LOOP_STEPS))
        yield
        self._steps = steps_around


@dataclass(frozen=True, eq=False)
class Flow:
    """A value that flows: the region that makes it, its id there, its type and its place in the program."""

    builder: RegionBuilder
    id: str
    type: Type
    span: Span


@dataclass
class RegionBuilder:
    """Collects the inputs and nodes of one region. `parent` is the region around a loop's body."""

    size: ModelSize
    parent: RegionBuilder | None = None
    inputs: list[Input] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    _captured: dict[str, str] = field(default_factory=dict)
    """the ids of inputs by those of the outer values that they capture"""

    def add_input(self, kind: Type, name: str, span: Span) -> Flow:
        """Adds an input and returns its value."""
        value = Input(self.size.new_id(), kind, name)
        self.inputs.append(value)
        return Flow(self, value.id, kind, span)

    def add_node(
        self,
        operation: Operation,
        inputs: Sequence[Flow],
        types: Sequence[Type],
        span: Span,
        regions: Sequence[Region] = (),
    ) -> tuple[Flow, ...]:
        """Adds a node with results of these types, and returns the value of each result.

        Raises:
            TooLarge: the model has too many operations."""
        ids = tuple(self.local_id(value) for value in inputs)
        node = Node(self.size.new_id(), operation, ids, tuple(types), span, "", tuple(regions))
        self.nodes.append(node)
        self.size.check_operations(span)
        if len(types) == 1:
            return (Flow(self, node.id, types[0], span),)
        flows = []
        for index, kind in enumerate(types):
            part = Node(self.size.new_id(), Part(index), (node.id,), (kind,), span)
            self.nodes.append(part)
            flows.append(Flow(self, part.id, kind, span))
        return tuple(flows)

    def local_id(self, value: Flow) -> str:
        """Returns the id of a value in this region. A value from outside becomes a captured input of every region on
        the way in."""
        if value.builder is self:
            return value.id
        if value.id not in self._captured:
            assert self.parent is not None, "a region uses a value from nowhere"
            self.parent.local_id(value)
            captured = Input(self.size.new_id(), value.type, "")
            self.inputs.append(captured)
            self._captured[value.id] = captured.id
        return self._captured[value.id]

    def captured_flows(self, span: Span) -> list[Flow]:
        """Returns the captured values as values of `parent`, in the order of the inputs that capture them."""
        parent = self.parent
        assert parent is not None
        outer_ids = {inner: outer for outer, inner in self._captured.items()}
        return [
            Flow(parent, parent._captured.get(outer_ids[value.id], outer_ids[value.id]), value.type, span)
            for value in self.inputs
            if value.id in outer_ids
        ]

    def finish(self, results: Sequence[str]) -> Region:
        """Returns the region, with results of these ids."""
        return Region(tuple(self.inputs), tuple(self.nodes), tuple(results))


def named(value: Flow | None, name: str) -> Flow | None:
    """Gives the user's name to the node that makes a value, and returns the value."""
    if value is not None:
        nodes = value.builder.nodes
        for index in range(len(nodes) - 1, max(len(nodes) - 8, -1), -1):
            if nodes[index].id == value.id and not nodes[index].name:
                nodes[index] = replace(nodes[index], name=name)
    return value
