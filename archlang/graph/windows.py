"""How many columns up to its own a row of a map reads, where blocks with the act `window` make all others 0."""

from collections.abc import Iterable, Mapping, Sequence

from archlang.graph.graph import Instance, Node
from archlang.graph.operations import Arithmetic, Call
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
        instance = instances[node.operation.instance] if isinstance(node.operation, Call) else None
        acts = {act.word: act.numbers for act in instance.acts} if instance is not None else {}
        read = maps.intersection(node.inputs)
        if not isinstance(node.operation, Arithmetic | Call) or "absolute" in acts:
            return 0
        if instance is not None and "window" in acts and _is_map(node):
            if manner_of(instance.reads[0])[0] is not Manner.TRIANGULAR:
                return 0  # it reads later columns, too
            cut[node.id] = int(acts["window"][0])
        elif not _is_map(node):
            if not read <= cut.keys() or "bilinear" not in acts or len(node.inputs) > 2:
                return 0
        elif instance is not None:
            near = {Manner.POINTWISE} if read else _OF_THE_PAIR
            manners = {manner_of(each)[0] for each in instance.reads}
            if not manners <= ({*near, Manner.LENGTH} if "relative" in acts else near):
                return 0
        if _is_map(node):
            maps.add(node.id)
    return max(cut.values(), default=0)


def _is_map(node: Node) -> bool:
    return len(node.types) == 1 and node.type.name == "map"
