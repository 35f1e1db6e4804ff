"""The weights of a graph: whether it has any, and whether two graphs of one model share them."""

from archlang.graph import operations
from archlang.graph.graph import Graph, Instance
from archlang.graph.prune import normalize


def have_same_weights(left: Graph, right: Graph) -> bool:
    """Whether two graphs of one model have weights of the same names, blocks and sizes."""
    left, right = normalize(left), normalize(right)
    return _weights(left) == _weights(right) and _copies(left) == _copies(right)


def may_have_weights(graph: Graph) -> bool:
    """Whether the results of a graph need weights, or blocks whose signatures do not say."""
    return any(map(_may_have, normalize(graph).instances.values()))


def _may_have(instance: Instance) -> bool:
    return not instance.pure and instance.costs.parameters != 0


def _weights(graph: Graph) -> set[tuple[str, str, tuple[tuple[str, str], ...]]]:
    return {
        (path, instance.block, tuple(sorted((name, str(size)) for name, size in instance.features.items())))
        for path, instance in graph.instances.items()
        if not instance.pure
    }


def _copies(graph: Graph) -> dict[str, int]:
    """How many copies of its weights each `stack` has, by its path."""
    stacks = (node.operation for node in graph.region.walk() if isinstance(node.operation, operations.OwnWeights))
    return {stack.path: stack.count for stack in stacks}
