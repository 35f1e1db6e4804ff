"""The four loops: their states, their bodies as regions, and the values of their states afterwards."""

from collections.abc import Callable, Collection, Mapping, Sequence

from archlang.diagnostics.names import meant_names
from archlang.elaborate import mistakes
from archlang.elaborate.calls import Calls, gives_probabilities
from archlang.elaborate.context import Context
from archlang.elaborate.expressions import Expressions
from archlang.elaborate.frame import Frame, InstancePaths
from archlang.elaborate.region_builder import Flow, RegionBuilder, named
from archlang.graph import operations
from archlang.graph.graph import NUMBER, Region
from archlang.graph.growth import Growth, own_length
from archlang.names import mistakes as name_mistakes
from archlang.names.values import InstanceValue, Unknown, describe
from archlang.source import Span
from archlang.syntax.tree import (
    Assign,
    Body,
    Call,
    Definition,
    Experts,
    Expression,
    Halting,
    If,
    Let,
    Name,
    Repeat,
    Scan,
    Stack,
    Statement,
    Unclear,
    Update,
)
from archlang.types import Dim, Type

MOST_STEPS_OF_A_LOOP = 10_000
# The result of a block that draws the number of steps of a loop.
ONE_NUMBER = Type("seq", (Dim.of(1), Dim.of(1)))


class Loops:
    """Turns loops into nodes with a region. `run` elaborates the statements of a body in a frame."""

    def __init__(
        self,
        context: Context,
        calls: Calls,
        expressions: Expressions,
        run: Callable[[Sequence[Statement], Frame], None],
    ) -> None:
        self._context = context
        self._report = context.report
        self._calls = calls
        self._expressions = expressions
        self._run = run

    # repeat and stack

    def repeat(self, statement: Repeat | Stack, frame: Frame) -> None:
        """Elaborates `repeat` and `stack`."""
        word = "repeat" if isinstance(statement, Repeat) else "stack"
        emits = statement.target is not None
        draws = isinstance(statement, Repeat) and statement.drawn is not None
        count = self._count(statement.count, word, frame, least=int(draws))
        if emits and count == 0:
            self._report(mistakes.nothing_emitted(statement.count.span, statement.target or "", word))
        truncated = statement.truncated if isinstance(statement, Repeat) else None
        gradient_steps = None if truncated is None else self._count(truncated, "truncated", frame)
        if truncated is not None and gradient_steps == 0:
            self._report(mistakes.no_gradient_steps(truncated.span))
        drawn = self._drawn(statement.drawn, frame) if isinstance(statement, Repeat) and statement.drawn else ""
        states = updated_names(statement.body)
        paths, stack_path = frame.paths, ""
        if isinstance(statement, Stack):
            stack_path = frame.paths.unused("stack")
            paths = InstancePaths(f"{stack_path}.*.")
            self._context.size.add_stack(stack_path, _head(statement), count)
        inner, initial = self._enter(frame, word, statement.span, states, paths)
        with self._context.size.inside_loop(count, _head(statement)):
            self._run(statement.body.statements, inner)
        emission = self._emission(statement, inner)
        if not states and not _binds_again(statement.body, frame):
            self._report(name_mistakes.loop_without_state(_head(statement), f"`{word}`"))
            # A name of the body that is read after the loop is meant to be a state.
            frame.names.update(dict.fromkeys(_bound_names(statement.body) - set(frame.names)))
        region = self._close(inner, tuple(states)) if states and len(initial) == len(states) else None
        flows = None
        if region is not None and (emission is not None or not emits):
            steps = int(emits) if not count and emits else 1 if count is None else count
            types = [flow.type for flow in initial]
            if emission is not None:
                region = inner.builder.finish((*region.results, inner.builder.local_id(emission)))
                types.append(emission.type)
            operation: operations.Loop = operations.Repeat(steps, gradient_steps, emits, drawn)
            if stack_path:
                operation = operations.Stack(steps, stack_path, emits)
            flows = self._add(operation, initial, types, statement.span, inner, region)
        self._leave(frame, tuple(states), flows)
        self._bind_target(statement, frame, flows)

    def _bind_target(
        self, statement: Repeat | Stack | Halting | Scan, frame: Frame, flows: Sequence[Flow] | None
    ) -> None:
        """Binds the name of what a loop emits, if it has one. `flows` is None after a mistake in the loop."""
        if statement.target is not None and self._context.declare(
            frame, statement.target, statement.target_span or statement.span
        ):
            frame.names[statement.target] = None if flows is None else named(flows[-1], statement.target)
            self._context.observe(statement.target_span or statement.span, frame.names[statement.target])

    def _drawn(self, by: Name | Call, frame: Frame) -> str:
        """Returns the path of the instance that draws the number of steps of a loop; "" after a mistake."""
        callee = by.callee if isinstance(by, Call) else by
        target = self._calls.target(callee, frame)
        if target is None:
            return ""
        shared = target if isinstance(target, InstanceValue) else None
        block = self._calls.settled(target, by.statics if isinstance(by, Call) else (), callee, frame)
        item = block.declaration.item
        if isinstance(item, Definition) or item.signature.inputs:
            self._report(mistakes.draws_no_number(by.span, item.name))
            return ""
        path = shared.path if shared else frame.paths.unused(callee.parts[-1])
        call = self._calls.bind(block, [], by.span)
        kind, instance = (None, None) if call is None else call.result(path, by.span)
        if kind is None or instance is None:
            return ""
        if kind != ONE_NUMBER:
            self._report(mistakes.draws_no_number(by.span, item.name))
            return ""
        return path if self._calls.register(instance, shared) else ""

    def _count(self, expression: Expression, word: str, frame: Frame, least: int = 0) -> int | None:
        value = self._context.evaluator(frame).value(expression, "int")
        if isinstance(value, Unknown):
            self._context.require_known(expression, frame)
        if value is None or isinstance(value, Unknown):
            return None
        if isinstance(value, Dim):
            number = value.constant
            if number is None:
                self._context.require_known(expression, frame)
            if number is None or least <= number <= MOST_STEPS_OF_A_LOOP:
                return number
        self._report(name_mistakes.bad_count(expression.span, word, describe(value), least))
        return None

    # repeat halting

    def halting(self, statement: Halting, frame: Frame) -> None:
        """Elaborates `repeat … halting`."""
        limit = self._count(statement.count, "repeat", frame)
        emits = statement.target is not None
        if emits and limit == 0:
            self._report(mistakes.nothing_emitted(statement.count.span, statement.target or "", "repeat"))
        if statement.truncated is not None:
            self._report(mistakes.truncated_halting(statement.truncated.span))
        states = updated_names(statement.body)
        halted, mixture = statement.state, statement.mixture
        if mixture in states:
            bound = statement.mixture_span or statement.span
            self._report(name_mistakes.update_of_mixture(states.pop(mixture), mixture, halted, bound))
        if halted not in states and halted not in _bound_names(statement.body):
            if frame.find(halted)[0]:
                self._report(name_mistakes.state_not_updated(statement.state_span, halted, "halting state", states))
            else:
                self._report(name_mistakes.update_of_unbound(statement.state_span, halted, frame.visible()))
        inner, initial = self._enter(frame, "halting", statement.span, states, frame.paths)
        self._context.observe(statement.state_span, frame.find(halted)[1])
        self._declare_mixture(statement, inner)
        with self._context.size.inside_loop(limit, _head(statement)):
            self._run(statement.body.statements, inner)
        emission = self._emission(statement, inner)
        _, before = frame.find(halted)
        state = before if isinstance(before, Flow) and halted in states else None
        path = self._halting_instance(statement, state, frame)
        usable = len(initial) == len(states) and halted in states and path is not None
        region = self._close(inner, tuple(states)) if usable else None
        flows = None
        if region is not None and path is not None and (emission is not None or not emits):
            types = [flow.type for flow in initial]
            if emission is not None:
                region = inner.builder.finish((*region.results, inner.builder.local_id(emission)))
                types.append(emission.type)
            operation = operations.Halting(
                limit or int(emits or limit is None), path, tuple(states).index(halted), mixture is not None, emits
            )
            flows = self._add(operation, initial, types, statement.span, inner, region)
        self._leave(frame, tuple(states), flows)
        self._bind_target(statement, frame, flows)

    def _declare_mixture(self, statement: Halting, inner: Frame) -> None:
        """Binds the name of the mixture in the body, if the statement has one."""
        inner.mixture = statement.mixture
        if statement.mixture is None:
            return
        if self._context.declare(inner, statement.mixture, statement.mixture_span or statement.span):
            state = inner.names.get(statement.state)
            inner.names[statement.mixture] = (
                inner.builder.add_input(state.type, statement.mixture, statement.state_span)
                if isinstance(state, Flow)
                else None
            )
            self._context.observe(statement.mixture_span or statement.span, inner.names[statement.mixture])

    def _halting_instance(self, statement: Halting, state: Flow | None, frame: Frame) -> str | None:
        """Returns the path of the instance that a loop halts by: its result must be halting probabilities of the
        state. Returns None after a mistake."""
        callee = statement.by.callee if isinstance(statement.by, Call) else statement.by
        target = self._calls.target(callee, frame)
        if target is None:
            return None
        statics = statement.by.statics if isinstance(statement.by, Call) else ()
        shared = target if isinstance(target, InstanceValue) else None
        block = self._calls.settled(target, statics, callee, frame)
        item = block.declaration.item
        if isinstance(item, Definition) or not gives_probabilities(item):
            self._report(mistakes.not_halting(statement.by.span, item.name))
            return None
        if state is None:
            return None
        path = shared.path if shared else frame.paths.unused(callee.parts[-1])
        call = self._calls.bind(block, [(state, statement.state_span)], statement.by.span)
        if call is None:
            return None
        kind, instance = call.result(path, statement.by.span)
        if kind is None or instance is None:
            return None
        if kind.name not in ("prob", "probs"):
            self._report(mistakes.not_halting(statement.by.span, item.name))
            return None
        return path if self._calls.register(instance, shared) else None

    # scan

    def scan(self, statement: Scan, frame: Frame) -> None:
        """Elaborates `scan`."""
        parts = self._expressions.value(statement.over, frame)
        if parts is not None and parts.type.name not in ("chunks", "seq"):
            self._report(mistakes.not_scanned(statement.over.span, parts.type))
            parts = None
        inner = self._loop_frame(frame, "scan", statement.span, frame.paths)
        part: Type | None = None
        if parts is not None:
            part = Type("vec", parts.type.dims[1:2])
            if parts.type.name == "chunks":
                part = Type("seq", (self._own_length(statement.variable), *part.dims))
        carried: dict[str, Span] = {}
        for name in statement.carry:
            if carried.setdefault(name.text, name.span) is not name.span:
                self._report(name_mistakes.carried_twice(name.span, name.text, carried[name.text]))
        updates = updated_names(statement.body)
        bound = {statement.variable} if statement.before is None else {statement.variable, statement.before}
        for variable in bound:
            updates.pop(variable, None)
        for state, span in tuple(updates.items()):
            if state not in carried:
                missing = [name for name in carried if name not in updates]
                self._report(name_mistakes.not_carried(span, state, _head(statement), missing))
                updates |= dict.fromkeys(meant_names(state, missing), span)
        if self._context.declare(inner, statement.variable, statement.variable_span):
            inner.names[statement.variable] = (
                None if part is None else inner.builder.add_input(part, statement.variable, statement.variable_span)
            )
            self._context.observe(statement.variable_span, inner.names[statement.variable])
        before = self._before(statement, part, inner)
        # A state that the body binds, as in `m = m + c`, is reported there.
        updates |= {name: span for name, span in carried.items() if name in _bound_names(statement.body)}
        initial = self._carry(carried, statement.growing, updates, frame, inner)
        inner.states = frozenset(carried) | bound | frozenset(updates)
        self._run(statement.body.statements, inner)
        gradient_steps = None
        if statement.truncated is not None:
            gradient_steps = self._count(statement.truncated, "truncated", frame, least=1)
        result = self._emission(statement, inner, part)
        flows: tuple[Flow, ...] | None = None
        region = self._close(inner, tuple(carried)) if parts is not None and len(initial) == len(carried) else None
        emits = statement.target is not None
        if region is not None and parts is not None and (result is not None or not emits):
            chunk = part.lengths[0] if part is not None and part.lengths else None
            types = self._grown(dict(zip(carried, initial, strict=True)), updates, parts.type.dims[0], chunk, inner)
            results = region.results
            if emits and result is not None:
                results = (*results, inner.builder.local_id(result))
                assert result.type.feature is not None
                types.append(Type("seq", (parts.type.dims[0], result.type.feature)))
            region = inner.builder.finish(results)
            operation = operations.Scan(len(carried), emits, gradient_steps, before)
            flows = self._add(operation, [parts, *initial], types, statement.span, inner, region)
        is_kept = flows is None or self._keep_types(carried, flows, frame)
        self._leave(frame, tuple(carried), flows[: len(carried)] if flows is not None and is_kept else None)
        self._bind_target(statement, frame, flows)

    def _keep_types(self, carried: Mapping[str, Span], flows: Sequence[Flow], frame: Frame) -> bool:
        """Returns whether the states of the loop around a scan still have their types after it, which a state that has
        grown in the scan has not; reports those that have not."""
        changed = [
            (span, state, flow)
            for (name, span), flow in zip(carried.items(), flows, strict=False)
            if name in frame.states and name not in frame.growing
            if isinstance(state := frame.find(name)[1], Flow) and state.type != flow.type
        ]
        for span, state, flow in changed:
            first = frame.binding_span(span.text)
            self._report(mistakes.grown_in_loop(span, span.text, state.type, flow.type, first, frame.word))
            frame.forget(span.text)
        return not changed

    def _grown(
        self, initial: Mapping[str, Flow], updates: Collection[str], scanned: Dim, chunk: Dim | None, inner: Frame
    ) -> list[Type]:
        """Returns the types of the carried states after a scan, which had `initial` values before. Reports growing
        states that do not grow by the same number of positions in each step."""
        types = []
        for name, before in initial.items():
            kind, last = before.type, inner.names[name]
            if name in inner.growing and name in updates and isinstance(last, Flow):
                length = inner.growing[name]
                growth = Growth.of(length, last.type.lengths[0], chunk)
                if growth is None or growth.each.names & self._lengths(inner):
                    state = Type("seq", (length, *kind.dims[1:]))
                    self._report(mistakes.no_growth(last.span, name, state, last.type))
                else:
                    kind = Type("seq", (kind.lengths[0] + growth.total(scanned, chunk), *kind.dims[1:]))
            types.append(kind)
        return types

    def _lengths(self, frame: Frame) -> set[str]:
        """The names of the lengths of a definition's inputs."""
        binding = frame.binding
        values = [binding.sizes[name].value for name in binding.lengths if name in binding.sizes]
        return {name for value in values if isinstance(value, Dim) for name in value.names}

    def _before(self, statement: Scan, part: Type | None, inner: Frame) -> int | None:
        """Binds the name of the positions before a part, if the statement has one. Returns how many they are at most, 0
        for all; None if it has none."""
        if statement.before is None:
            return None
        reach: int | None = 0
        if statement.reach is not None:
            reach = self._count(statement.reach, "after", inner, least=1)
        span = statement.before_span or statement.span
        if self._context.declare(inner, statement.before, span):
            inner.names[statement.before] = None
            if part is not None:
                kind = Type("seq", (self._own_length(statement.before), part.dims[-1]))
                inner.names[statement.before] = inner.builder.add_input(kind, statement.before, span)
                self._context.observe(span, inner.names[statement.before])
        return 1 if reach is None else reach

    def _own_length(self, name: str) -> Dim:
        """Returns the length of a scan's chunk, of what is before it or of a growing state; no other scan has it."""
        lengths = self._context.own_lengths
        count = lengths[name] = lengths.get(name, 0) + 1
        return own_length(name, count)

    def _carry(
        self,
        carried: Mapping[str, Span],
        growing: Collection[str],
        updates: Mapping[str, Span],
        frame: Frame,
        inner: Frame,
    ) -> list[Flow]:
        """Makes each carried name an input of the body, and returns the values before the scan. A growing state has a
        length of its own in the body."""
        initial: list[Flow] = []
        lengths: dict[str, Dim] = {}
        for name, span in carried.items():
            is_bound, value = frame.find(name)
            inner.names[name] = None
            self._context.observe(span, value)
            if not is_bound:
                self._report(name_mistakes.unknown_value(span, name, frame.visible(), False))
            elif name not in updates:
                self._report(name_mistakes.state_not_updated(span, name, "carried state"))
            if isinstance(value, Flow) and not _may_be_state(value, "scan"):
                self._report(mistakes.no_state(span, name, value.type, "scan"))
            elif isinstance(value, Flow) and name in growing and value.type.name != "seq":
                self._report(mistakes.growing_no_sequence(span, name, value.type))
            elif isinstance(value, Flow):
                initial.append(value)
                kind = value.type
                if name in growing:
                    lengths[name] = self._own_length(name)
                    kind = Type("seq", (lengths[name], *kind.dims[1:]))
                inner.names[name] = inner.builder.add_input(kind, name, span)
        inner.growing = lengths
        return initial

    # experts

    def experts(self, statement: Experts, frame: Frame) -> None:
        """Elaborates `experts`."""
        values, weights = self._expressions.value(statement.over, frame), self._expressions.value(statement.by, frame)
        if values is not None and values.type.name not in ("seq", "vec"):
            self._report(mistakes.no_values_of_experts(statement.over.span, values.type))
            values = None
        if values is not None and weights is not None and not _weighs(weights.type, values.type):
            self._report(mistakes.no_weights_of_experts(statement.by.span, weights.type, values.type))
            weights = None
        path = frame.paths.unused("experts")
        width = None if weights is None else weights.type.feature
        count = None if width is None else width.constant
        self._context.size.add_stack(path, _head(statement), count)
        inner = self._loop_frame(frame, "experts", statement.span, InstancePaths(f"{path}.*."))
        part = None if values is None else Type("vec", values.type.dims[-1:])
        if self._context.declare(inner, statement.variable, statement.variable_span):
            inner.names[statement.variable] = (
                None if part is None else inner.builder.add_input(part, statement.variable, statement.variable_span)
            )
            self._context.observe(statement.variable_span, inner.names[statement.variable])
        updates = updated_names(statement.body)
        updates.pop(statement.variable, None)
        for name, span in updates.items():
            self._report(name_mistakes.updated_in_experts(span, name, _head(statement)))
        inner.states = frozenset(updates) | {statement.variable}
        with self._context.size.inside_loop(count, _head(statement)):
            self._run(statement.body.statements, inner)
        result = self._emission(statement, inner, part)
        flow: Flow | None = None
        if result is not None and values is not None and weights is not None and not updates:
            region = inner.builder.finish([inner.builder.local_id(result)])
            for node in region.walk():
                if isinstance(node.operation, operations.Loss | operations.Halting):
                    place = node.span or statement.span
                    self._report(mistakes.cost_in_experts(place, node.operation.mnemonic, _head(statement)))
            kind = Type(values.type.name, (*values.type.dims[:-1], *result.type.dims))
            operation = operations.Experts(1 if count is None else count, path)
            (flow,) = self._add(operation, [values, weights], [kind], statement.span, inner, region)
        if self._context.declare(frame, statement.target, statement.target_span):
            frame.names[statement.target] = named(flow, statement.target)
            self._context.observe(statement.target_span, flow)

    def _emission(
        self, statement: Repeat | Stack | Halting | Scan | Experts, inner: Frame, part: Type | None = None
    ) -> Flow | None:
        """Returns what a step of a loop emits; None if that is nothing, and after a mistake. What a scan emits has the
        positions of a part."""
        if inner.emitted is None:
            if statement.target is not None:
                place, states = statement.target_span or statement.span, updated_names(statement.body)
                self._report(name_mistakes.emit_missing(place, statement.target, states))
            return None
        result, span = inner.emitted
        if isinstance(statement, Repeat | Stack | Halting):
            if result is not None and result.type.name in ("chunks", "number"):
                self._report(mistakes.emitted_no_tensor(span, result.type))
                return None
            counts = (
                [name for length in result.type.lengths for name in length.names if ".count" in name] if result else []
            )
            if result is not None and counts:
                self._report(mistakes.emitted_length_unknown(span, result.type, counts[0]))
                return None
            return result if statement.target is not None else None
        if result is None or part is None:
            return None
        if result.type.name != part.name or result.type.lengths != part.lengths:
            self._report(mistakes.emitted_off_axis(span, result.type, part))
            return None
        return result

    # Every loop

    def _loop_frame(self, frame: Frame, word: str, span: Span, paths: InstancePaths) -> Frame:
        return Frame(frame.binding, RegionBuilder(self._context.size, frame.builder), paths, frame, word, span)

    def _enter(
        self, frame: Frame, word: str, span: Span, states: Mapping[str, Span], paths: InstancePaths
    ) -> tuple[Frame, list[Flow]]:
        """Returns a loop's frame, in which each state is an input of the body, and the states' values before the
        loop."""
        inner = self._loop_frame(frame, word, span, paths)
        initial: dict[str, Flow] = {}
        for name, update in states.items():
            is_bound, value = frame.find(name)
            if isinstance(value, Flow) and not _may_be_state(value, word):
                self._report(mistakes.no_state(update, name, value.type, word))
            elif isinstance(value, Flow):
                initial[name] = value
            elif is_bound and value is not None:
                self._report(name_mistakes.update_of_unbound(update, name, ()))
            elif not is_bound:
                self._report(name_mistakes.update_of_unbound(update, name, frame.visible()))
            inner.names[name] = None
        for name, value in initial.items():
            inner.names[name] = inner.builder.add_input(value.type, name, value.span)
        inner.states = frozenset(states)
        return inner, list(initial.values())

    def _close(self, inner: Frame, states: Sequence[str]) -> Region | None:
        """Returns the region of a loop's body, whose results are the states; None after a mistake in it."""
        ids = []
        for name in states:
            value = inner.names.get(name)
            if not isinstance(value, Flow):
                return None
            ids.append(inner.builder.local_id(value))
        return inner.builder.finish(ids)

    def _add(
        self,
        operation: operations.Loop,
        inputs: Sequence[Flow],
        types: Sequence[Type],
        span: Span,
        inner: Frame,
        region: Region,
    ) -> tuple[Flow, ...]:
        """Adds the node of a loop around the region of its body, and returns its results."""
        builder = inner.builder.parent
        assert builder is not None
        captured = inner.builder.captured_flows(inner.span or inner.binding.call)
        return builder.add_node(operation, [*inputs, *captured], types, span, [region])

    def _leave(self, frame: Frame, states: Sequence[str], flows: Sequence[Flow] | None) -> None:
        """Gives each state its last value. `flows` is None after a mistake in the body."""
        for index, name in enumerate(states):
            is_bound, before = frame.find(name)
            if flows is not None:
                frame.names[name] = named(flows[index], name)
            elif is_bound and isinstance(before, Flow):
                # The state keeps its type, so that the rest is checked; how a growing state has grown is unknown, and
                # a number may stand for zeros of another type.
                is_kept = name not in frame.growing and before.type != NUMBER
                frame.names[name] = before if is_kept else None


def _weighs(weights: Type, values: Type) -> bool:
    """Whether weights are one vector for each position of the values."""
    return (weights.name, weights.dims[:-1]) == (values.name, values.dims[:-1])


def _may_be_state(value: Flow, word: str) -> bool:
    """Whether a loop can update a value. Where samples or chunks are updated one by one, the value must be a tensor."""
    return value.type.name != "chunks" and (value.type != NUMBER or word in ("repeat", "stack"))


def _head(statement: Statement) -> Span:
    """The first line of a statement, up to its `{`: loops are long."""
    text = statement.span.text
    length = next((index for index, character in enumerate(text) if character in "{\n"), len(text))
    return Span(statement.span.source, statement.span.start, statement.span.start + len(text[:length].rstrip()))


def _binds_again(body: Body, outer: Frame) -> bool:
    """Whether a body binds a name that is bound outside it, which is reported there."""
    return any(outer.binding_span(name) is not None for name in _bound_names(body))


def _bound_names(body: Body) -> set[str]:
    """The names that the statements of a body bind with `=`."""
    return {each.name for each in body.statements if isinstance(each, Assign)}


def updated_names(body: Body) -> dict[str, Span]:
    """Returns the names that a loop's body updates and does not bind, each with its first `<-`."""
    updated: dict[str, Span] = {}
    bound: set[str] = set()

    def visit(statements: Sequence[Statement]) -> None:
        for statement in statements:
            match statement:
                case Update(name=name, name_span=span):
                    updated.setdefault(name, span)
                case Assign(name=name) | Let(name=name):
                    bound.add(name)
                case If(then=then, otherwise=otherwise):
                    visit(then.statements)
                    if otherwise is not None:
                        visit(otherwise.statements)
                case (
                    Repeat(target=target, body=inner)
                    | Stack(target=target, body=inner)
                    | Halting(target=target, body=inner)
                ):
                    if target:
                        bound.add(target)
                    add(updated_names(inner))
                case Unclear(body=inner):
                    visit(inner.statements)
                case (
                    Scan(target=target, variable=variable, body=inner)
                    | Experts(target=target, variable=variable, body=inner)
                ):
                    if target:
                        bound.add(target)
                    updated_inside = updated_names(inner)
                    updated_inside.pop(variable, None)
                    if isinstance(statement, Scan) and statement.before is not None:
                        updated_inside.pop(statement.before, None)
                    add(updated_inside)

    def add(names: dict[str, Span]) -> None:
        for name, span in names.items():
            updated.setdefault(name, span)

    visit(body.statements)
    return {name: span for name, span in updated.items() if name not in bound}
