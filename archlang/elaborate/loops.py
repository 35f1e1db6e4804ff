"""The four loops: their states, their bodies as regions, and what holds after them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from archlang.elaborate import mistakes
from archlang.elaborate.calls import gives_probabilities
from archlang.elaborate.expressions import Expressions
from archlang.elaborate.frame import Builder, Flow, Frame, Place, moved_names
from archlang.graph import operations
from archlang.graph.graph import NUMBER, Region
from archlang.names import mistakes as name_mistakes
from archlang.names.values import (
    InstanceValue,
    Unknown,
    describe,
)
from archlang.source import Span
from archlang.syntax.tree import (
    Call,
    Definition,
    Expression,
    Halting,
    Repeat,
    Scan,
    Stack,
    Statement,
)
from archlang.types import Dim, Type

MOST_STEPS_OF_A_LOOP = 10_000


class Loops(Expressions):
    """Turns loops into nodes with a region."""

    def _count(self, expression: Expression, word: str, frame: Frame) -> int | None:
        value = self._evaluator(frame).value(expression, "int")
        if isinstance(value, Unknown):
            self._require_known(expression, frame)
        if value is None or isinstance(value, Unknown):
            return None
        if isinstance(value, Dim):
            number = value.constant
            if number is None:
                self._require_known(expression, frame)
            if number is None or 0 <= number <= MOST_STEPS_OF_A_LOOP:
                return number
        self.report(name_mistakes.bad_count(expression.span, word, describe(value)))
        return None

    def _enter(
        self, frame: Frame, word: str, span: Span, states: Mapping[str, Span], place: Place
    ) -> tuple[Frame, list[Flow]]:
        """A loop's frame, in which each state is an input of the body; and the states' values before the loop."""
        inner = Frame(frame.binding, Builder(frame.builder), place, frame, word, span)
        initial = []
        usable = []
        for name, moved in states.items():
            known, value = frame.find(name)
            if isinstance(value, Flow) and not self._may_be_state(value, word):
                self.report(mistakes.no_state(moved, name, value.type, word))
            elif isinstance(value, Flow):
                initial.append(value)
                usable.append(name)
            elif known and value is not None:
                self.report(name_mistakes.move_unbound(moved, name, ()))
            elif not known:
                self.report(name_mistakes.move_unbound(moved, name, frame.visible()))
            inner.names[name] = None
        for name, value in zip(usable, initial, strict=True):
            inner.names[name] = self._input(inner.builder, value.type, name, value.span)
        inner.states = frozenset(states)
        return inner, initial

    def _may_be_state(self, value: Flow, word: str) -> bool:
        """Whether a loop can move a value. Where samples or chunks move by themselves, it is a tensor."""
        return value.type.name != "chunks" and (value.type != NUMBER or word in ("repeat", "stack"))

    def _close(self, inner: Frame, results: Sequence[str]) -> Region | None:
        """The region of a loop's body; None after a mistake in it."""
        ids = []
        for name in results:
            value = inner.names.get(name)
            if not isinstance(value, Flow):
                return None
            ids.append(self._local(value, inner.builder))
        return Region(tuple(inner.builder.inputs), tuple(inner.builder.nodes), tuple(ids))

    def _leave(self, frame: Frame, names: Sequence[str], flows: Sequence[Flow] | None) -> None:
        """After a loop, each state has its last value."""
        for index, name in enumerate(names):
            known, before = frame.find(name)
            if flows is None:
                # The body has a mistake that is reported: the state keeps its type, so that the rest is checked.
                if known and isinstance(before, Flow):
                    frame.names[name] = before
                continue
            frame.names[name] = self._named(flows[index], name)

    def _captures(self, inner: Frame) -> list[Flow]:
        """The outer values that a body captured, in the order of its inputs."""
        assert inner.builder.parent is not None
        types = {value.id: value.type for value in inner.builder.inputs}
        order = {identifier: place for place, identifier in enumerate(types)}
        captured = sorted(inner.builder.captured.items(), key=lambda pair: order[pair[1]])
        parent = inner.builder.parent
        return [
            Flow(parent, self._outer_id(outer, parent), types[made], inner.span or inner.binding.call)
            for outer, made in captured
        ]

    def _outer_id(self, value: str, builder: Builder) -> str:
        return builder.captured.get(value, value)

    def _plain_loop(self, statement: Repeat | Stack, frame: Frame) -> None:
        word = "repeat" if isinstance(statement, Repeat) else "stack"
        count = self._count(statement.count, word, frame)
        states = moved_names(statement.body)
        path = frame.place.path("stack") if word == "stack" else ""
        if path:
            self._count_modules(path, count or 0, _head(statement))
            self._stack_counts[path] = 1 if count is None else count
        place = Place(f"{path}.*.") if word == "stack" else frame.place
        inner, initial = self._enter(frame, word, statement.span, states, place)
        with self._steps(count, _head(statement)):
            self._run(statement.body.statements, inner)
        if not states:
            self.report(name_mistakes.loop_without_state(_head(statement), f"`{word}`"))
            return
        region = self._close(inner, tuple(states)) if len(initial) == len(states) else None
        flows = None
        if region is not None:
            steps = 1 if count is None else count
            operation = operations.Stack(steps, path) if path else operations.Repeat(steps)
            flows = self._node(
                frame.builder, operation, [*initial, *self._captures(inner)], [f.type for f in initial],
                statement.span, [region],
            )  # fmt: skip
        self._leave(frame, tuple(states), flows)

    def _halting(self, statement: Halting, frame: Frame) -> None:
        limit = self._count(statement.count, "repeat", frame)
        states = moved_names(statement.body)
        halted, mixture = statement.state, statement.mixture
        if mixture in states:
            bound = statement.mixture_span or statement.span
            self.report(name_mistakes.mixture_moved(states.pop(mixture), mixture, halted, bound))
        if halted not in states:
            if frame.find(halted)[0]:
                self.report(name_mistakes.state_not_moved(statement.state_span, halted, "halting state"))
            else:
                self.report(name_mistakes.move_unbound(statement.state_span, halted, frame.visible()))
        inner, initial = self._enter(frame, "halting", statement.span, states, frame.place)
        inner.mixture = mixture
        if statement.mixture is not None and self._declare(
            inner, statement.mixture, statement.mixture_span or statement.span
        ):
            state = inner.names.get(halted)
            inner.names[statement.mixture] = (
                self._input(inner.builder, state.type, statement.mixture, statement.state_span)
                if isinstance(state, Flow)
                else None
            )
        with self._steps(limit, _head(statement)):
            self._run(statement.body.statements, inner)
        _, before = frame.find(halted)
        path = self._halting_instance(statement, before if isinstance(before, Flow) else None, frame)
        usable = len(initial) == len(states) and halted in states and path is not None
        region = self._close(inner, tuple(states)) if usable else None
        flows = None
        if region is not None and path is not None:
            operation = operations.Halting(
                1 if limit is None else limit, path, tuple(states).index(halted), statement.mixture is not None
            )
            flows = self._node(
                frame.builder, operation, [*initial, *self._captures(inner)], [f.type for f in initial],
                statement.span, [region],
            )  # fmt: skip
        self._leave(frame, tuple(states), flows)

    def _halting_instance(self, statement: Halting, state: Flow | None, frame: Frame) -> str | None:
        """The instance that a loop halts by; its result must be halting probabilities of the state."""
        callee = statement.by.callee if isinstance(statement.by, Call) else statement.by
        target = self._callee(callee, frame)
        if target is None:
            return None
        statics = statement.by.statics if isinstance(statement.by, Call) else ()
        shared = target if isinstance(target, InstanceValue) else None
        block = self._settled(target, statics, callee, frame)
        item = block.declaration.item
        if isinstance(item, Definition) or not gives_probabilities(item):
            self.report(mistakes.not_halting(statement.by.span, item.name))
            return None
        if state is None:
            return None
        path = shared.path if shared else frame.place.path(callee.parts[-1])
        call = self._bind(block, [(state, statement.state_span)], statement.by.span)
        if call is None:
            return None
        kind, instance = call.result(path, statement.by.span)
        if kind is None or instance is None:
            return None
        if kind.name not in ("prob", "probs"):
            self.report(mistakes.not_halting(statement.by.span, item.name))
            return None
        return path if self._register(instance, shared) else None

    def _scan(self, statement: Scan, frame: Frame) -> None:
        over = self._value(statement.over, frame)
        if over is not None and over.type.name != "chunks":
            self.report(mistakes.not_chunks(statement.over.span, over.type))
            over = None
        inner = Frame(frame.binding, Builder(frame.builder), frame.place, frame, "scan", statement.span)
        chunk: Type | None = None
        if over is not None:
            chunk = Type("seq", (Dim.of(self._length(statement.variable)), over.type.dims[1]))
        first: dict[str, Span] = {}
        for name in statement.carry:
            if first.setdefault(name.text, name.span) is not name.span:
                self.report(name_mistakes.carried_twice(name.span, name.text, first[name.text]))
        carried = list(first)
        moves = moved_names(statement.body)
        moves.pop(statement.variable, None)
        for moved, span in moves.items():
            if moved not in carried:
                self.report(name_mistakes.not_carried(span, moved, _head(statement)))
        if self._declare(inner, statement.variable, statement.variable_span):
            inner.names[statement.variable] = (
                None
                if chunk is None
                else self._input(inner.builder, chunk, statement.variable, statement.variable_span)
            )
        initial: list[Flow] = []
        for carry, span in first.items():
            known, value = frame.find(carry)
            inner.names[carry] = None
            if not known:
                self.report(name_mistakes.unknown_value(span, carry, frame.visible(), False))
            elif carry not in moves:
                self.report(name_mistakes.state_not_moved(span, carry, "carried state"))
            if isinstance(value, Flow) and not self._may_be_state(value, "scan"):
                self.report(mistakes.no_state(span, carry, value.type, "scan"))
            elif isinstance(value, Flow):
                initial.append(value)
                inner.names[carry] = self._input(inner.builder, value.type, carry, span)
        inner.states = frozenset(carried) | {statement.variable} | frozenset(moves)
        self._run(statement.body.statements, inner)
        result = self._emission(statement, inner, chunk)
        flows: tuple[Flow, ...] | None = None
        region = self._close(inner, carried) if over is not None and len(initial) == len(carried) else None
        wants = statement.target is not None
        if region is not None and over is not None and (result is not None or not wants):
            types = [flow.type for flow in initial]
            results = region.results
            if wants and result is not None:
                results = (*results, self._local(result, inner.builder))
                assert result.type.feature is not None
                types.append(Type("seq", (over.type.dims[0], result.type.feature)))
            region = Region(tuple(inner.builder.inputs), tuple(inner.builder.nodes), results)
            operation = operations.Scan(len(carried), wants)
            flows = self._node(
                frame.builder, operation, [over, *initial, *self._captures(inner)], types, statement.span, [region]
            )
        self._leave(frame, carried, None if flows is None else flows[: len(carried)])
        if statement.target is not None and self._declare(
            frame, statement.target, statement.target_span or statement.span
        ):
            frame.names[statement.target] = None if flows is None else self._named(flows[-1], statement.target)

    def _emission(self, statement: Scan, inner: Frame, chunk: Type | None) -> Flow | None:
        if inner.emitted is None:
            if statement.target is not None:
                self.report(name_mistakes.emit_missing(statement.target_span or statement.span, statement.target))
            return None
        result, span = inner.emitted
        if result is None or chunk is None:
            return None
        if result.type.name != "seq" or result.type.dims[0] != chunk.dims[0]:
            self.report(mistakes.emitted_off_axis(span, result.type, chunk))
            return None
        return result

    def _length(self, variable: str) -> str:
        count = self._lengths[variable] = self._lengths.get(variable, 0) + 1
        return f"{variable}.length" if count == 1 else f"{variable}.length_{count}"

    def _run(self, statements: Sequence[Statement], frame: Frame) -> None:
        """Runs the statements of a body; statements do."""
        raise NotImplementedError


def _head(statement: Statement) -> Span:
    """The first word of a statement: loops are long."""
    text = statement.span.text
    length = next((index for index, character in enumerate(text) if character in "{\n"), len(text))
    return Span(statement.span.source, statement.span.start, statement.span.start + len(text[:length].rstrip()))
