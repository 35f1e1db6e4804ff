"""The graphs of the models of a file, shared by all points of recipes with equal statics and sizes of their model."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from archlang.diagnostics import Diagnostic
from archlang.diagnostics.effort import Memo
from archlang.elaborate.elaborator import elaborate
from archlang.graph.causality import Leak, find_leak
from archlang.graph.graph import Graph
from archlang.names.resolve import Declaration
from archlang.names.values import BlockValue, Bound, InstanceValue, Unknown, Value, show
from archlang.source import Span
from archlang.types import Type

_Elaborated = tuple[Graph | None, Type | None, tuple[Type, ...]]
_Texts = tuple[tuple[str, type, str], ...]


@dataclass
class ModelGraphs:
    """Elaborates models, those without mistakes once for equal statics and sizes."""

    _elaborated: dict[tuple[Declaration, _Texts, bool], _Elaborated] = field(
        default_factory=dict, init=False, repr=False
    )
    _leaks: Memo[tuple[Leak | None, Graph]] = field(default_factory=Memo, init=False, repr=False)

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
        key = model, _texts(bounds), may_be_unknown
        if key in self._elaborated:
            return self._elaborated[key]
        diagnostics: list[Diagnostic] = []

        def note(diagnostic: Diagnostic) -> None:
            diagnostics.append(diagnostic)
            report(diagnostic)

        elaborated = elaborate(model, statics, sizes, span, note, may_be_unknown=may_be_unknown)
        # A diagnostic may name the place of the recipe.
        if not diagnostics and all(_is_its_text(bound.value) for bound in bounds.values()):
            self._elaborated[key] = elaborated
        return elaborated

    def find_leak(self, graph: Graph, origin: str) -> Leak | None:
        """Returns the leak of a graph as `find_leak` of `archlang.graph.causality` does."""
        leak, _ = self._leaks.get((id(graph), origin), lambda: (find_leak(graph, origin), graph))  # keeps the id in use
        return leak


def _texts(bounds: Mapping[str, Bound]) -> _Texts:
    return tuple(sorted((name, type(bound.value), show(bound.value)) for name, bound in bounds.items()))


def _is_its_text(value: Value) -> bool:
    """Whether values of one type with equal texts are equal; blocks also have statics."""
    if isinstance(value, tuple):
        return all(_is_its_text(item) for item in value)
    return not isinstance(value, BlockValue | InstanceValue | Unknown)
