"""Which lengths a region needs the masks of: a mask flows beside every value whose type has a length."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from archlang.graph.graph import Instance, Node, Region
from archlang.graph.operations import Call, Halting, Loop, Scan
from archlang.types import Dim, Type


def named_lengths(instance: Instance, types: Sequence[Type]) -> dict[str, Dim]:
    """The lengths of a call's arguments, by their names in the block's signature."""
    return {
        name: length
        for axes, kind in zip(instance.axes, types, strict=False)
        for name, length in zip(axes, kind.lengths, strict=False)
        if name
    }


def grown_lengths(instance: Instance, types: Sequence[Type], result: Type) -> list[Dim]:
    """The lengths that only the result of a call has, whose mask comes with it."""
    known = {length for kind in types for length in kind.lengths}
    return [length for length in result.lengths if length not in known] if instance.grows else []


def halted_lengths(loop: Node) -> tuple[Dim, ...]:
    """The length of the state that a halting loop halts by, if it has one."""
    assert isinstance(loop.operation, Halting)
    return loop.types[loop.operation.state].lengths[:1]


def chunk_lengths(loop: Node) -> tuple[Dim, ...]:
    """The length of a scan's chunk, whose mask its body gets with the chunk; other loops have none."""
    return loop.regions[0].inputs[0].type.lengths if isinstance(loop.operation, Scan) else ()


def needed_lengths(region: Region, instances: Mapping[str, Instance]) -> tuple[Dim, ...]:
    """The lengths whose masks a region must be given, in order of first use. Where a length is a number, every
    position is real and there is no mask."""
    types = {value.id: value.type for value in region.inputs}
    made: set[Dim] = set()
    needed: dict[Dim, None] = {}
    for node in region.nodes:
        given = [types[source] for source in node.inputs if source in types]
        for length in _used(node, given, instances):
            if length.constant is None and length not in made:
                needed[length] = None
        if len(node.types) == 1:
            types[node.id] = node.type
        if isinstance(node.operation, Call):
            made.update(grown_lengths(instances[node.operation.instance], given, node.type))
    return tuple(needed)


def _used(node: Node, types: Sequence[Type], instances: Mapping[str, Instance]) -> Iterator[Dim]:
    """The lengths whose masks a node reads."""
    if isinstance(node.operation, Call):
        yield from named_lengths(instances[node.operation.instance], types).values()
    if isinstance(node.operation, Loop):
        own = chunk_lengths(node)
        yield from (length for length in needed_lengths(node.regions[0], instances) if length not in own)
    if isinstance(node.operation, Halting):
        yield from halted_lengths(node)
