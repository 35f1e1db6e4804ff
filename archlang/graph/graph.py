"""The typed graph of one model: regions of nodes, and the instances whose weights the nodes use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from archlang.graph.facts import UNKNOWN, Costs, LinearMap, Record
from archlang.graph.operations import Call, Halting, Operation
from archlang.source import Span
from archlang.types import Dim, Type
from archlang.types.statics import StaticValue

NUMBER = Type("number")


@dataclass(frozen=True)
class Node:
    """One operation. `inputs` are ids of earlier nodes or inputs of the same region: regions are closed.

    `types` are the types of its results (one, but for apply, join and loops with several; read those with `part`).
    `name` is the user's name for the value, if it has one."""

    id: str
    operation: Operation
    inputs: tuple[str, ...]
    types: tuple[Type, ...]
    span: Span | None = field(default=None, compare=False, repr=False)
    name: str = ""
    regions: tuple[Region, ...] = ()

    @property
    def type(self) -> Type:
        """The type of the only result."""
        (only,) = self.types
        return only

    @property
    def instance(self) -> str | None:
        """The path of the instance that a call applies, or that a loop halts by; None for every other operation."""
        match self.operation:
            case Call(instance=path) | Halting(instance=path):
                return path
        return None

    @property
    def arguments(self) -> tuple[str, ...]:
        """The inputs that the signature of a call's block names: all but the products."""
        match self.operation:
            case Call(products=products) if products:
                return self.inputs[: -len(products)]
        return self.inputs


@dataclass(frozen=True)
class Input:
    """A value that comes into a region."""

    id: str
    type: Type
    name: str = ""


@dataclass(frozen=True)
class Region:
    """Nodes in an order in which every input stands before its use; ids are unique in the whole graph.

    The inputs and results of a loop's body are:
        repeat, stack   inputs: states…, captured values…;  results: states…
        halting         inputs: states…, the mixture if it is named, captured…;  results: states…
        scan            inputs: the chunk, carried states…, captured…;  results: carried states…, what is emitted
    The loop node's own inputs are: initial states…, captured…; for scan: the chunks, carried states…, captured….
    Its results are the states' last values (halting: the halted state's is its mixture); for scan the carried states'
    last values, then the whole emitted sequence. For apply: inputs and results as the block's."""

    inputs: tuple[Input, ...]
    nodes: tuple[Node, ...]
    results: tuple[str, ...]

    def walk(self) -> Iterator[Node]:
        """Every node, also in loops and applied blocks; outer before inner."""
        for node in self.nodes:
            yield node
            for region in node.regions:
                yield from region.walk()


@dataclass(frozen=True)
class Instance:
    """One set of weights: an extern block with all its statics.

    `path` is where its state stands in the module (`layer.attention`, `stack.*.attention`: a `*` for each stack that
    it is copied in). `features` are the feature sizes of its inputs, by the names in its signature; a size that is not
    known yet (no task given) is a symbol. `lengths` are the names of length sizes in the signature, in order of first
    appearance among the inputs: its forward takes a `mask_<name>` for each. `axes` has, for each argument, the names in
    the signature of its length sizes, in order: "" for one that is a static; none for `data`. `grows` says that the
    result has a length of its own, so that forward returns (result, mask). `reads` is how it reads each argument, in
    the words of `Manner`. `per_position` says of a halting block that each position halts by itself. `unknown` are
    the sizes that statics are computed from and that are not known. `caveats` are the promises that the block does not
    keep: a sample's result depends on `padding` or on the `batch`, the block draws `random` numbers, or does so in
    `training`, and its `gradients` stop. `costs`, `maps` and `records` are the facts of the clauses of these names.
    `even` is the number of the equally long parts that the block cuts a sequence into, 0 for as few as the size of a
    part allows; None if all parts but the last have the size that the type says."""

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


@dataclass(frozen=True)
class Graph:
    """A model: its region, whose inputs are the task's fields, and the instances by path."""

    name: str
    region: Region
    instances: Mapping[str, Instance]

    def unknown_sizes(self) -> list[str]:
        """The sizes of features, and in statics, that only a task can give and none has given; lengths never are."""
        sizes = [value.type.feature for value in self.region.inputs]
        sizes += [kind.feature for node in self.region.walk() for kind in node.types]
        sizes += [size for instance in self.instances.values() for size in instance.features.values()]
        names = {name for size in sizes if size is not None for name in size.names}
        return sorted(names.union(*(instance.unknown for instance in self.instances.values())))
