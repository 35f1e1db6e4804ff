"""From a block or model with its statics to a typed graph: calls bound, loops closed, instances named."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from archlang.diagnostics import Diagnostic, Label
from archlang.graph import mistakes
from archlang.graph.applied import Applied
from archlang.graph.frame import Builder, Flow, Frame, Place, moved_names
from archlang.graph.graph import Graph, Input, Instance, Node, Region
from archlang.graph.signature import Binding, settle
from archlang.names import mistakes as name_mistakes
from archlang.names.evaluate import (
    BlockValue,
    Bound,
    Evaluator,
    InstanceValue,
    Unknown,
    Value,
    describe,
)
from archlang.names.modules import Declaration, Module
from archlang.source import Span
from archlang.syntax.tree import (
    Assign,
    Binary,
    Call,
    Conditional,
    Definition,
    Emit,
    Expression,
    Extern,
    Halting,
    If,
    Let,
    Move,
    Name,
    Number,
    Pipe,
    Repeat,
    Return,
    Scan,
    Stack,
    Statement,
    StaticArgument,
    Unary,
)
from archlang.types import Axis, Dim, Type
from archlang.types.statics import StaticValue

_DEEPEST = 40
_LARGEST = 20_000
_OPERATIONS = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide"}
NUMBER = Type("number")


class Elaborator:
    """Elaborates one block or model into a graph, and collects what is wrong with it."""

    def __init__(self, report: Callable[[Diagnostic], None]) -> None:
        self._sink = report
        self._calls: list[Span] = []
        self._ids = 0
        self._lengths: dict[str, int] = {}
        self.instances: dict[str, Instance] = {}

    # The root

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
            for name in (
                *binding.sizes_by_axis(parameter, Axis.LENGTH),
                *binding.sizes_by_axis(parameter, Axis.FEATURE),
            ):
                if name not in binding.sizes and name not in binding.ambient:
                    binding.sizes[name] = Bound(Dim.of(name), parameter.span)
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
        if wanted is not None and wanted != result.type:
            self.report(mistakes.wrong_result(span, item.name, str(wanted), result.type, promised.span))
            return None
        return result

    def _free(self, name: str, sizes: Sequence[Dim], written: Sequence[str | None], frame: Frame) -> Dim:
        """A size that only the result of a block has: it is what the body makes it."""
        if name in written and len(written) == len(sizes):
            return sizes[written.index(name)]
        return Dim.of(name)

    # Small things

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
        def configure(call: Call, target: Declaration | BlockValue) -> Value:
            return self._configure(target, call.statics, binding.evaluator)

        binding = Binding(declaration, span, given, self.report, configure, ambient, generic)
        return binding

    def _configure(
        self, target: Declaration | BlockValue, statics: Sequence[StaticArgument], evaluator: Evaluator
    ) -> BlockValue:
        block = target if isinstance(target, BlockValue) else BlockValue(target)
        return BlockValue(block.declaration, settle(block.declaration, block.settled, statics, evaluator, self.report))

    def _evaluator(self, frame: Frame) -> Evaluator:
        def configure(call: Call, target: Declaration | BlockValue) -> Value:
            return self._configure(target, call.statics, self._evaluator(frame))

        def names() -> frozenset[str]:
            return frame.binding.known()

        return Evaluator(frame.lookup, names, self._module(frame), self.report, configure)

    def _module(self, frame: Frame) -> Module:
        return frame.binding.declaration.module

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
        op: str,
        inputs: Sequence[Flow],
        types: Sequence[Type],
        span: Span,
        attributes: Mapping[str, StaticValue] | None = None,
        regions: Sequence[Region] = (),
    ) -> tuple[Flow, ...]:
        """Adds a node; one flow for each of its results."""
        ids = tuple(self._local(value, builder) for value in inputs)
        node = Node(self._id(), op, ids, tuple(types), span, "", dict(attributes or {}), tuple(regions))
        builder.nodes.append(node)
        if self._ids > _LARGEST:
            raise _TooLarge(span)
        if len(types) == 1:
            return (Flow(builder, node.id, types[0], span),)
        flows = []
        for index, kind in enumerate(types):
            part = Node(self._id(), "part", (node.id,), (kind,), span, "", {"index": index})
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
        first = frame.place_of(name)
        if first is None:
            static = frame.binding.parameters.get(name)
            first = static.span if static is not None else None
        if first is not None:
            self.report(name_mistakes.bound_twice(span, name, first))
            return False
        frame.bound[name] = span
        return True

    # Statements

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

    def _named(self, value: Flow | None, name: str) -> Flow | None:
        """Gives the user's name to the node that made a value."""
        if value is not None:
            nodes = value.builder.nodes
            for index in range(len(nodes) - 1, max(len(nodes) - 8, -1), -1):
                if nodes[index].id == value.id and not nodes[index].name:
                    node = nodes[index]
                    nodes[index] = Node(
                        node.id, node.op, node.inputs, node.types, node.span, name, node.attributes, node.regions
                    )
        return value

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

    # Loops

    def _count(self, expression: Expression, word: str, frame: Frame) -> int | None:
        value = self._evaluator(frame).value(expression, "int")
        if value is None or isinstance(value, Unknown):
            return None
        if isinstance(value, Dim):
            number = value.constant
            if number is None or 0 <= number <= 10_000:
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
            if isinstance(value, Flow):
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
        captured = sorted(inner.builder.captured.items(), key=lambda pair: list(types).index(pair[1]))
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
        place = Place(f"{path}.*.") if word == "stack" else frame.place
        inner, initial = self._enter(frame, word, statement.span, states, place)
        self._run(statement.body.statements, inner)
        if not states:
            self.report(name_mistakes.loop_without_state(_head(statement), f"`{word}`"))
            return
        region = self._close(inner, tuple(states)) if len(initial) == len(states) else None
        flows = None
        if region is not None:
            attributes: dict[str, StaticValue] = {"count": 1 if count is None else count}
            if path:
                attributes["path"] = path
            flows = self._node(
                frame.builder, word, [*initial, *self._captures(inner)], [f.type for f in initial], statement.span,
                attributes, [region],
            )  # fmt: skip
        self._leave(frame, tuple(states), flows)

    def _halting(self, statement: Halting, frame: Frame) -> None:
        limit = self._count(statement.count, "repeat", frame)
        states = moved_names(statement.body)
        halted = statement.state
        if halted not in states:
            if frame.find(halted)[0]:
                self.report(name_mistakes.state_not_moved(statement.state_span, halted, "halting state"))
            else:
                self.report(name_mistakes.move_unbound(statement.state_span, halted, frame.visible()))
        inner, initial = self._enter(frame, "halting", statement.span, states, frame.place)
        if statement.mixture is not None and self._declare(
            inner, statement.mixture, statement.mixture_span or statement.span
        ):
            state = inner.names.get(halted)
            inner.names[statement.mixture] = (
                self._input(inner.builder, state.type, statement.mixture, statement.state_span)
                if isinstance(state, Flow)
                else None
            )
        self._run(statement.body.statements, inner)
        _, before = frame.find(halted)
        path = self._halting_instance(statement, before if isinstance(before, Flow) else None, frame)
        usable = len(initial) == len(states) and halted in states and path is not None
        region = self._close(inner, tuple(states)) if usable else None
        flows = None
        if region is not None and path is not None:
            attributes: dict[str, StaticValue] = {
                "limit": 1 if limit is None else limit,
                "instance": path,
                "state": tuple(states).index(halted),
                "mixture": statement.mixture is not None,
            }
            flows = self._node(
                frame.builder, "halting", [*initial, *self._captures(inner)], [f.type for f in initial], statement.span,
                attributes, [region],
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
        if isinstance(item, Definition) or not _gives_probabilities(item):
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
        carried = [name.text for name in statement.carry]
        moves = moved_names(statement.body)
        moves.pop(statement.variable, None)
        for name, span in moves.items():
            if name not in carried:
                self.report(name_mistakes.not_carried(span, name, _head(statement)))
        if self._declare(inner, statement.variable, statement.variable_span):
            inner.names[statement.variable] = (
                None
                if chunk is None
                else self._input(inner.builder, chunk, statement.variable, statement.variable_span)
            )
        initial: list[Flow] = []
        for carry in statement.carry:
            known, value = frame.find(carry.text)
            inner.names[carry.text] = None
            if not known:
                self.report(name_mistakes.unknown_value(carry.span, carry.text, frame.visible(), False))
            elif carry.text not in moves:
                self.report(name_mistakes.state_not_moved(carry.span, carry.text, "carried state"))
            if isinstance(value, Flow):
                initial.append(value)
                inner.names[carry.text] = self._input(inner.builder, value.type, carry.text, carry.span)
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
            flows = self._node(
                frame.builder, "scan", [over, *initial, *self._captures(inner)], types, statement.span,
                {"carried": len(carried), "emits": wants}, [region],
            )  # fmt: skip
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

    # Expressions

    def _value(self, expression: Expression, frame: Frame) -> Flow | None:
        """The value of an expression that flows; None after a mistake."""
        match expression:
            case Name():
                return self._name(expression, frame)
            case Number():
                return self._number(expression.value, expression.span, frame)
            case Call(callee=callee, arguments=None):
                self.report(mistakes.not_applied(expression.span, callee.text))
                return None
            case Call(callee=callee, statics=statics, arguments=arguments):
                values = [(self._value(one, frame), one.span) for one in arguments or ()]
                return self._apply(callee, statics, values, expression.span, frame)
            case Pipe(value=value, stage=stage):
                first = (self._value(value, frame), value.span)
                if isinstance(stage, Name):
                    return self._apply(stage, (), [first], stage.span, frame)
                rest = [(self._value(one, frame), one.span) for one in stage.arguments or ()]
                return self._apply(stage.callee, stage.statics, [first, *rest], stage.span, frame)
            case Unary(operator="-", operand=operand):
                value_ = self._value(operand, frame)
                if value_ is None or not self._data(value_, operand.span, "negation"):
                    return None
                return self._node(frame.builder, "negate", [value_], [value_.type], expression.span)[0]
            case Binary(operator=operator) if operator in _OPERATIONS:
                return self._arithmetic(expression, frame)
            case Binary(operator=operator) | Unary(operator=operator):
                self.report(mistakes.bad_operator(expression.span, operator))
                return None
            case Conditional(then=then, test=test, otherwise=otherwise):
                truth = self._evaluator(frame).truth(test)
                return self._value(otherwise if truth is False else then, frame)
        static = self._evaluator(frame).value(expression, None)
        if static is not None:
            self.report(mistakes.static_as_value(expression.span, describe(static)))
        return None

    def _name(self, name: Name, frame: Frame) -> Flow | None:
        known, value = frame.find(name.text)
        if isinstance(value, InstanceValue):
            self.report(mistakes.not_applied(name.span, name.text))
            return None
        if known:
            return value
        static = frame.binding.lookup(name.parts[0])
        if static is not None:
            number = self._evaluator(frame).value(name, "float")
            if number is None:
                return None
            if isinstance(number, Dim):
                size = number.constant
                return self._number(1.0 if size is None else size, name.span, frame)
            if isinstance(number, float) and not isinstance(number, bool):
                return self._number(number, name.span, frame)
            if isinstance(number, Unknown) and number.kind in ("int", "float"):
                return self._number(1.0, name.span, frame)
            self.report(mistakes.static_as_value(name.span, describe(number)))
            return None
        is_block = self._module(frame).find(name.text) is not None
        self.report(name_mistakes.unknown_value(name.span, name.text, frame.visible(), is_block))
        return None

    def _number(self, value: int | float, span: Span, frame: Frame) -> Flow:
        return self._node(frame.builder, "number", [], [NUMBER], span, {"value": value})[0]

    def _data(self, value: Flow, span: Span, what: str) -> bool:
        if value.type.name == "address":
            self.report(mistakes.address_is_no_data(span, what, value.type))
            return False
        return True

    def _arithmetic(self, expression: Binary, frame: Frame) -> Flow | None:
        left, right = self._value(expression.left, frame), self._value(expression.right, frame)
        if left is None or right is None:
            return None
        sides = (expression.left.span, expression.right.span)
        if not self._data(left, sides[0], f"`{expression.operator}`") or not self._data(
            right, sides[1], f"`{expression.operator}`"
        ):
            return None
        kind = right.type if left.type == NUMBER else left.type
        if kind.name in ("tokens", "chunks") or (left.type != right.type and NUMBER not in (left.type, right.type)):
            self.report(mistakes.unlike_operands(expression.span, expression.operator, left.type, right.type, sides))
            return None
        return self._node(frame.builder, _OPERATIONS[expression.operator], [left, right], [kind], expression.span)[0]

    # Calls

    def _callee(self, callee: Name, frame: Frame) -> BlockValue | InstanceValue | None:
        """What is applied: a block, a static that is a block, or an instance named by `let`."""
        known, value = frame.find(callee.text)
        if isinstance(value, InstanceValue):
            return value
        if known:
            if value is not None:
                self.report(name_mistakes.not_a_block(callee.span, callee.text, f"a value of type `{value.type}`"))
            return None
        static = frame.binding.lookup(callee.text) if len(callee.parts) == 1 else None
        if isinstance(static, Bound):
            if isinstance(static.value, BlockValue | InstanceValue):
                return static.value
            if static.value is not None and not isinstance(static.value, Unknown):
                self.report(name_mistakes.not_a_block(callee.span, callee.text, describe(static.value)))
            return None
        declaration = self._module(frame).find(callee.text)
        if declaration is None:
            possible = self._module(frame).names() | set(frame.visible())
            self.report(name_mistakes.unknown_block(callee.span, callee.text, possible))
            return None
        return BlockValue(declaration)

    def _settled(
        self, target: BlockValue | InstanceValue, statics: Sequence[StaticArgument], callee: Name, frame: Frame
    ) -> BlockValue:
        if isinstance(target, InstanceValue):
            if statics:
                self.report(mistakes.instance_configured(callee.span, target.name, target.span))
            return target.block
        return self._configure(target, statics, self._evaluator(frame))

    def _apply(
        self,
        callee: Name,
        statics: Sequence[StaticArgument],
        values: Sequence[tuple[Flow | None, Span]],
        span: Span,
        frame: Frame,
    ) -> Flow | None:
        target = self._callee(callee, frame)
        if target is None:
            return None
        shared = target if isinstance(target, InstanceValue) else None
        block = self._settled(target, statics, callee, frame)
        path = shared.path if shared else frame.place.path(callee.parts[-1])
        arguments = [(value, place) for value, place in values if value is not None]
        if len(arguments) != len(values):
            return None
        call = self._bind(block, arguments, span)
        if call is None:
            return None
        if isinstance(block.declaration.item, Extern):
            kind, instance = call.result(path, span)
            if kind is None or instance is None or not self._register(instance, shared):
                return None
            return self._node(frame.builder, "call", call.arguments, [kind], span, {"instance": path})[0]
        return self._inside(block.declaration, call, path, span, frame)

    def _inside(self, declaration: Declaration, call: Applied, path: str, span: Span, frame: Frame) -> Flow | None:
        """Applies a composed block: its body becomes a region of its own."""
        if len(self._calls) >= _DEEPEST:
            self.report(name_mistakes.too_deep(span, _DEEPEST))
            return None
        builder = Builder()
        inner = Frame(call.binding, builder, Place(f"{path}."))
        for parameter, value in zip(declaration.item.signature.inputs, call.arguments, strict=True):
            self._declare(inner, parameter.name, parameter.span)
            inner.names[parameter.name] = self._input(builder, value.type, parameter.name, parameter.span)
        self._calls.append(span)
        try:
            result = self._body_of(declaration, inner)
        finally:
            self._calls.pop()
        if result is None:
            return None
        region = Region(tuple(builder.inputs), tuple(builder.nodes), (result.id,))
        return self._node(
            frame.builder,
            "apply",
            call.arguments,
            [result.type],
            span,
            {"block": declaration.name, "path": path},
            [region],
        )[0]

    def _bind(self, block: BlockValue, arguments: Sequence[tuple[Flow, Span]], span: Span) -> Applied | None:
        """Binds arguments to the inputs of a block; None after a mistake."""
        declaration = block.declaration
        item = declaration.item
        inputs = item.signature.inputs
        binding = self._binding(declaration, dict(block.settled), span, {}, False)
        required = sum(1 for parameter in inputs if parameter.default is None)
        variadic = bool(inputs) and inputs[-1].variadic
        if len(arguments) < required or (len(arguments) > len(inputs) and not variadic):
            expected = _expected(required, len(inputs), variadic)
            self.report(mistakes.wrong_number_of_arguments(span, item.name, expected, len(arguments), item.name_span))
            return None
        paired: list[tuple[Flow, Span]] = list(arguments)
        while len(paired) < len(inputs):
            names = [parameter.name for parameter in inputs]
            default = inputs[len(paired)].default
            if default not in names[: len(paired)]:
                return None
            paired.append(paired[names.index(default)])
        fine = True
        for position, (value, place) in enumerate(paired):
            if position < len(arguments) or fine:
                fine &= binding.match(inputs[min(position, len(inputs) - 1)], value.type, place)
        if not fine:
            return None
        binding.finish()
        return Applied(self.report, binding, [value for value, _ in paired])

    def _register(self, instance: Instance, shared: InstanceValue | None) -> bool:
        """Notes an instance; a shared one must be used with one set of sizes."""
        known = self.instances.get(instance.path)
        if shared is not None:
            shared.features.update(instance.features)
        if known is None:
            self.instances[instance.path] = instance
            return True
        if known == instance:
            return True
        differences = [
            f"{name} is {known.features.get(name)} in one and {size} in another"
            for name, size in instance.features.items()
            if known.features.get(name) != size
        ]
        name = shared.name if shared else instance.path
        where = instance.span or known.span
        if where is not None:
            reason = "; ".join(differences) or "its statics differ"
            self.report(mistakes.shared_with_other_sizes(where, name, reason, known.span))
        return False


class _TooLarge(Exception):
    """A model that unfolds without end."""

    def __init__(self, span: Span) -> None:
        self.span = span
        super().__init__()


def elaborate(
    declaration: Declaration,
    given: Mapping[str, Bound],
    ambient: Mapping[str, Bound],
    span: Span,
    report: Callable[[Diagnostic], None],
    generic: bool = False,
) -> tuple[Graph | None, Type | None, tuple[Type, ...]]:
    """The graph of a block or model with given statics, its result's type and its inputs' types; after a mistake,
    which is reported, no graph."""
    mistaken: list[Diagnostic] = []

    def note(diagnostic: Diagnostic) -> None:
        if diagnostic.is_error:
            mistaken.append(diagnostic)
        report(diagnostic)

    elaborator = Elaborator(note)
    try:
        graph, result, types = elaborator.graph(declaration, given, ambient, span, generic)
    except _TooLarge as error:
        report(mistakes.too_large(error.span, _LARGEST))
        return None, None, ()
    return (None if mistaken else graph), result, types


def promised_names(item: Definition) -> list[str | None]:
    """The names of the sizes that a definition's result type writes, in order."""
    result = item.signature.result
    dimensions = getattr(result, "dimensions", ())
    return [size.text if isinstance(size, Name) else None for size in dimensions]


def _head(statement: Statement) -> Span:
    """The first word of a statement: loops are long."""
    text = statement.span.text
    length = next((index for index, character in enumerate(text) if character in "{\n"), len(text))
    return Span(statement.span.source, statement.span.start, statement.span.start + len(text[:length].rstrip()))


def _gives_probabilities(item: Extern) -> bool:
    result = item.signature.result
    while result is not None and not hasattr(result, "name"):
        result = result.then
    return result is not None and result.name == "prob"


def _expected(required: int, total: int, variadic: bool) -> str:
    if variadic:
        return f"{required} values or more"
    if required == total:
        return f"{total} value" if total == 1 else f"{total} values"
    return f"{required} to {total} values"
