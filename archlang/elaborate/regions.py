"""Regions being filled with nodes, and the mistakes found on the way: what all of elaboration stands on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

from archlang.diagnostics import Diagnostic, Label
from archlang.diagnostics.effort import spend
from archlang.elaborate import mistakes
from archlang.elaborate.frame import Builder, Flow, Frame
from archlang.elaborate.signature import Binding, settle
from archlang.graph.graph import Input, Instance, Node, Region
from archlang.graph.operations import Operation, Part
from archlang.names import mistakes as name_mistakes
from archlang.names.evaluate import Evaluator
from archlang.names.resolve import Declaration, ResolvedFile
from archlang.names.values import (
    BlockValue,
    Bound,
    Unknown,
    Value,
)
from archlang.source import Span
from archlang.syntax.tree import (
    Call,
    Definition,
    Expression,
    Extern,
    StaticArgument,
)
from archlang.types import Dim, Type

LARGEST = 20_000
"""Operations that a model unfolds to, and modules that it has."""
MOST_LOOP_STEPS = 1_000_000
"""Steps of loops inside each other."""

# Steps of work, each as long as a small expression takes.
_CALL = 16
_NODE = 4


def _at_call(diagnostic: Diagnostic, item: Definition | Extern, call: Span) -> Diagnostic:
    """A mistake in the signature of a block of another file, at the call that makes it one."""
    source = diagnostic.span.source
    if source.path != item.span.source.path or source.path == call.source.path:
        return diagnostic
    labels = (Label(diagnostic.span, diagnostic.label), *diagnostic.labels)
    return Diagnostic(diagnostic.code, diagnostic.message, call, "in this call", labels, diagnostic.remedy)


class TooLarge(Exception):
    """A model that unfolds or runs without end; `mistake` says how."""

    def __init__(self, mistake: Diagnostic) -> None:
        self.mistake = mistake
        super().__init__()


class Regions:
    """Adds nodes to regions, evaluates statics where a frame sees them, and passes mistakes on."""

    def __init__(self, report: Callable[[Diagnostic], None], may_be_unknown: bool) -> None:
        self._sink = report
        self._may_be_unknown = may_be_unknown  # sizes and statics, as where a block is checked on its own
        self._calls: list[Span] = []
        self._ids = 0
        self._lengths: dict[str, int] = {}
        self.instances: dict[str, Instance] = {}
        self._stack_counts: dict[str, int] = {}
        self._modules = 0
        self._steps_around = 1

    def report(self, diagnostic: Diagnostic) -> None:
        """Passes a mistake on, with the calls that led into another block."""
        labels = tuple(
            Label(span, "in this call")
            for span in self._calls[-3:]
            if all(span != label.span for label in diagnostic.labels) and span != diagnostic.span
        )
        self._sink(
            Diagnostic(
                diagnostic.code,
                diagnostic.message,
                diagnostic.span,
                diagnostic.label,
                diagnostic.labels + labels,
                diagnostic.remedy,
            )
        )

    def _binding(
        self, declaration: Declaration, given: dict[str, Bound], span: Span, ambient: Mapping[str, Bound], generic: bool
    ) -> Binding:
        item = declaration.item
        spend(_CALL + len(item.signature.statics) + len(item.signature.inputs))
        spend(len(item.reads) if isinstance(item, Extern) else 0)

        def configure(call: Call, target: Declaration | BlockValue) -> Value:
            return self._configure(target, call.statics, binding.evaluator)

        def report(diagnostic: Diagnostic) -> None:
            self.report(_at_call(diagnostic, declaration.item, span))

        binding = Binding(declaration, span, given, report, configure, ambient, generic, self._may_be_unknown)
        return binding

    def _require_known(self, expression: Expression, frame: Frame) -> None:
        """Reports an expression whose value only a task or a static can give, where the model is to be built."""
        if self._may_be_unknown:
            return
        value = self._evaluator(frame).value(expression, None)
        unknown = isinstance(value, Unknown) or (isinstance(value, Dim) and value.constant is None)
        if unknown:
            names = frame.binding.unknown_sizes()
            self.report(mistakes.needs_task(expression.span, frame.binding.declaration.name, names))

    def _count_modules(self, path: str, count: int, span: Span) -> None:
        """Notes modules that stand once in each step of the stacks around `path`."""
        for stack, steps in self._stack_counts.items():
            if path.startswith(f"{stack}.*"):
                count *= steps
        self._modules += count
        if self._modules > LARGEST:
            raise TooLarge(mistakes.too_large(span, LARGEST))

    @contextmanager
    def _steps(self, count: int | None, span: Span) -> Iterator[None]:
        """The body of a loop that takes this many steps."""
        around = self._steps_around
        self._steps_around *= 1 if count is None else max(1, count)
        if self._steps_around > MOST_LOOP_STEPS:
            raise TooLarge(mistakes.too_many_steps(span, MOST_LOOP_STEPS))
        yield
        self._steps_around = around

    def _configure(
        self, target: Declaration | BlockValue, statics: Sequence[StaticArgument], evaluator: Evaluator
    ) -> BlockValue:
        block = target if isinstance(target, BlockValue) else BlockValue(target)
        spend(len(block.declaration.item.signature.statics))
        return BlockValue(block.declaration, settle(block.declaration, block.settled, statics, evaluator, self.report))

    def _evaluator(self, frame: Frame) -> Evaluator:
        def configure(call: Call, target: Declaration | BlockValue) -> Value:
            return self._configure(target, call.statics, self._evaluator(frame))

        def names() -> frozenset[str]:
            return frame.binding.known()

        return Evaluator(frame.lookup, names, self._module(frame), self.report, configure)

    def _module(self, frame: Frame) -> ResolvedFile:
        return frame.binding.declaration.file

    def _id(self) -> str:
        self._ids += 1
        return f"%{self._ids}"

    def _input(self, builder: Builder, kind: Type, name: str, span: Span) -> Flow:
        value = Input(self._id(), kind, name)
        builder.inputs.append(value)
        return Flow(builder, value.id, kind, span)

    def _node(
        self,
        builder: Builder,
        operation: Operation,
        inputs: Sequence[Flow],
        types: Sequence[Type],
        span: Span,
        regions: Sequence[Region] = (),
    ) -> tuple[Flow, ...]:
        """Adds a node; one flow for each of its results."""
        spend(_NODE + len(inputs) + sum(len(size.terms) for kind in types for size in kind.dims))
        ids = tuple(self._local(value, builder) for value in inputs)
        node = Node(self._id(), operation, ids, tuple(types), span, "", tuple(regions))
        builder.nodes.append(node)
        if self._ids > LARGEST:
            raise TooLarge(mistakes.too_large(span, LARGEST))
        if len(types) == 1:
            return (Flow(builder, node.id, types[0], span),)
        flows = []
        for index, kind in enumerate(types):
            part = Node(self._id(), Part(index), (node.id,), (kind,), span)
            builder.nodes.append(part)
            flows.append(Flow(builder, part.id, kind, span))
        return tuple(flows)

    def _local(self, value: Flow, builder: Builder) -> str:
        """The id of a value in a region; an outer value is captured on the way in."""
        if value.builder is builder:
            return value.id
        if value.id not in builder.captured:
            assert builder.parent is not None, "a region uses a value from nowhere"
            self._local(value, builder.parent)
            made = Input(self._id(), value.type, "")
            builder.inputs.append(made)
            builder.captured[value.id] = made.id
        return builder.captured[value.id]

    def _declare(self, frame: Frame, name: str, span: Span) -> bool:
        """Notes that a name is bound here, once."""
        spend()
        first = frame.place_of(name)
        if first is None:
            static = frame.binding.parameters.get(name)
            first = static.span if static is not None else None
        if first is not None:
            self.report(name_mistakes.bound_twice(span, name, first))
            return False
        frame.bound[name] = span
        return True

    def _named(self, value: Flow | None, name: str) -> Flow | None:
        """Gives the user's name to the node that made a value."""
        if value is not None:
            nodes = value.builder.nodes
            for index in range(len(nodes) - 1, max(len(nodes) - 8, -1), -1):
                if nodes[index].id == value.id and not nodes[index].name:
                    nodes[index] = replace(nodes[index], name=name)
        return value
