"""Which columns of a map a row reads, where blocks with the act `window`, or exponentials that underflow, make all
others 0."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from math import inf

from archlang.graph.graph import Instance, Node
from archlang.graph.operations import Arithmetic, Call
from archlang.graph.transitions import ranges
from archlang.types.causality import Manner, manner_of

# What each number of such a map reads is at its own row and column.
_OF_THE_PAIR = {Manner.POINTWISE, Manner.TRANSPOSED}


def groups_of_maps(nodes: Iterable[Node]) -> Sequence[Sequence[Node]]:
    """Returns the maps of a region that are connected, with what reads them, in their order."""
    groups: dict[str, list[Node]] = {}
    order: dict[str, int] = {}
    for node in nodes:
        order[node.id] = len(order)
        joined = {id(groups[source]): groups[source] for source in node.inputs if source in groups}
        if not joined and not _is_map(node):
            continue
        group = [*(each for other in joined.values() for each in other), node]
        groups.update((each.id, group) for each in group if _is_map(each))
    return [sorted(group, key=lambda node: order[node.id]) for group in {id(g): g for g in groups.values()}.values()]


def window(group: Iterable[Node], instances: Mapping[str, Instance]) -> int:
    """Returns how many columns up to its own each row of connected maps reads, 0 for all. A row may be computed from
    these columns alone: nothing in the group depends on where they are, besides their distances."""
    cut: dict[str, int] = {}  # the maps that are 0 elsewhere
    maps: set[str] = set()
    for node in group:
        instance, acts = _instance(node, instances)
        read = maps.intersection(node.inputs)
        if not isinstance(node.operation, Arithmetic | Call) or "absolute" in acts:
            return 0
        if instance is not None and "window" in acts and _is_map(node):
            if manner_of(instance.reads[0])[0] is not Manner.TRIANGULAR:
                return 0  # it reads later columns, too
            cut[node.id] = int(acts["window"][0])
        elif not (
            _is_of_pair(instance, acts, bool(read)) if _is_map(node) else _adds(node, acts) and read <= cut.keys()
        ):
            return 0
        if _is_map(node):
            maps.add(node.id)
    return max(cut.values(), default=0)


def fading(group: Sequence[Node], instances: Mapping[str, Instance], numbers: Mapping[str, float]) -> str | None:
    """Returns the map of a group that never decreases along a row up to the row's column, and makes all weights 0 where
    its exponential is 0; None if there is none. A row may be computed without these columns. `numbers` are known."""
    bounds = ranges(group, instances, numbers)
    sums = None
    below: set[str] = set()  # the maps that are at most these sums
    gone: set[str] = set()  # those that are 0 where the exponentials of these are
    maps: set[str] = set()
    for node in group:
        instance, acts = _instance(node, instances)
        read = maps.intersection(node.inputs)
        if not isinstance(node.operation, Arithmetic | Call) or "absolute" in acts:
            return None
        if "sums_later" in acts:
            is_causal = instance is not None and manner_of(instance.reads[0])[0] is Manner.TRIANGULAR
            if sums is not None or not is_causal or bounds[node.inputs[0]][1] > 0:
                return None
            sums = node.id
            below.add(node.id)
        elif not (_is_of_pair(instance, acts, bool(read)) if _is_map(node) else _adds(node, acts) and read <= gone):
            return None
        elif _is_map(node):
            kept, raised = [bounds[each] for each in node.inputs if each not in gone], {*node.inputs} - below
            is_product = node.operation is Arithmetic.MULTIPLY and not {-inf, inf} & {*chain(*kept)}
            if (read & gone and is_product) or ("masks" in acts and not kept) or ("exponential" in acts and not raised):
                gone.add(node.id)
            elif node.operation is Arithmetic.ADD and read & below and all(bounds[each][1] <= 0 for each in raised):
                below.add(node.id)
        if _is_map(node):
            maps.add(node.id)
    return sums


def _instance(node: Node, instances: Mapping[str, Instance]) -> tuple[Instance | None, Mapping[str, Sequence[float]]]:
    """Returns the instance of a call, and what it acts."""
    instance = instances[node.operation.instance] if isinstance(node.operation, Call) else None
    return instance, {act.word: act.numbers for act in instance.acts} if instance is not None else {}


def _is_of_pair(instance: Instance | None, acts: Collection[str], reads_map: bool) -> bool:
    """Whether numbers of a map depend on the query and the key of their row and column, and on the distance, alone."""
    near = {Manner.POINTWISE} if reads_map else _OF_THE_PAIR
    manners = set() if instance is None or "masks" in acts else {manner_of(each)[0] for each in instance.reads}
    return manners <= ({*near, Manner.LENGTH} if "relative" in acts else near)


def _adds(node: Node, acts: Collection[str]) -> bool:
    """Whether a value adds up what a map has in its rows: a 0 adds nothing."""
    return ("bilinear" in acts or "sums" in acts) and len(node.inputs) <= 2


def _is_map(node: Node) -> bool:
    return len(node.types) == 1 and node.type.name == "map"
