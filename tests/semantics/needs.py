"""The values of a graph that its result needs, by the rule of docs/semantics.md."""

from dataclasses import dataclass, field

from archlang.graph.graph import Graph, Node, Region
from archlang.graph.operations import Apply, Experts, Halting, Loss, Part, Repeat, Scan, Stack


@dataclass
class Needs:
    """The ids of needed values, and for each loop the indices of its needed results; states come first."""

    values: set[str] = field(default_factory=set)
    results: dict[str, set[int]] = field(default_factory=dict)

    def halting(self, region: Region) -> list[Halting]:
        """Returns the needed halting loops with steps in a region, at any depth."""
        return [
            node.operation
            for node in region.walk()
            if isinstance(node.operation, Halting) and node.operation.limit and self.results.get(node.id)
        ]

    def losses(self, region: Region) -> set[str]:
        """Returns the names of the auxiliary losses in a region, at any depth."""
        losses = set[str]()
        for node in region.nodes:
            losses |= {node.operation.name} if isinstance(node.operation, Loss) else set()
            losses = losses.union(*(self.losses(inner) for inner in node.regions if not is_idle(node)))
        return losses


@dataclass(frozen=True)
class _Place:
    """An input of a region, by the node that owns the region and the index of the input."""

    owner: Node
    index: int


class _Search:
    """Follows the inputs of values from the results back."""

    def __init__(self, graph: Graph) -> None:
        self.needs = Needs()
        self._nodes = {node.id: node for node in graph.region.walk()}
        self._places = {
            value.id: _Place(node, index)
            for node in graph.region.walk()
            for region in node.regions
            for index, value in enumerate(region.inputs)
        }

    def value(self, identifier: str) -> None:
        if identifier in self.needs.values:
            return
        self.needs.values.add(identifier)
        if identifier in self._places:
            self._input(self._places[identifier])
        elif identifier in self._nodes:
            self._node(self._nodes[identifier])

    def _node(self, node: Node) -> None:
        match node.operation:
            case Part(index=index):
                self._result(self._nodes[node.inputs[0]], index)
            case Repeat() | Stack() | Halting() | Scan() | Experts() | Apply():
                self._result(node, 0)
            case _:
                for source in node.inputs:
                    self.value(source)

    def _result(self, node: Node, index: int) -> None:
        """Marks a result of a loop or an applied block as needed."""
        first = 1 if isinstance(node.operation, Scan) else 0
        if is_idle(node):
            self.value(node.inputs[index])
            return
        results = self.needs.results.setdefault(node.id, set())
        if index in results:
            return
        results.add(index)
        self.value(node.regions[0].results[index])
        if isinstance(node.operation, Apply):
            return
        if isinstance(node.operation, Scan | Experts):
            self.value(node.inputs[0])
        if isinstance(node.operation, Experts):
            self.value(node.inputs[1])
        if index < state_count(node):
            self.value(node.inputs[first + index])
        if isinstance(node.operation, Halting):
            self._result(node, node.operation.state)

    def losses(self, region: Region, around: tuple[Node, ...] = ()) -> None:
        """Marks the auxiliary losses of a region as needed, and the loops around them."""
        for node in region.nodes:
            if isinstance(node.operation, Loss):
                self.value(node.inputs[0])
                for loop in around:
                    self._loop(loop)
            elif not is_idle(node):
                for inner in node.regions:
                    self.losses(inner, (*around, node))

    def _loop(self, node: Node) -> None:
        """Marks a loop as needed, whatever its results."""
        self.needs.results.setdefault(node.id, set())
        if isinstance(node.operation, Scan):
            self.value(node.inputs[0])
        if isinstance(node.operation, Halting):
            self._result(node, node.operation.state)

    def _input(self, place: _Place) -> None:
        node, index = place.owner, place.index
        if isinstance(node.operation, Apply):
            self.value(node.inputs[index])
            return
        if isinstance(node.operation, Experts):
            self.value(node.inputs[index + 1 if index else 0])
            return
        first = _inputs_of_part(node)
        states = state_count(node)
        mixture = isinstance(node.operation, Halting) and node.operation.mixture
        if first <= index < first + states:
            self._result(node, index - first)
        elif index < first:
            self.value(node.inputs[0])
        elif not (mixture and index == states):
            # A scan reads its parts and what is before them from one input.
            self.value(node.inputs[index - mixture - max(0, first - 1)])


def _inputs_of_part(loop: Node) -> int:
    """Returns the number of inputs of a scan's body that belong to the part; 0 for other loops."""
    if not isinstance(loop.operation, Scan):
        return 0
    return 1 if loop.operation.before is None else 2


def state_count(loop: Node) -> int:
    """Returns the number of states of a loop."""
    if isinstance(loop.operation, Experts):
        return 0
    if isinstance(loop.operation, Scan):
        return loop.operation.carried
    return len(loop.types) - (isinstance(loop.operation, Repeat | Stack | Halting) and loop.operation.emits)


def is_idle(node: Node) -> bool:
    """Whether a node is a loop without steps."""
    match node.operation:
        case Repeat(count=0) | Stack(count=0) | Halting(limit=0):
            return True
    return False


def needs_of(graph: Graph) -> Needs:
    """Returns the values that the results and the auxiliary losses of a graph need."""
    search = _Search(graph)
    for result in graph.region.results:
        search.value(result)
    search.losses(graph.region)
    return search.needs
