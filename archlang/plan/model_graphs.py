"""The graphs of the models of a file, shared by all points of recipes with equal statics and sizes of their model."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field

from archlang.diagnostics import Diagnostic
from archlang.diagnostics.effort import Memo
from archlang.elaborate.elaborator import elaborate
from archlang.graph import operations
from archlang.graph.causality import Leak, find_leak
from archlang.graph.graph import Graph, Instance
from archlang.graph.prune import normalize
from archlang.names.resolve import Declaration, is_shipped
from archlang.names.values import BlockValue, Bound, InstanceValue, Unknown, Value, show
from archlang.source import Span
from archlang.types import Type

_Elaborated = tuple[Graph | None, Type | None, tuple[Type, ...]]
_Texts = frozenset[tuple[str, type, str, Hashable]]

# A graph has at most 20,000 values, so these take about as much memory as the texts of an editor.
_MOST_GRAPHS = 500


@dataclass
class ModelGraphs:
    """Elaborates models, those without mistakes once for equal statics and sizes."""

    _elaborated: Memo[_Elaborated] = field(default_factory=lambda: Memo(_MOST_GRAPHS), init=False, repr=False)
    _leaks: Memo[tuple[Leak | None, Graph]] = field(default_factory=lambda: Memo(_MOST_GRAPHS), init=False, repr=False)
    _weights: Memo[tuple[bool, Graph]] = field(default_factory=lambda: Memo(_MOST_GRAPHS), init=False, repr=False)

    def elaborate(
        self,
        model: Declaration,
        statics: Mapping[str, Bound],
        sizes: Mapping[str, Bound],
        span: Span,
        report: Callable[[Diagnostic], None],
        may_be_unknown: bool,
    ) -> _Elaborated:
        """Returns the graph of a model, the type of its result and those of its inputs, as `elaborate` does; `sizes`
        are those of the task."""
        bounds = {**sizes, **{f"model.{name}": bound for name, bound in statics.items()}}
        diagnostics: list[Diagnostic] = []

        def note(diagnostic: Diagnostic) -> None:
            diagnostics.append(diagnostic)
            report(diagnostic)

        return self._elaborated.get(
            (model, self._texts(bounds), may_be_unknown),
            lambda: elaborate(model, statics, sizes, span, note, may_be_unknown=may_be_unknown),
            # A diagnostic may name the place of the recipe.
            lambda: not diagnostics and all(_is_its_text(bound.value) for bound in bounds.values()),
        )

    def find_leak(self, graph: Graph, origin: str) -> Leak | None:
        """Returns the leak of a graph as `find_leak` of `archlang.graph.causality` does."""
        return self._leaks.get((id(graph), origin), lambda: (find_leak(graph, origin), graph))[0]  # keeps the id in use

    def may_have_weights(self, graph: Graph) -> bool:
        """Returns whether results of a graph need weights, as the function does."""
        return self._weights.get(id(graph), lambda: (may_have_weights(graph), graph))[0]  # keeps the id in use

    def _texts(self, bounds: Mapping[str, Bound]) -> _Texts:
        """Returns what values depend on: their types and texts, and for blocks their definitions and statics."""
        return frozenset(
            (name, type(bound.value), show(bound.value), self._block(bound.value)) for name, bound in bounds.items()
        )

    def _block(self, value: Value) -> Hashable:
        if not isinstance(value, BlockValue):
            return None
        declaration = value.declaration
        of_library = (declaration.file.program.source.path, declaration.name)
        return of_library if is_shipped(declaration.file) else declaration, self._texts(value.settled)


def _is_its_text(value: Value) -> bool:
    """Whether values of one type with equal texts are equal. Blocks have definitions and statics, too."""
    if isinstance(value, tuple):
        return not any(isinstance(item, BlockValue) for item in value) and all(_is_its_text(item) for item in value)
    if isinstance(value, BlockValue):
        return all(_is_its_text(bound.value) for bound in value.settled.values())
    return not isinstance(value, InstanceValue | Unknown)


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
