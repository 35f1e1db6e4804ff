"""Whether two graphs of one model share their weights."""

from archlang.graph import operations
from archlang.graph.graph import Graph
from archlang.graph.prune import normalize


def have_same_weights(left: Graph, right: Graph) -> bool:
    """Whether two graphs of one model have weights of the same names, blocks and sizes."""
    left, right = normalize(left), normalize(right)
    return _weights(left) == _weights(right) and _copies(left) == _copies(right)


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
