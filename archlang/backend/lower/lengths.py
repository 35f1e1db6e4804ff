"""The lengths whose masks a region needs: a mask accompanies every value whose type has a length."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from archlang.graph.graph import Instance, Node, Region, loop_layout, takes_positions
from archlang.graph.growth import chunk_count, growths
from archlang.graph.operations import Arithmetic, Call, Experts, Gradient, Halting, Loop, Scan
from archlang.types import Dim, Type


def named_lengths(instance: Instance, types: Sequence[Type]) -> dict[str, Dim]:
    """Returns the lengths of a call's arguments, by their names in the block's signature."""
    return {
        name: length
        for axes, kind in zip(instance.axes, types, strict=False)
        for name, length in zip(axes, kind.lengths, strict=False)
        if name
    }


def grown_lengths(instance: Instance, types: Sequence[Type], result: Type) -> list[Dim]:
    """Returns the lengths that only the result of a call has; the call returns their mask too."""
    argument_lengths = {length for kind in types for length in kind.lengths}
    return [length for length in result.lengths if length not in argument_lengths] if instance.grows else []


def divisor_lengths(node: Node, types: Mapping[str, Type]) -> tuple[Dim, ...]:
    """Returns the lengths of the divisor of a division, if one of them can have padding; `types` are those of the
    values of the region."""
    if node.operation is not Arithmetic.DIVIDE:
        return ()
    lengths = types[node.inputs[1]].lengths
    return lengths if any(length.constant is None for length in lengths) else ()


def halted_lengths(loop: Node) -> tuple[Dim, ...]:
    """Returns the length of the state that a halting loop halts by; empty if it has none."""
    assert isinstance(loop.operation, Halting)
    return loop.types[loop.operation.state].lengths[:1]


def loss_lengths(gradient: Node) -> tuple[Dim, ...]:
    """Returns the length of the loss that is differentiated; empty if it is a number of each sample."""
    (body,) = gradient.regions
    return body.types()[body.results[0]].lengths


def chunk_lengths(loop: Node) -> tuple[Dim, ...]:
    """Returns the lengths of a scan's chunk and of what is before it, whose masks its body takes with them; empty for
    other loops."""
    if not isinstance(loop.operation, Scan):
        return ()
    part_inputs = loop.regions[0].inputs[: loop_layout(loop).inner]
    return tuple(length for value in part_inputs for length in value.type.lengths)


def growing_lengths(loop: Node) -> tuple[Dim, ...]:
    """Returns the lengths that the growing states of a loop have in its body, which takes their masks behind the
    states."""
    first = loop_layout(loop).inner
    return tuple(loop.regions[0].inputs[first + index].type.lengths[0] for index in growths(loop))


def counted_chunks(node: Node) -> tuple[Dim, ...]:
    """Returns the number of chunks of a scan, if the lengths of its results depend on it."""
    if not isinstance(node.operation, Scan) or takes_positions(node):
        return ()
    count = chunk_count(node.regions[0].inputs[0].type.lengths[0])
    return (count,) if any(count.names & length.names for kind in node.types for length in kind.lengths) else ()


def summands(length: Dim) -> dict[Dim, int] | None:
    """Returns the lengths that a length adds up, with their factors; None if it has a product of lengths."""
    if any(len(monomial) > 1 for monomial, _ in length.terms):
        return None
    return {Dim.of(name): factor for monomial, factor in length.terms for name in monomial}


def needed_lengths(region: Region, instances: Mapping[str, Instance]) -> tuple[Dim, ...]:
    """Returns the lengths whose masks a region takes, in order of first use. A constant length has no mask: every
    position is real."""
    types = {value.id: value.type for value in region.inputs}
    present = {length for kind in types.values() for length in kind.lengths}
    computed: set[Dim] = set()
    summands_of: dict[Dim, Iterable[Dim]] = {}
    needed: dict[Dim, None] = {}
    for node in region.nodes:
        argument_types = [types[source] for source in node.inputs if source in types]
        for read in (*_lengths_of_masks(node, argument_types, instances), *divisor_lengths(node, types)):
            # The mask of a length that only the result of a loop has follows from those that it adds up.
            for length in summands_of.get(read, (read,)):
                if length.constant is None and length not in computed:
                    needed[length] = None
        if len(node.types) == 1:
            types[node.id] = node.type
        if isinstance(node.operation, Call):
            computed.update(grown_lengths(instances[node.operation.instance], argument_types, node.type))
        lengths = {length for kind in node.types for length in kind.lengths}
        computed.update(counted_chunks(node))
        if isinstance(node.operation, Loop):
            for length in lengths - present:
                if parts := summands(length):
                    summands_of[length] = parts
        present |= lengths
    return tuple(needed)


def _lengths_of_masks(node: Node, types: Sequence[Type], instances: Mapping[str, Instance]) -> Iterator[Dim]:
    if isinstance(node.operation, Call):
        yield from named_lengths(instances[node.operation.instance], types).values()
    if isinstance(node.operation, Loop):
        own = (*chunk_lengths(node), *growing_lengths(node))
        yield from (length for length in needed_lengths(node.regions[0], instances) if length not in own)
    if isinstance(node.operation, Halting):
        yield from halted_lengths(node)
    if isinstance(node.operation, Gradient):
        yield from loss_lengths(node)
    if isinstance(node.operation, Scan | Experts) and takes_positions(node):
        yield from types[0].lengths
    yield from growing_states_before(node, types)


def growing_states_before(loop: Node, types: Sequence[Type]) -> list[Dim]:
    """Returns the lengths of the growing states of a loop before it; `types` are those of its inputs."""
    first = loop_layout(loop).outer if isinstance(loop.operation, Scan) else 0
    return [types[first + index].lengths[0] for index in growths(loop)]
