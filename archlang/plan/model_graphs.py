"""The graphs of the models of a file, shared by all points of recipes with equal statics and sizes of their model."""

from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, field

from archlang.diagnostics import Diagnostic
from archlang.diagnostics.effort import Memo, spend, spent
from archlang.elaborate.elaborator import elaborate
from archlang.elaborate.known_bodies import KnownBodies, of_library
from archlang.graph.causality import KnownHorizons, Leak, find_leak
from archlang.graph.graph import Graph
from archlang.names.resolve import Declaration, is_shipped
from archlang.names.values import BlockValue, Bound, InstanceValue, Unknown, Value, show
from archlang.plan.weights import may_have_weights
from archlang.source import Span
from archlang.types import Type

_Elaborated = tuple[Graph | None, Type | None, tuple[Type, ...]]
_Texts = frozenset[tuple[str, type, str, Hashable]]


# The steps of the elaborations that are kept; then the old ones are forgotten.
_MOST_STEPS = 1_000_000


@dataclass
class Elaborations:
    """The keys of the elaborations that the check of a cell asks for, None if one of them is not kept, and the steps
    that they counted."""

    keys: set[Hashable] | None = field(default_factory=set)
    steps: int = 0


def _itself(model: Declaration) -> Hashable:
    return model


@dataclass
class ModelGraphs:
    """Elaborates models, those without mistakes once for equal statics and sizes.

    `definition` returns what the graphs of a model depend on, besides statics and sizes. Two texts of a file may share
    graphs if it holds the trees of a model and of its blocks: the graphs have the places of these trees."""

    definition: Callable[[Declaration], Hashable] = _itself
    bodies: KnownBodies = field(init=False, repr=False)
    _elaborated: dict[Hashable, tuple[_Elaborated, int]] = field(default_factory=dict, init=False, repr=False)
    _leaks: Memo[tuple[Leak | None, Graph]] = field(default_factory=Memo, init=False, repr=False)
    _weights: Memo[tuple[bool, Graph]] = field(default_factory=Memo, init=False, repr=False)
    _horizons: KnownHorizons = field(default_factory=Memo, init=False, repr=False)
    _counted: set[Hashable] = field(default_factory=set, init=False, repr=False)
    _of_cell: Elaborations = field(default_factory=Elaborations, init=False, repr=False)

    def __post_init__(self) -> None:
        self.bodies = KnownBodies(self.definition)

    def begin_text(self) -> None:
        """Begins the check of another text, which counts the steps of each elaboration once, as if none was known."""
        self._counted.clear()
        if sum(steps for _, steps in self._elaborated.values()) > _MOST_STEPS:
            self._elaborated.clear()
            self._leaks, self._horizons, self._weights = Memo(), Memo(), Memo()

    def begin_cell(self) -> Elaborations:
        """Begins the check of a cell. Returns the elaborations that it asks for, which `elaborate` adds."""
        self._of_cell = Elaborations()
        return self._of_cell

    def count(self, keys: Collection[Hashable]) -> bool:
        """Counts the steps of elaborations that this text has not counted. Returns False if one is not kept."""
        if not all(key in self._elaborated for key in keys):
            return False
        for key in keys:
            if key not in self._counted:
                self._counted.add(key)
                spend(self._elaborated[key][1])
        return True

    def _note(self, key: Hashable, steps: int) -> None:
        """Notes an elaboration that a cell asks for, and the steps that it counted."""
        self._of_cell.steps += steps
        if key not in self._elaborated:
            self._of_cell.keys = None
        elif self._of_cell.keys is not None:
            self._of_cell.keys.add(key)

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
        key = self.definition(model), self._texts(bounds), may_be_unknown
        if key in self._elaborated:
            elaborated, steps = self._elaborated[key]
            self._note(key, 0 if key in self._counted else steps)
            if key not in self._counted:
                self._counted.add(key)
                spend(steps)
            return elaborated
        diagnostics: list[Diagnostic] = []

        def note(diagnostic: Diagnostic) -> None:
            diagnostics.append(diagnostic)
            report(diagnostic)

        before = spent()
        elaborated = elaborate(model, statics, sizes, span, note, may_be_unknown=may_be_unknown, bodies=self.bodies)
        # A diagnostic may name the place of the recipe.
        if not diagnostics and all(_is_its_text(bound.value) for bound in bounds.values()):
            self._elaborated[key] = elaborated, spent() - before
            self._counted.add(key)
        self._note(key, spent() - before)
        return elaborated

    def find_leak(self, graph: Graph, origin: str) -> Leak | None:
        """Returns the leak of a graph as `find_leak` of `archlang.graph.causality` does."""

        def leak() -> tuple[Leak | None, Graph]:
            return find_leak(graph, origin, self._horizons), graph  # keeps the id in use

        return self._leaks.get((id(graph), origin), leak)[0]

    def may_have_weights(self, graph: Graph) -> bool:
        """Returns whether results of a graph need weights, as `may_have_weights` of `archlang.plan.weights` does."""
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
        definition = of_library.definition if is_shipped(declaration.file) else self.definition
        return definition(declaration), self._texts(value.settled)


def _is_its_text(value: Value) -> bool:
    """Whether values of one type with equal texts are equal. Blocks have definitions and statics, too."""
    if isinstance(value, tuple):
        return not any(isinstance(item, BlockValue) for item in value) and all(_is_its_text(item) for item in value)
    if isinstance(value, BlockValue):
        return all(_is_its_text(bound.value) for bound in value.settled.values())
    return not isinstance(value, InstanceValue | Unknown)
