"""What the parts of elaboration share: the mistakes, the calls being followed, the instances, and static values."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from archlang.elaborate import mistakes
from archlang.elaborate.binding import TASK_SIZES, Binding
from archlang.elaborate.frame import Frame
from archlang.elaborate.region_builder import Flow, ModelSize, RegionBuilder
from archlang.elaborate.static_arguments import configured
from archlang.errors import Diagnostic, Label, Report, Span
from archlang.errors.effort import spend
from archlang.graph.graph import Instance
from archlang.resolve.evaluate import Evaluator
from archlang.resolve.mistakes import bound_twice
from archlang.resolve.resolve import Declaration
from archlang.resolve.values import Bound, InstanceValue, Unknown
from archlang.syntax.tree import Definition, Expression, Extern
from archlang.types import Dim, Type

# Is called with the places of values and their types.
Observe = Callable[[Span, Type], None]

IN_CALL = "in this call"
# Steps of work for a call, each as long as a small expression takes.
_CALL = 16


class Context:
    """The state of one elaboration.

    With `may_be_unknown`, sizes and statics may lack a value, as where a block is checked on its own. `calls` are the
    calls of composed blocks that lead to the statement being elaborated, `reported` is the number of mistakes.
    `own_lengths` counts the lengths that scans have for themselves, by name. `task_sizes` are those of the whole."""

    def __init__(self, report: Report, may_be_unknown: bool, observe: Observe | None = None) -> None:
        self._report = report
        self._observe = observe
        self.may_be_unknown = may_be_unknown
        self.reported = 0
        self.size = ModelSize()
        self.calls: list[Span] = []
        self.instances: dict[str, Instance] = {}
        self.own_lengths: dict[str, int] = {}
        self.task_sizes = {name: Bound(Dim.of(name), None) for name in TASK_SIZES}

    def report(self, diagnostic: Diagnostic) -> None:
        """Reports a mistake, with the last calls that lead to it."""
        self.reported += 1
        labels = tuple(
            Label(span, IN_CALL)
            for span in self.calls[-3:]
            if all(span != label.span for label in diagnostic.labels) and span != diagnostic.span
        )
        self._report(replace(diagnostic, labels=diagnostic.labels + labels))

    def observe(self, span: Span, value: Flow | InstanceValue | None) -> None:
        """Notes the type of a value of the block that is elaborated, not of the blocks that it calls."""
        if self._observe is not None and not self.calls and isinstance(value, Flow):
            self._observe(span, value.type)

    def new_region(self) -> RegionBuilder:
        """Returns the builder of a region that captures nothing."""
        return RegionBuilder(self.size)

    # Names

    def declare(
        self, frame: Frame, name: str, span: Span, twice: Callable[[Span, str, Span], Diagnostic] = bound_twice
    ) -> bool:
        """Binds a name in a frame. Reports a name that is already bound by the diagnostic `twice`, so its value is
        unknown, and returns False for it."""
        first = frame.binding_span(name)
        if first is None:
            static = frame.binding.parameters.get(name)
            first = static.span if static is not None else None
        if first is not None:
            self.report(twice(span, name, first))
            frame.names[name] = None
            return False
        frame.bound[name] = span
        return True

    # Statics

    def binding(
        self,
        declaration: Declaration,
        statics: dict[str, Bound],
        call: Span,
        ambient: Mapping[str, Bound],
        generic: bool = False,
    ) -> Binding:
        """Returns the binding of one call of a block. `ambient` are the sizes that a task sets. With `generic`,
        statics without a default may be missing."""
        item = declaration.item
        spend(_CALL + len(item.signature.inputs) + len(getattr(item, "reads", ())))

        def report(diagnostic: Diagnostic) -> None:
            self.report(_at_call(diagnostic, item, call))

        return Binding(declaration, call, statics, report, ambient, generic, self.may_be_unknown)

    def evaluator(self, frame: Frame) -> Evaluator:
        """Returns the evaluator of static expressions that see the names of a frame."""
        return Evaluator(frame.lookup, frame.binding.static_names, frame.file, self.report, configured)

    def require_known(self, expression: Expression, frame: Frame) -> None:
        """Reports an expression whose value only a task or a static sets, if the model is to be built."""
        if self.may_be_unknown:
            return
        value = self.evaluator(frame).value(expression, None)
        if isinstance(value, Unknown) or (isinstance(value, Dim) and value.constant is None):
            names = frame.binding.unknown_sizes()
            self.report(mistakes.needs_task(expression.span, frame.binding.declaration.name, names))


def _at_call(diagnostic: Diagnostic, item: Definition | Extern, call: Span) -> Diagnostic:
    """A mistake in the signature of a block of another file, moved to the call that causes it."""
    source = diagnostic.span.source
    if source.path != item.span.source.path or source.path == call.source.path:
        return diagnostic
    labels = (Label(diagnostic.span, diagnostic.label), *diagnostic.labels)
    return replace(diagnostic, span=call, label=IN_CALL, labels=labels)
