"""The pass `rows`: attention that is written with maps becomes a fused kernel, or is computed in blocks of rows.

    scores = self.scores(q, k)                             weigh = rows(self, q, k, v)
    softmax_keys = self.softmax_keys(scores)
    weigh = self.weigh(softmax_keys, v)

A group is a set of maps that nothing reads besides blocks that compute by rows (decode/block_cache.py), elementwise
blocks and arithmetic, with the results of these that are no maps. The body of a group takes the rows of some values,
and all positions of others; a value may be among both.

A block whose `forward` takes `reuse` may overwrite a map that nothing reads afterwards, no block and no derivative, and
the gradient of its result. Blocks say what their derivative reads by `derivative_reads`: "arguments", "result" or
"nothing"; their results and the gradients of their arguments then have memory of their own.

On a GPU, `flex_attention` computes large maps without holding them, if one softmax over keys is weighed, and all blocks
before it say by `at_pair` what a number of their map is at a `Pair`, or compute each number by itself (`acts_as`)."""

import inspect
import operator
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx, nn

from archlang.backend.decode.block_cache import row_arguments
from archlang.backend.kernels.elementwise import NO_REUSE, Reuse, added, scaled
from archlang.backend.runtime.row_blocks import AxisSlice, Pairs, RowBlocks, column_maxima
from archlang.graph.graph import Instance, Node
from archlang.graph.operations import Arithmetic, Call
from archlang.graph.windows import fading, window
from archlang.types import Dim, Type
from archlang.types.causality import NOTHING, PAIRED, POINTWISE, Horizon, Manner, join_all, manner_of

_RANDOM = {"random", "batch"}
_OPERATORS = (operator.add, operator.sub, operator.mul, operator.truediv, operator.neg)


@dataclass(frozen=True, eq=False)
class _Member:
    """A value that can be computed by rows: its arguments of which it needs only its own rows, the class of its block
    if that takes `first_row`, whether it computes each number by itself, and the class of any block."""

    node: fx.Node
    origin: Node
    rows: frozenset[int]
    block: type[nn.Module] | None = None
    instance: Instance | None = None
    is_elementwise: bool = False
    kind: type[nn.Module] | None = None

    @property
    def is_map(self) -> bool:
        return self.origin.type.name == "map"

    @property
    def derivative_reads(self) -> str:
        """What a derivative reads, "arguments", "result" or "nothing"; "" if it is unknown."""
        return "arguments" if self.node.target in _OPERATORS else getattr(self.kind, "derivative_reads", "")


@dataclass(eq=False)
class _Group:
    """Maps that only a group reads, and its results."""

    maps: set[fx.Node] = field(default_factory=set)
    results: list[fx.Node] = field(default_factory=list)

    def nodes(self) -> set[fx.Node]:
        return {*self.maps, *self.results}


def fuse_rows(
    graph: fx.Graph,
    nodes: Mapping[str, Node],
    types: Mapping[str, Type],
    instances: Mapping[str, Instance],
    classes: Mapping[str, type[nn.Module]],
    compiled: Callable[[str, fx.Graph, Mapping[str, Node]], Callable[..., Any]],
) -> tuple[fx.Graph, dict[str, RowBlocks], dict[str, str]]:
    """Returns the graph in which each group is a call of `RowBlocks`, whose body `compiled` makes of its graph, these
    by the names of the calls, and the values that make it necessary to hold a map as a whole, by the map's name.
    `nodes` and `types` are of the values of the graph, by their names."""
    computed_by_rows = (_member(node, nodes, instances, classes) for node in graph.nodes)
    members = {member.node: member for member in computed_by_rows if member is not None}
    obstacles: dict[str, str] = {}
    groups = list(_groups(graph, members, obstacles))
    if not groups:
        return graph, {}, obstacles
    return *_Fusion(graph, members, types, nodes, compiled).write(groups), obstacles


def _member(
    node: fx.Node, nodes: Mapping[str, Node], instances: Mapping[str, Instance], classes: Mapping[str, type[nn.Module]]
) -> _Member | None:
    origin = nodes.get(node.name)
    if origin is None or len(origin.types) != 1 or origin.regions:
        return None
    everything = frozenset(range(len(node.args)))
    if isinstance(origin.operation, Arithmetic) and origin.type.name == "map":
        more = len(node.args) - len(origin.inputs)  # a quotient may take masks
        return _Member(node, origin, everything, is_elementwise=not more) if more >= 0 else None
    if not isinstance(origin.operation, Call) or node.op != "call_module" or origin.operation.products:
        return None
    instance = instances[origin.operation.instance]
    if _RANDOM & {*instance.caveats} or instance.grows or not node.args:
        return None
    if set(instance.reads) == {"pointwise"} and not instance.lengths:
        kind = classes.get(instance.path)
        acts_as = getattr(kind, "acts_as", "")
        member = _Member(node, origin, everything, None, instance, acts_as in ("elementwise", "positive"), kind)
        return member if member.is_map else None
    block = classes.get(instance.path, nn.Module)
    rows = row_arguments(instance, block)
    return _Member(node, origin, rows, block, instance, kind=block) if rows else None


def _is_lower(member: _Member, lower: Collection[fx.Node]) -> bool:
    """Whether a map is 0 after the diagonal: its block has a static of the name `lower_if` that is true, or it is a
    product with such a map."""
    if member.origin.operation is Arithmetic.MULTIPLY:
        return any(factor in lower for factor in member.node.args)
    return member.instance is not None and bool(member.instance.statics.get(getattr(member.block, "lower_if", "")))


def _takes(block: type[nn.Module], keyword: str) -> bool:
    return keyword in inspect.signature(block.forward).parameters


# Groups


def _groups(graph: fx.Graph, members: Mapping[fx.Node, _Member], obstacles: dict[str, str]) -> Iterator[_Group]:
    """Yields the groups, none of which reads, by another value, what it computes; notes why maps are in none."""
    inner = {node for node, member in members.items() if member.is_map}
    while True:
        while outside := {node: reader for node in inner if (reader := _obstacle(node, inner, members)) is not None}:
            obstacles.update((node.name, reader.name) for node, reader in outside.items())
            inner -= outside.keys()
        groups = _connected_groups(inner, members)
        shared = {map_ for group in groups for map_ in _cyclic_maps(graph, group)}
        if not shared:
            yield from groups
            return
        obstacles.update((map_.name, map_.name) for map_ in shared)
        inner -= shared


def _obstacle(node: fx.Node, inner: Collection[fx.Node], members: Mapping[fx.Node, _Member]) -> fx.Node | None:
    """Returns what reads a map and does not compute it by rows, or is a map that other values read."""
    for user in node.users:
        reader = members.get(user)
        if reader is None or (reader.is_map and user not in inner):
            return user
        read = {index for index, argument in enumerate(user.args) if argument is node}
        if not read or not read <= reader.rows or node in user.kwargs.values():
            return user
        if reader.origin.type.lengths[:1] != members[node].origin.type.lengths[:1]:
            return user
    return None if node.users else node


def _connected_groups(inner: Collection[fx.Node], members: Mapping[fx.Node, _Member]) -> list[_Group]:
    group_of: dict[fx.Node, _Group] = {}
    for node in members:  # in the order of the graph
        sources = [source for source in node.all_input_nodes if source in inner]
        if node not in inner and not sources:
            continue
        group = _Group()
        for other in {id(group_of[source]): group_of[source] for source in sources}.values():
            group.maps |= other.maps
            group.results += other.results
        (group.maps.add if node in inner else group.results.append)(node)
        group_of.update(dict.fromkeys(group.nodes(), group))
    return [*{id(group): group for group in group_of.values()}.values()]


def _cyclic_maps(graph: fx.Graph, group: _Group) -> set[fx.Node]:
    """Returns the maps of a group that several of its nodes read, if a result of it, or another value that depends on
    it, is an argument of it: the results need all rows."""
    own, after = group.nodes(), set(group.results)
    for node in graph.nodes:
        sources = node.all_input_nodes
        if node in own:
            if any(source in after for source in sources):
                return {map_ for map_ in group.maps if len(map_.users) > 1} or group.maps
        elif any(source in own or source in after for source in sources):
            after.add(node)
    return set()


# Writing


class _Fusion:
    def __init__(
        self,
        graph: fx.Graph,
        members: Mapping[fx.Node, _Member],
        types: Mapping[str, Type],
        nodes: Mapping[str, Node],
        compiled: Callable[[str, fx.Graph, Mapping[str, Node]], Callable[..., Any]],
    ) -> None:
        self._graph = graph
        self._members = members
        self._types = types
        self._nodes = nodes
        self._compiled = compiled
        self._fused = fx.Graph()
        self._copies: dict[fx.Node, fx.Node] = {}
        self._group_of: dict[fx.Node, _Group] = {}
        self._rows: dict[str, RowBlocks] = {}

    def write(self, groups: Sequence[_Group]) -> tuple[fx.Graph, dict[str, RowBlocks]]:
        self._group_of = {node: group for group in groups for node in group.nodes()}
        order = {node: index for index, node in enumerate(self._graph.nodes)}
        for group in groups:
            group.results.sort(key=order.__getitem__)
        for node in self._graph.nodes:
            if node not in self._group_of:
                self._copy(node)
        return self._fused, self._rows

    def _copy(self, node: fx.Node) -> fx.Node:
        """Copies a value after all that it is computed from."""
        if node in self._copies:
            return self._copies[node]
        if node in self._group_of:
            self._call(self._group_of[node])
        else:
            for source in node.all_input_nodes:
                self._copy(source)
            self._copies[node] = self._fused.node_copy(node, self._copies.__getitem__)
        return self._copies[node]

    def _call(self, group: _Group) -> None:
        body = _GroupBody(group, self._members, self._types)
        body.write([node for node in self._graph.nodes if node in group.nodes()])
        for source in body.sources:
            self._copy(source)
        name = "rows_of_" + group.results[0].name
        function = self._compiled(
            name, body.graph, {copy.name: self._nodes[node.name] for node, copy in body.copies.items()}
        )
        chain = body.fused()
        fused = None if chain is None else self._compiled(f"{name}_fused", chain, {})
        near = body.near()
        near_body = None if near is None else self._compiled(f"{name}_near", near, {})
        pairs = body.pairs(lambda score: self._compiled(f"{name}_score", score, {}))
        slices, modules = tuple(body.slices), body.modules()
        runtime = RowBlocks(
            function, fused, body.chain, body.is_biased, slices, modules, body.random(), body.width(), body.window(),
            near_body, pairs,
        )  # fmt: skip
        arguments = tuple(self._copies[source] for source in body.sources)
        call = self._fused.create_node("call_function", runtime.function(name), arguments, {}, f"{name}_results")
        self._rows[call.name] = runtime
        for index, node in enumerate(group.results):
            part = self._fused.create_node("call_function", operator.getitem, (call, index), {}, node.name)
            self._copies[node] = part


class _GroupBody:
    """The body of a group as a graph. Its first argument is the position of the first row, the others are slices of
    `sources`."""

    def __init__(self, group: _Group, members: Mapping[fx.Node, _Member], types: Mapping[str, Type]) -> None:
        self.graph = fx.Graph()
        self.sources: list[fx.Node] = []
        self.slices: list[AxisSlice] = []
        self.copies: dict[fx.Node, fx.Node] = {}
        self._group = group
        self._members = members
        self._types = types
        self._first_row = self.graph.placeholder("first_row")
        self.is_biased = False
        self.chain: tuple[str, ...] = ()
        self._taken: dict[tuple[fx.Node, AxisSlice], fx.Node] = {}
        self._kinds_taken: dict[fx.Node, Type | None] = {}
        self._limited = self._limited_lengths()

    def write(self, nodes: Sequence[fx.Node]) -> None:
        lower: set[fx.Node] = set()  # the maps that are 0 after the diagonal
        for node in nodes:
            member = self._members[node]
            if _is_lower(member, lower):
                lower.add(node)
            arguments = tuple(self._argument(member, index, value) for index, value in enumerate(node.args))
            keywords = {name: self._mask(member, name, value) for name, value in node.kwargs.items()}
            if member.block is not None:
                keywords["first_row"] = self._first_row
                if node.args[0] in lower and _takes(member.block, "is_lower"):
                    keywords["is_lower"] = True
            target: Any = node.target  # Any: of torch.fx
            reuse = self._owns(node, 0), self._owns_gradient(node)
            if member.kind is not None and reuse != NO_REUSE and _takes(member.kind, "reuse"):
                keywords["reuse"] = reuse
            elif target in _OPERATORS and reuse != NO_REUSE:
                target, arguments, keywords = self._overwriting(node, arguments, reuse)
            self.copies[node] = self.graph.create_node(node.op, target, arguments, keywords, node.name)
        self.graph.output(tuple(self.copies[node] for node in self._group.results))

    # Memory

    def _owns(self, node: fx.Node, index: int) -> bool:
        """Whether an argument is a map that nothing reads after a value is computed, neither another nor its own
        derivative."""
        argument = node.args[index]
        if not isinstance(argument, fx.Node) or argument not in self._group.maps:
            return False
        is_read_once = len(argument.users) == 1 and node.args.count(argument) == 1
        return is_read_once and self._members[argument].derivative_reads in ("arguments", "nothing")

    def _owns_gradient(self, node: fx.Node) -> bool:
        """Whether the only derivative that gives a value its gradient does not give it to another value, too."""
        user, *others = node.users
        if node not in self._group.maps or others or user.args.count(node) != 1:
            return False
        if user.target in (operator.add, operator.sub):
            return any(isinstance(each, int | float) for each in user.args) and self._owns_gradient(user)
        return bool(self._members[user].derivative_reads)

    def _overwriting(
        self, node: fx.Node, arguments: tuple[Any, ...], reuse: Reuse
    ) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:  # Any: as below
        """Returns the target, the arguments and the keywords of arithmetic that overwrites maps; what it has if it does
        not."""
        maps = [index for index, each in enumerate(node.args) if isinstance(each, fx.Node)]
        if node.target is operator.add and len(maps) == 2 and self._kind(node.args[0]) == self._kind(node.args[1]):
            for own, other in ((0, 1), (1, 0)):
                # A vector of each sample has axes of rows and columns.
                is_map = getattr(node.args[other], "target", None) is not torch.unsqueeze
                if is_map and self._owns(node, own):
                    return added, (arguments[own], arguments[other]), {"reuse": (True, False)}
        if len(maps) == 1 and node.target in (operator.mul, operator.truediv, operator.neg):
            (own,) = maps
            factor = -1.0 if node.target is operator.neg else arguments[1 - own]
            is_quotient = node.target is operator.truediv
            if factor and not (is_quotient and own):
                reuse = self._owns(node, own), reuse[1]
                return scaled, (arguments[own], 1 / factor if is_quotient else factor), {"reuse": reuse}
        return node.target, arguments, {}

    def modules(self) -> dict[str, type[nn.Module] | None]:
        """Returns the modules that the body calls, in the module that runs it, with their classes if it knows them."""
        called = (self._members[node] for node in self.copies)
        return {str(member.node.target): member.kind for member in called if member.instance is not None}

    def random(self) -> tuple[str, ...]:
        """Returns those that draw random numbers in training."""
        called = (self._members[node] for node in self.copies)
        return tuple(str(each.node.target) for each in called if each.instance and "training" in each.instance.caveats)

    def width(self) -> int:
        """Returns the largest number of features of the maps of the group."""
        features = (self._members[node].origin.type.feature for node in self._group.maps)
        return max((feature.constant or 1 for feature in features if feature is not None), default=1)

    def window(self) -> int:
        """Returns how many columns up to its own a row reads, 0 for all."""
        return window(*self._origins()) if self._is_cut() else 0

    def near(self) -> fx.Graph | None:
        """Returns a body that also returns the `column_maxima` of the map below whose underflow all weights are 0, if
        there is one."""
        members = [self._members[node] for node in self.copies]
        arguments = [pair for member in members for pair in zip(member.origin.inputs, member.node.args, strict=False)]
        numbers = {name: value for name, value in arguments if isinstance(value, int | float)}
        sums = fading(*self._origins(), numbers) if self._is_cut() else None
        if sums is None:
            return None
        graph, copies = fx.Graph(), dict[fx.Node, fx.Node]()
        results: Any = graph.graph_copy(self.graph, copies)  # Any: of torch.fx
        source = next(copies[self.copies[member.node]] for member in members if member.origin.id == sums)
        with graph.inserting_after(source):  # before anything overwrites it
            maxima = graph.call_function(column_maxima, (source,))
        graph.output((*results, maxima))
        return graph

    def _origins(self) -> tuple[Sequence[Node], Mapping[str, Instance]]:
        members = [self._members[node] for node in self.copies]
        instances = {member.instance.path: member.instance for member in members if member.instance is not None}
        return [member.origin for member in members], instances

    def _is_cut(self) -> bool:
        maps = (self._members[node].origin for node in self.copies if self._members[node].is_map)
        return all(map_.type.lengths[1] in self._limited for map_ in maps)

    # Arguments

    def _argument(self, member: _Member, index: int, value: Any) -> Any:  # Any: an argument in torch.fx
        if not isinstance(value, fx.Node):
            return value
        if value in self.copies:
            return self.copies[value]
        return self._take(value, self._slice(member, index, value))

    def _slice(self, member: _Member, index: int, value: fx.Node) -> AxisSlice:
        kind = self._types.get(value.name)
        if member.block is None:
            operands = len(member.origin.inputs)
            if index >= operands:  # masks of the rows and the columns of a divisor
                column = member.origin.type.lengths[1]
                return (
                    AxisSlice(1, None) if index == operands else AxisSlice(None, 1 if column in self._limited else None)
                )
            if kind is None or kind.name != "map":
                return AxisSlice(None, None)
        assert kind is not None, "an argument of a block that computes by rows is a value of the region"
        if index in member.rows:
            columns = kind.lengths[1] if kind.name == "map" else None
            return AxisSlice(1, 2 if columns in self._limited else None)
        return AxisSlice(None, 1 if kind.lengths[:1] and kind.lengths[0] in self._limited else None)

    def _mask(self, member: _Member, name: str, value: Any) -> Any:  # Any: as above
        if not isinstance(value, fx.Node):
            return value
        assert member.instance is not None
        length = name.removeprefix("mask_")
        if length == member.instance.lengths[0]:
            return self._take(value, AxisSlice(1, None))
        return self._take(value, AxisSlice(None, 1 if self._length_in_call(member, length) in self._limited else None))

    def _take(self, value: fx.Node, part: AxisSlice) -> fx.Node:
        if (value, part) not in self._taken:
            name = f"{value.name}_rows" if part.rows is not None else value.name
            self._taken[value, part] = taken = self.graph.create_node("placeholder", name, (), {}, name)
            self._kinds_taken[taken] = self._types.get(value.name)
            self.sources.append(value)
            self.slices.append(part)
        return self._taken[value, part]

    def _length_in_call(self, member: _Member, name: str) -> Dim | None:
        assert member.instance is not None
        for axes, argument in zip(member.instance.axes, member.node.args, strict=False):
            kind = self._kind(argument)
            if kind is not None and name in axes:
                return kind.lengths[axes.index(name)]
        return None

    def _kind(self, argument: Any) -> Type | None:  # Any: as above
        if not isinstance(argument, fx.Node):
            return None
        member = self._members.get(argument)
        return self._types.get(argument.name) if member is None else member.origin.type

    # Causality

    def _limited_lengths(self) -> frozenset[Dim]:
        kinds = [self._kind(argument) for node in self._group.nodes() for argument in node.args]
        lengths = {length for kind in kinds if kind is not None for length in kind.lengths[:2]}
        return frozenset(length for length in lengths if not self._sees_later(length))

    def _sees_later(self, length: Dim) -> bool:
        horizons: dict[fx.Node, Horizon] = {}

        def horizon(node: fx.Node) -> Horizon:
            if node not in horizons:
                member, parts = self._members[node], []
                for index, argument in enumerate(node.args):
                    if not isinstance(argument, fx.Node) or index >= len(member.origin.inputs):
                        continue
                    manner, _ = manner_of(member.instance.reads[index] if member.instance else "pointwise")
                    parts.append(source(member, index, argument).read(manner, 0))
                total = join_all(parts, 0)
                if member.is_map and member.origin.type.lengths[1] == length:
                    total = total.join(PAIRED, 0)  # it has an entry for each column, as distances have
                horizons[node] = total if member.is_map or total != PAIRED else total.read(Manner.ROW, 0)
            return horizons[node]

        def source(member: _Member, index: int, argument: fx.Node) -> Horizon:
            if argument in self._group.maps:
                return horizon(argument)
            kind = self._types.get(argument.name)
            if kind is None or kind.name == "data" or not kind.lengths:
                return NOTHING
            if index in member.rows:
                return PAIRED if kind.name == "map" and kind.lengths[1] == length else NOTHING
            return POINTWISE if kind.lengths[0] == length else NOTHING

        return any(horizon(node).sees_future for node in self._group.results)

    # The fused form

    def fused(self) -> fx.Graph | None:
        """Returns a body in which the class of the last block computes a chain of blocks at once, if it states
        `fuses`: the classes of the two blocks before it. Maps may be added to the result of the first. `is_fused`
        of the last block says whether its settings and theirs allow it."""
        last = self._members[self._group.results[0]]
        chain = getattr(last.block, "fuses", None)
        if chain is None or len(self._group.results) > 1:
            return None
        first_class, second_class = chain
        second = self._of_class(last.node.args[0], second_class)
        added: list[fx.Node] = []
        first = None if second is None else second.args[0]
        while isinstance(first, fx.Node) and self._of_class(first, first_class) is None:
            member = self._members.get(first)
            if member is None or member.origin.operation is not Arithmetic.ADD or len(first.users) > 1:
                return None
            operands = [operand for operand in first.args if isinstance(operand, fx.Node)]
            if len(operands) < 2:
                return None
            inner = [operand for operand in operands if self._leads_to(operand, first_class)]
            if len(inner) != 1:
                return None
            added += [operand for operand in operands if operand is not inner[0]]
            if any(each.target is torch.unsqueeze or getattr(self._kind(each), "name", "") != "map" for each in added):
                return None  # numbers and vectors
            first = inner[0]
        if second is None or not isinstance(first, fx.Node):
            return None
        return self._write_fused(first, second, last.node, added)

    def _of_class(self, node: Any, block: type) -> fx.Node | None:  # Any: as above
        member = self._members.get(node) if isinstance(node, fx.Node) and node in self._group.maps else None
        return member.node if member is not None and member.block is block and len(member.node.users) == 1 else None

    def _leads_to(self, node: fx.Node, block: type) -> bool:
        """Whether a value is the result of a block of a class, perhaps with maps added to it."""
        member = self._members.get(node)
        if self._of_class(node, block) is not None:
            return True
        if node not in self._group.maps or member is None or member.origin.operation is not Arithmetic.ADD:
            return False
        return any(self._leads_to(operand, block) for operand in node.all_input_nodes)

    def _write_fused(self, first: fx.Node, second: fx.Node, last: fx.Node, added: Sequence[fx.Node]) -> fx.Graph:
        graph = fx.Graph()
        copies: dict[fx.Node, fx.Node] = {}
        skipped = {self.copies[node] for node in (first, second, last)}
        bias: Any = None
        for node in self.graph.nodes:
            if node.op == "placeholder":
                copies[node] = graph.node_copy(node)
            elif (
                node.op != "output" and node not in skipped and all(source in copies for source in node.all_input_nodes)
            ):
                copies[node] = graph.node_copy(node, copies.__getitem__)
        self.is_biased = bool(added)
        self.chain = tuple(str(node.target) for node in (last, first, second))
        for node in added:
            source = copies[self.copies.get(node) or self._taken[node, self._slice_of(node)]]
            bias = source if bias is None else graph.call_function(operator.add, (bias, source))
        modules = [graph.create_node("get_attr", node.target) for node in (last, first, second)]
        arguments = [
            self._argument(self._members[node], index, value)
            for node, index, value in ((first, 0, first.args[0]), (first, 1, first.args[1]), (last, 1, last.args[1]))
        ]
        masks = {name: self._mask(self._members[last], name, value) for name, value in last.kwargs.items()}
        result = graph.create_node(
            "call_method",
            "fused",
            (*modules, *(copies[value] for value in arguments), bias),
            {name: copies.get(value, value) for name, value in masks.items()} | {"first_row": copies[self._first_row]},
            "fused",
        )
        graph.output((result,))
        return graph

    def _slice_of(self, node: fx.Node) -> AxisSlice:
        """The part that the body takes of a map that is added."""
        return next(part for (value, part) in self._taken if value is node)

    # The score of a pair

    def pairs(self, compiled: Callable[[fx.Graph], Callable[..., Any]]) -> Pairs | None:
        """Returns the group for `flex_attention` if the class of its last block has `flexes`, those of the blocks that
        multiply queries and keys and that make weights of scores, and all others say what they are in a `Pair`."""
        last = self._members[self._group.results[0]]
        of_products, of_weights = getattr(last.block, "flexes", (None, ()))
        products = [self._members[node] for node in self._group.maps if self._members[node].block is of_products]
        weights = self._members.get(last.node.all_input_nodes[0])
        if len(self._group.results) > 1 or len(products) != 1 or weights is None:
            return None
        if weights.block is None or not issubclass(weights.block, of_weights):
            return None
        arguments = [(products[0], 0), (products[0], 1), (last, 1)]
        graph = self._score(weights.node)
        if graph is None or any(member.node.args[index] in self.copies for member, index in arguments):
            return None
        index_of = {node: index for index, node in enumerate(self._taken.values())}
        masks = {name: index_of.get(self._mask(last, name, mask)) for name, mask in last.node.kwargs.items()}
        indices = [index_of[self._argument(member, index, member.node.args[index])] for member, index in arguments]
        blocks = tuple(str(member.node.target) for member in (last, products[0], weights))
        return Pairs(compiled(graph), blocks, tuple(indices), masks)

    def _score(self, weights: fx.Node) -> fx.Graph | None:
        """Returns a graph of one score, whose softmax are the weights, from a `Pair` and the arguments of the group."""
        graph = fx.Graph()
        pair = graph.placeholder("pair")
        outside = {node: graph.node_copy(node) for node in self._taken.values()}
        copies: dict[Any, Any] = dict(outside)  # Any: arguments in torch.fx
        for node in (node for node in self.copies if node in self._group.maps):
            copy, member = self.copies[node], self._members[node]
            if node.target is torch.unsqueeze:  # a vector of each sample gets axes of rows and columns
                copies[copy] = outside[copy] = graph.node_copy(copy, copies.__getitem__)
                continue
            of_block = hasattr(member.block, "at_pair")
            if not of_block and (member.block is not None or not member.is_elementwise):
                return None
            values = [copies.get(own, own) if isinstance(own, fx.Node) else own for own in copy.args]
            for index, own in enumerate(copy.args):
                kind = self._kinds_taken.get(own) if isinstance(own, fx.Node) else None
                if own in outside and (not of_block or (kind is not None and kind.name == "map")):
                    values[index] = graph.call_method("of", (pair, values[index]))
            operation, keywords = (copy.op, copy.target), {}
            if of_block:
                values = [graph.create_node("get_attr", str(copy.target)), pair, *values]
                operation = ("call_method", "at_pair")
                keywords = {name: copies[mask] for name, mask in copy.kwargs.items() if mask in copies}
            copies[copy] = graph.create_node(*operation, tuple(values), keywords, copy.name)
        graph.output((copies[self.copies[weights]],))
        return graph
