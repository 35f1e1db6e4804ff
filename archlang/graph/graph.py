"""The typed graph of one model: regions of nodes, the instances whose weights the nodes use, and where the inputs of
loops have states and captured values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from archlang.errors import Span
from archlang.graph.facts import UNKNOWN, Act, Costs, LinearMap, Record
from archlang.graph.operations import (
    Call,
    Experts,
    Gradient,
    Halting,
    Operation,
    Part,
    Repeat,
    Scan,
    Stack,
    emits,
    step_limit,
)
from archlang.types import FEATURED, Dim, Type
from archlang.types.statics import StaticValue

NUMBER = Type("number")
ONE_NUMBER = Type("vec", (Dim.of(1),))
"""the type of an auxiliary loss: one number for each sample"""


@dataclass(frozen=True)
class Node:
    """One operation. `inputs` are ids of earlier nodes or of inputs of the same region: regions are closed.

    `types` are the types of its results. Nodes have one result, except for `Loss`, which has none, and `Apply`
    and loops; a `Part` reads one result of several. `name` is the user's name for the value, or ""."""

    id: str
    operation: Operation
    inputs: tuple[str, ...]
    types: tuple[Type, ...]
    span: Span | None = field(default=None, compare=False, repr=False)
    name: str = ""
    regions: tuple[Region, ...] = ()

    @property
    def type(self) -> Type:
        """The type of the result of a node that has one."""
        (only,) = self.types
        return only

    @property
    def instance(self) -> str | None:
        """The path of the instance that a call applies, that a loop halts by, or that draws the steps of a loop;
        None for every other operation."""
        match self.operation:
            case Call(instance=path) | Halting(instance=path):
                return path
            case Repeat(drawn=path) if path:
                return path
        return None

    @property
    def arguments(self) -> tuple[str, ...]:
        """The inputs that the signature of a call's block names: all but the products."""
        match self.operation:
            case Call(products=products) if products:
                return self.inputs[: -len(products)]
        return self.inputs

    def with_bodies(self, change: Callable[[Region], Region]) -> Node:
        """Returns the node with changed regions."""
        return replace(self, regions=tuple(map(change, self.regions))) if self.regions else self


@dataclass(frozen=True)
class Input:
    """A value that enters a region."""

    id: str
    type: Type
    name: str = ""


@dataclass(frozen=True)
class Region:
    """Nodes in topological order; ids are unique in the whole graph.

    The inputs and results of a loop's body are:
        repeat, stack   inputs: states…, captured values…;  results: states…
        halting         inputs: states…, the mixture if it is named, captured…;  results: states…
        scan            inputs: the part, the positions before it if it takes them, carried states…, captured…;
                        results: carried states…, the emitted part
        experts         inputs: a position, captured…;  results: the emitted vector
        gradient        inputs: the value to differentiate by, captured…;  results: the loss
    The part of a scan over chunks is a chunk; that of a scan over a sequence is the vector of one position.
    The inputs of the loop node are: initial states…, captured…; for scan: what it scans, carried states…, captured…;
    for experts: the values, their routing weights, captured…; for gradient: the same as in the body.
    Its results are the last values of the states (halting: the mixture of the halted state); for scan the last values
    of the carried states, then the emitted sequence. Those of apply are the block's."""

    inputs: tuple[Input, ...]
    nodes: tuple[Node, ...]
    results: tuple[str, ...]

    def walk(self) -> Iterator[Node]:
        """Yields every node, also those in loops and applied blocks; outer before inner."""
        for node in self.nodes:
            yield node
            for region in node.regions:
                yield from region.walk()

    def regions(self) -> Iterator[Region]:
        """Yields the region, and those in it."""
        yield self
        for node in self.walk():
            yield from node.regions

    def types(self) -> dict[str, Type]:
        """Returns the types of its inputs and of its nodes with one result, by their ids."""
        types = {value.id: value.type for value in self.inputs}
        return types | {node.id: node.type for node in self.nodes if len(node.types) == 1}


@dataclass(frozen=True)
class Instance:
    """One set of weights: an extern block with all its statics.

    path: where its weights are in the module, as in `layer.attention`; `stack.*.attention` has a `*` for each stack
        that copies it.
    features: the feature sizes of its inputs, by their names in the signature. An unknown size is a symbol.
    lengths: the names of the lengths in the signature, in order of first appearance among the inputs. Its `forward`
        takes a `mask_<name>` for each.
    axes: for each argument, the names of its lengths in the signature, in order; "" for a length that is a static. An
        argument of type `data` has none.
    grows: the result has a length of its own, so that `forward` returns (result, mask).
    per_position: each position of a halting block halts separately.
    reads: the `Manner` in which it reads each argument.
    unknown: the unknown sizes that statics depend on.
    caveats: the promises that the block does not keep. A sample's result depends on `padding` or on the `batch`, the
        block draws `random` numbers, or draws them in `training`, or its `gradients` stop.
    costs, maps, records: the facts of the clauses of these names.
    acts: the clause of this name, which no module depends on: the text of a graph does not have it.
    written: the statics that the call sets; the others have their defaults.
    even: the number of equally long parts that the block splits a sequence into; 0 for as few as the size of a part
        allows. None if all parts but the last have the size in the type."""

    path: str
    block: str
    python: str
    statics: Mapping[str, StaticValue]
    features: Mapping[str, Dim]
    lengths: tuple[str, ...] = ()
    grows: bool = False
    pure: bool = False
    per_position: bool = False
    reads: tuple[str, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)
    axes: tuple[tuple[str, ...], ...] = ()
    unknown: frozenset[str] = field(default=frozenset(), compare=False, repr=False)
    caveats: tuple[str, ...] = ()
    costs: Costs = UNKNOWN
    maps: tuple[LinearMap, ...] = ()
    records: tuple[Record, ...] = ()
    even: int | None = None
    written: frozenset[str] = field(default=frozenset(), compare=False, repr=False)
    acts: tuple[Act, ...] = field(default=(), compare=False, repr=False)

    def lengths_of(self, kinds: Iterable[Type]) -> dict[str, Dim]:
        """Returns the lengths of a call whose arguments have these types, by their names in the signature."""
        named = (zip(axes, kind.lengths, strict=False) for axes, kind in zip(self.axes, kinds, strict=False))
        return {name: length for pairs in named for name, length in pairs if name}

    @property
    def title(self) -> str:
        """How messages name the block: with the place of the call, if it is known."""
        place = "" if self.span is None else f"{self.span}: "
        return f"{place}`{self.block}`"


@dataclass(frozen=True)
class Graph:
    """A model: its region, whose inputs are the task's fields, and the instances by path. `word` is the
    keyword of its definition, `model` or `block`."""

    name: str
    region: Region
    instances: Mapping[str, Instance]
    word: str = field(default="model", compare=False)

    @property
    def has_own_python(self) -> bool:
        """Whether the class of a block is not one of archlang's."""
        return any(not instance.python.startswith("archlang.") for instance in self.instances.values())

    @cached_property
    def unknown_sizes(self) -> Sequence[str]:
        """The sizes that only a task sets, and that have no value: of features and in statics, not lengths."""
        sizes = [value.type.feature for value in self.region.inputs]
        sizes += [kind.feature for node in self.region.walk() for kind in node.types]
        sizes += [size for instance in self.instances.values() for size in instance.features.values()]
        names = {name for size in sizes if size is not None for name in size.names}
        return sorted(names.union(*(instance.unknown for instance in self.instances.values())))


# Scopes of instances: the body of a stack has instances of its own, with weights for each step.


def scope_of(path: str) -> str:
    """Returns the innermost stack around a path, up to its `*`; "" outside of stacks.

    >>> scope_of("stack.*.layer.stack.*.norm"), scope_of("layer.norm")
    ('stack.*.layer.stack.*', '')"""
    return path[: path.rfind("*") + 1]


def scopes_around(scope: str) -> Iterator[str]:
    """Yields the scopes whose instances a scope can use: itself first, that of the whole model last.

    >>> list(scopes_around("stack.*.layer.stack.*"))
    ['stack.*.layer.stack.*', 'stack.*', '']"""
    while scope:
        yield scope
        scope = scope_of(scope[:-1])
    yield ""


@dataclass(frozen=True)
class LoopLayout:
    """The first index of the states and of the captured values: `outer` and `outer_captured` among the inputs of the
    loop node, `inner` and `inner_captured` among those of its body. `states` is the number of states."""

    states: int
    outer: int
    inner: int
    outer_captured: int
    inner_captured: int


def loop_layout(node: Node) -> LoopLayout:
    """Returns the layout of a loop."""
    states = len(node.types) - emits(node.operation)
    match node.operation:
        case Scan(carried=carried, before=before):
            inner = 1 if before is None else 2
            return LoopLayout(carried, 1, inner, 1 + carried, inner + carried)
        case Experts():
            return LoopLayout(0, 2, 1, 2, 1)
        case Gradient():
            return LoopLayout(0, 1, 1, 1, 1)
        case Halting(mixture=True):
            return LoopLayout(states, 0, 0, states, states + 1)
    return LoopLayout(states, 0, 0, states, states)


def takes_positions(loop: Node) -> bool:
    """Whether a scan or experts take one position at a time, as a vector; other scans take chunks."""
    return loop.regions[0].inputs[0].type.name == "vec"


def step_loops(region: Region) -> Iterator[Node]:
    """Yields the outermost loops over steps: those that are in no other."""
    for node in region.nodes:
        if isinstance(node.operation, Repeat | Stack | Halting):
            yield node
        else:
            for body in node.regions:
                yield from step_loops(body)


def is_loss_of(loss: Type, value: Type) -> bool:
    """Whether a value can be differentiated by: a loss has one number for each sample, or for each position of it."""
    of_positions = [Type("seq", (length, Dim.of(1))) for length in value.lengths[:1]]
    return value.name in FEATURED and loss in (ONE_NUMBER, *of_positions)


def is_idle(node: Node) -> bool:
    """Whether a node is a loop without steps: its states keep their values."""
    return step_limit(node.operation) == 0


def has_halting_positions(loop: Node, state: int) -> bool:
    """Whether a state of a halting loop has the positions of the halting state, and so is updated where that is."""
    assert isinstance(loop.operation, Halting)
    halted = loop.operation.state
    return loop.types[state].lengths[:1] == loop.types[halted].lengths[:1] != ()


def loop_of_results(graph: Graph) -> Node | None:
    """Returns the loop over steps whose emission is the result of a model, on which `inline` has run; None if it has
    none."""
    nodes = {node.id: node for node in graph.region.nodes}
    loop, index = nodes.get(graph.region.results[0]), 0
    match loop:
        case Node(operation=Part(index=part), inputs=(source,)):
            loop, index = nodes[source], part
    match loop:
        case Node(operation=Repeat() | Stack() | Halting() as operation) if emits(operation):
            return loop if index == len(loop.types) - 1 else None
    return None
