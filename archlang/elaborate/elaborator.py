"""From a block or model with its statics to a typed graph: calls bound, loops closed, instances named."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from archlang.diagnostics import Diagnostic
from archlang.elaborate import mistakes
from archlang.elaborate.frame import Builder, Flow, Frame, Place
from archlang.elaborate.loops import Loops
from archlang.elaborate.regions import TooLarge
from archlang.graph.graph import Graph, Region
from archlang.names import mistakes as name_mistakes
from archlang.names.resolve import Declaration
from archlang.names.values import (
    BlockValue,
    Bound,
    InstanceValue,
    Unknown,
)
from archlang.source import Span
from archlang.syntax.tree import (
    Assign,
    Definition,
    Emit,
    Halting,
    If,
    Let,
    Move,
    Name,
    Repeat,
    Return,
    Scan,
    Stack,
    Statement,
)
from archlang.types import Axis, Dim, Type


class Elaborator(Loops):
    """Elaborates one block or model into a graph, and collects what is wrong with it."""

    def graph(
        self,
        declaration: Declaration,
        given: Mapping[str, Bound],
        ambient: Mapping[str, Bound],
        span: Span,
        generic: bool = False,
    ) -> tuple[Graph | None, Type | None, tuple[Type, ...]]:
        """The graph of a definition whose statics are given, the type of its result, and those of its inputs."""
        item = declaration.item
        assert isinstance(item, Definition)
        binding = self._binding(declaration, dict(given), span, ambient, generic)
        builder = Builder()
        frame = Frame(binding, builder, Place(""))
        types = []
        for parameter in item.signature.inputs:
            for axis in (Axis.LENGTH, Axis.FEATURE):
                for name in binding.sizes_by_axis(parameter, axis):
                    if name not in binding.sizes and name not in binding.ambient:
                        binding.bind_size(name, Bound(Dim.of(name), parameter.span), axis)
            if parameter.type.name == "data":
                binding.family = ("seq", (Dim.of("n"),))
            kind = binding.type(parameter.type)
            types.append(kind)
            self._declare(frame, parameter.name, parameter.span)
            frame.names[parameter.name] = (
                None if kind is None else self._input(builder, kind, parameter.name, parameter.span)
            )
        binding.finish()
        result = self._body_of(declaration, frame)
        if result is None or None in types:
            return None, None, ()
        region = Region(tuple(builder.inputs), tuple(builder.nodes), (result.id,))
        return Graph(item.name, region, dict(self.instances)), result.type, tuple(t for t in types if t is not None)

    def _body_of(self, declaration: Declaration, frame: Frame) -> Flow | None:
        """Runs a definition's body; its result, held against the promised type."""
        item = declaration.item
        assert isinstance(item, Definition)
        self._run(item.body.statements, frame)
        if frame.returned is None:
            if not frame.misplaced:
                self.report(name_mistakes.no_return(item.name_span, item.name))
            return None
        result, span = frame.returned
        promised = item.signature.result
        if result is None or promised is None:
            return result
        sizes = list(result.type.dims)
        wanted = frame.binding.type(promised, free=lambda name: self._free(name, sizes, promised_names(item), frame))
        if wanted is not None and not _keeps(wanted, result.type):
            self.report(mistakes.wrong_result(span, item.name, str(wanted), result.type, promised.span))
            return None
        return result

    def _free(self, name: str, sizes: Sequence[Dim], written: Sequence[str | None], frame: Frame) -> Dim:
        """A size that only the result of a block has: it is what the body makes it."""
        if name in written and len(written) <= len(sizes):
            return sizes[written.index(name)]
        return Dim.of(name)

    def _run(self, statements: Sequence[Statement], frame: Frame) -> None:
        for statement in statements:
            if frame.returned is not None:
                self.report(name_mistakes.unreachable(statement.span, frame.returned[1]))
                return
            self._statement(statement, frame)

    def _statement(self, statement: Statement, frame: Frame) -> None:
        match statement:
            case Let():
                self._let(statement, frame)
            case Assign():
                value = self._value(statement.value, frame)
                if self._declare(frame, statement.name, statement.name_span):
                    frame.names[statement.name] = self._named(value, statement.name)
            case Move():
                self._move(statement, frame)
            case Return():
                value = self._value(statement.value, frame)
                if frame.outer is not None:
                    self.report(name_mistakes.return_in_loop(statement.span))
                    frame.root.misplaced = True
                else:
                    frame.returned = (value, statement.span)
            case Emit():
                value = self._value(statement.value, frame)
                if frame.word != "scan":
                    self.report(name_mistakes.emit_outside_scan(statement.span))
                elif frame.emitted is not None:
                    self.report(name_mistakes.emit_twice(statement.span, frame.emitted[1]))
                else:
                    frame.emitted = (value, statement.value.span)
            case If():
                self._if(statement, frame)
            case Repeat() | Stack():
                self._plain_loop(statement, frame)
            case Halting():
                self._halting(statement, frame)
            case Scan():
                self._scan(statement, frame)

    def _let(self, statement: Let, frame: Frame) -> None:
        evaluator = self._evaluator(frame)
        value = evaluator.value(statement.value, "block")
        instance: InstanceValue | None = None
        if isinstance(value, BlockValue):
            path = frame.place.path(statement.name)
            instance = InstanceValue(statement.name, value, path, statement.value.span)
        elif value is not None and not isinstance(value, Unknown):
            self.report(mistakes.bad_let(statement.value.span, statement.name))
        if self._declare(frame, statement.name, statement.name_span):
            frame.names[statement.name] = instance

    def _move(self, statement: Move, frame: Frame) -> None:
        value = self._value(statement.value, frame)
        name, span = statement.name, statement.name_span
        if name == frame.mixture:
            return  # reported with the loop
        if name not in frame.states:
            first = frame.place_of(name)
            if first is None:
                self.report(name_mistakes.move_unbound(span, name, frame.visible()))
            else:
                self.report(name_mistakes.move_outside_loop(span, name, first))
            return
        state = frame.names.get(name)
        if isinstance(value, Flow) and isinstance(state, Flow):
            if value.type != state.type:
                self.report(
                    mistakes.state_changes_type(
                        statement.value.span, name, state.type, value.type, frame.place_of(name)
                    )
                )
                value = None
            frame.names[name] = self._named(value, name)
        elif value is None:
            frame.names[name] = (
                state
                if state is None
                else Flow(state.builder, state.id, state.type, span)
                if isinstance(state, Flow)
                else None
            )

    def _if(self, statement: If, frame: Frame) -> None:
        truth = self._evaluator(frame).truth(statement.test)
        if truth is not None:
            body = statement.then if truth else statement.otherwise
            if body is not None:
                self._run(body.statements, frame)
            return
        self._require_known(statement.test, frame)
        # The test is not known: both branches are elaborated, and what both bind stays.
        before, bound, returned = dict(frame.names), dict(frame.bound), frame.returned
        self._run(statement.then.statements, frame)
        then, bound_then, returned_then = frame.names, frame.bound, frame.returned
        frame.names, frame.bound, frame.returned = before, bound, returned
        if statement.otherwise is not None:
            self._run(statement.otherwise.statements, frame)
            frame.names = {name: value for name, value in then.items() if name in frame.names}
            frame.returned = frame.returned and returned_then
        frame.bound = {**bound_then, **frame.bound}


def elaborate(
    declaration: Declaration,
    given: Mapping[str, Bound],
    ambient: Mapping[str, Bound],
    span: Span,
    report: Callable[[Diagnostic], None],
    generic: bool = False,
    may_be_unknown: bool = False,
) -> tuple[Graph | None, Type | None, tuple[Type, ...]]:
    """The graph of a block or model with given statics, its result's type and its inputs' types; after a mistake,
    which is reported, no graph. With `generic`, statics without a default may be missing, and with `may_be_unknown`,
    the sizes that a task gives: what depends on their values is checked as far as that can be."""
    mistaken: list[Diagnostic] = []

    def note(diagnostic: Diagnostic) -> None:
        if diagnostic.is_error:
            mistaken.append(diagnostic)
        report(diagnostic)

    elaborator = Elaborator(note, generic or may_be_unknown)
    try:
        graph, result, types = elaborator.graph(declaration, given, ambient, span, generic)
    except TooLarge as error:
        report(error.mistake)
        return None, None, ()
    except RecursionError:
        # Calls in loops in calls: each is within its own limit of depth, and together they are too deep.
        report(name_mistakes.too_deep_together(declaration.span, declaration.name))
        return None, None, ()
    return (None if mistaken else graph), result, types


def _keeps(promised: Type, actual: Type) -> bool:
    """Whether a result has the promised type; a promise of chunks need not say how long they are."""
    if promised.part == Dim.of(0) and actual.name == promised.name:
        return promised.dims[:-1] == actual.dims[:-1]
    return promised == actual


def promised_names(item: Definition) -> list[str | None]:
    """The names of the sizes that a definition's result type writes, in order."""
    result = item.signature.result
    dimensions = getattr(result, "dimensions", ())
    return [size.text if isinstance(size, Name) else None for size in dimensions]
