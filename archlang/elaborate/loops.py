"""The four loops: their states, their bodies as regions, and the values of their states afterwards."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from archlang.elaborate import mistakes
from archlang.elaborate.calls import Calls, gives_probabilities
from archlang.elaborate.context import Context
from archlang.elaborate.expressions import Expressions
from archlang.elaborate.frame import Frame, InstancePaths
from archlang.elaborate.region_builder import Flow, RegionBuilder, named
from archlang.errors import Diagnostic, Span
from archlang.errors.names import meant_names
from archlang.graph import operations
from archlang.graph.graph import NUMBER
from archlang.graph.growth import Growth, own_length
from archlang.resolve import mistakes as name_mistakes
from archlang.resolve.values import Bound, InstanceValue, Unknown, describe
from archlang.syntax import tree
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
        run: Callable[[Sequence[tree.Statement], Frame], None],
    ) -> None:
        self._context = context
        self._report = context.report
        self._calls = calls
        self._expressions = expressions
        self._run = run

    def repeat(self, statement: tree.RepeatStatement | tree.StackStatement, frame: Frame) -> None:
        """Elaborates `repeat` and `stack`."""
        word, by, truncated, settled = "stack", None, None, False
        if isinstance(statement, tree.RepeatStatement):
            word, by, truncated, settled = "repeat", statement.drawn, statement.truncated, statement.settled
        count = self._steps(statement, word, frame, least=int(by is not None))
        gradient_steps = None if truncated is None else self._count(truncated, "truncated", frame)
        if truncated is not None and gradient_steps == 0:
            self._report(mistakes.no_gradient_steps(truncated.span))
        drawn = None if by is None else self._drawn(by, frame)
        states = updated_names(statement.body)
        paths, stack_path = frame.paths, ""
        if isinstance(statement, tree.StackStatement):
            stack_path = frame.paths.unused("stack")
            paths = InstancePaths(f"{stack_path}.*.")
            self._context.size.add_stack(stack_path, _head(statement), count)
        inner, initial = self._enter(frame, word, statement.span, states, paths)
        with self._context.size.inside_loop(count, _head(statement)):
            self._run(statement.body.statements, inner)
        emission = self._emission(statement, inner)
        if not states and not any(frame.binding_span(name) is not None for name in _bound_names(statement.body)):
            self._report(name_mistakes.loop_without_state(_head(statement), f"`{word}`"))
            # A name of the body that is read after the loop is meant to be a state.
            frame.names.update(dict.fromkeys(_bound_names(statement.body) - set(frame.names)))
        # One step stands in for an unknown count, so that the body is checked.
        steps, emits = 1 if count is None else count, statement.target is not None
        operation: operations.Loop = operations.Repeat(
            steps, gradient_steps, emits, drawn or "", settled and gradient_steps != 0
        )
        if stack_path:
            operation = operations.Stack(steps, stack_path, emits)
        values = _states_and_emission(inner, states, emission, emits)
        flows = None
        if states and len(initial) == len(states) and values is not None:
            types = [flow.type for flow in initial] + [value.type for value in values[len(states) :]]
            flows = self._add(operation, initial, types, statement, inner, values)
        self._leave(statement, frame, states, flows)

    def numbered(self, statement: tree.StackStatement, index: str, frame: Frame) -> None:
        """Elaborates `stack k as i`, whose steps can differ: each on its own, in the region around it."""
        count, place = self._steps(statement, "stack", frame), statement.index_span or statement.span
        if (size := frame.binding.sizes.get(index)) is not None:
            self._report(name_mistakes.bound_twice(place, index, size.span or frame.binding.call))
        states, path = updated_names(statement.body), frame.paths.unused("stack")
        values, emission = self._initial(frame, "stack", states), None
        for step in range(1 if count is None else count):
            paths = InstancePaths(f"{path}.{step}.")
            inner = Frame(frame.binding, frame.builder, paths, frame, "stack", statement.span)
            inner.names.update({name: values.get(name) for name in states})
            inner.states, before = frozenset(states), self._context.reported
            if self._context.declare(inner, index, place) and size is None:
                inner.statics = {index: Bound(Unknown("int") if count is None else Dim.of(step), place)}
            self._run(statement.body.statements, inner)
            emission = self._emission(statement, inner)
            values = {name: flow for name in states if isinstance(flow := inner.names.get(name), Flow)}
            if self._context.reported > before:
                break  # the other steps have the same mistakes
        flows = [*values.values(), *([] if emission is None else [emission])]
        is_whole = len(flows) == len(states) + (statement.target is not None)
        self._leave(statement, frame, states, flows if is_whole else None)

    def _drawn(self, by: tree.Name | tree.CallExpression, frame: Frame) -> str | None:
        return self._instance(
            by, [], frame, mistakes.draws_no_number,
            may_be=lambda item: not item.signature.inputs, is_result=lambda kind: kind == ONE_NUMBER,
        )  # fmt: skip

    def _instance(
        self,
        by: tree.Name | tree.CallExpression,
        arguments: Sequence[tuple[Flow | None, Span]],
        frame: Frame,
        mistake: Callable[[Span, str], Diagnostic],
        may_be: Callable[[tree.Extern], bool],
        is_result: Callable[[Type], bool],
    ) -> str | None:
        """Returns the path of the instance of an extern block that a loop applies by itself, such as the one that it
        halts by; None after a mistake. `mistake` is that of another block."""
        callee, statics = (by.callee, by.statics) if isinstance(by, tree.CallExpression) else (by, ())
        target = self._calls.target(callee, frame)
        if target is None:
            return None
        shared = target if isinstance(target, InstanceValue) else None
        block = self._calls.settled(target, statics, callee, frame)
        item = block.declaration.item
        if not isinstance(item, tree.Extern) or not may_be(item):
            self._report(mistake(by.span, item.name))
            return None
        # A missing value has been reported where it is computed.
        inputs = [(value, place) for value, place in arguments if value is not None]
        if len(inputs) < len(arguments):
            return None
        path = shared.path if shared else frame.paths.unused(callee.parts[-1])
        call = self._calls.bind(block, inputs, by.span)
        result = None if call is None else call.result(path, by.span)
        if result is None:
            return None
        kind, instance = result
        if not is_result(kind):
            self._report(mistake(by.span, item.name))
            return None
        return path if self._calls.register(instance, shared) else None

    def _steps(
        self,
        statement: tree.RepeatStatement | tree.StackStatement | tree.HaltingStatement,
        word: str,
        frame: Frame,
        least: int = 0,
    ) -> int | None:
        count = self._count(statement.count, word, frame, least)
        if statement.target is not None and count == 0:
            self._report(mistakes.nothing_emitted(statement.count.span, statement.target, word))
            return 1
        return count

    def _count(self, expression: tree.Expression, word: str, frame: Frame, least: int = 0) -> int | None:
        value = self._context.evaluator(frame).value(expression, "int")
        number = value.constant if isinstance(value, Dim) else None
        if value is not None and (isinstance(value, Unknown) or (isinstance(value, Dim) and number is None)):
            self._context.require_known(expression, frame)
        elif value is not None and (number is None or not least <= number <= MOST_STEPS_OF_A_LOOP):
            self._report(name_mistakes.bad_count(expression.span, word, describe(value), least))
            return None
        return number

    def halting(self, statement: tree.HaltingStatement, frame: Frame) -> None:
        """Elaborates `repeat … halting`."""
        limit = self._steps(statement, "repeat", frame)
        if statement.truncated is not None:
            self._report(mistakes.truncated_halting(statement.truncated.span))
        states = updated_names(statement.body)
        halted, mixture = statement.state, statement.mixture
        mixture_span = statement.mixture_span or statement.span
        if mixture in states:
            self._report(name_mistakes.update_of_mixture(states.pop(mixture), mixture, halted, mixture_span))
        if halted not in states and halted not in _bound_names(statement.body):
            if frame.find(halted)[0]:
                self._report(name_mistakes.state_not_updated(statement.state_span, halted, "halting state"))
            else:
                self._report(name_mistakes.update_of_unbound(statement.state_span, halted, frame.visible()))
        inner, initial = self._enter(frame, "halting", statement.span, states, frame.paths)
        before = frame.find(halted)[1]
        self._context.observe(statement.state_span, before)
        inner.mixture = mixture
        if mixture is not None:
            state = inner.names.get(halted)
            self._add_input(inner, mixture, mixture_span, state.type if isinstance(state, Flow) else None)
        with self._context.size.inside_loop(limit, _head(statement)):
            self._run(statement.body.statements, inner)
        emission, emits = self._emission(statement, inner), statement.target is not None
        # A state keeps its type, so the value before the loop shows what the block reads.
        state = before if isinstance(before, Flow) and halted in states else None
        path = self._instance(
            statement.by, [(state, statement.state_span)], frame, mistakes.not_halting,
            may_be=gives_probabilities, is_result=lambda kind: kind.name in ("prob", "probs"),
        )  # fmt: skip
        values = _states_and_emission(inner, states, emission, emits)
        flows = None
        if len(initial) == len(states) and halted in states and path is not None and values is not None:
            steps, index = 1 if limit is None else limit, tuple(states).index(halted)
            operation = operations.Halting(steps, path, index, mixture is not None, emits)
            types = [flow.type for flow in initial] + [value.type for value in values[len(states) :]]
            flows = self._add(operation, initial, types, statement, inner, values)
        self._leave(statement, frame, states, flows)

    def scan(self, statement: tree.ScanStatement, frame: Frame) -> None:
        """Elaborates `scan`."""
        sources = self._scanned(statement, frame)
        parts = next(iter(sources.values()), None)
        if len(sources) > 1:
            parts = self._calls.apply_library("joins", {}, [*sources.values()], frame)
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
        variables = [(each.variable, each.variable_span) for each in statement.scanned]
        bound = {name for name, _ in variables} | ({statement.before} if statement.before else set())
        for variable in bound:
            updates.pop(variable, None)
        for state, span in tuple(updates.items()):
            if state not in carried:
                missing = [name for name in carried if name not in updates]
                self._report(name_mistakes.not_carried(span, state, _head(statement), missing))
                updates |= dict.fromkeys(meant_names(state, missing), span)
        self._add_parts(inner, variables, sources, part)
        before = self._before(statement, None if statement.others else part, inner)
        # A state that the body binds, as in `m = m + c`, is reported there.
        updates |= {name: span for name, span in carried.items() if name in _bound_names(statement.body)}
        initial = self._carry(carried, statement.growing, updates, frame, inner)
        inner.states = frozenset(carried) | bound | frozenset(updates)
        self._run(statement.body.statements, inner)
        gradient_steps = None
        if statement.truncated is not None:
            gradient_steps = self._count(statement.truncated, "truncated", frame, least=1)
        emits = statement.target is not None
        values = _states_and_emission(inner, carried, self._emission(statement, inner, part), emits)
        flows: tuple[Flow, ...] | None = None
        if parts is not None and len(initial) == len(carried) and values is not None:
            chunk = part.lengths[0] if part is not None and part.lengths else None
            length = parts.type.dims[0]
            types = self._grown(dict(zip(carried, initial, strict=True)), updates, length, chunk, inner)
            types += [Type("seq", (length, value.type.dims[-1])) for value in values[len(carried) :]]
            operation = operations.Scan(len(carried), emits, gradient_steps, before)
            flows = self._add(operation, [parts, *initial], types, statement, inner, values)
        is_kept = flows is None or self._keep_types(carried, flows, frame)
        self._leave(statement, frame, carried, flows, is_kept)

    def _scanned(self, statement: tree.ScanStatement, frame: Frame) -> dict[str, Flow]:
        """Returns what a scan takes and its body names, by the names of the parts; nothing after a mistake."""
        sources: list[Flow] = []
        for scanned in statement.scanned:
            value = self._expressions.value(scanned.over, frame)
            if value is None:
                continue
            if value.type.name != "seq" and (value.type.name != "chunks" or statement.others):
                mistake = mistakes.not_scanned_together if statement.others else mistakes.not_scanned
                self._report(mistake(scanned.over.span, value.type))
            elif sources and sources[0].type.lengths != value.type.lengths:
                first = statement.over.span
                self._report(mistakes.scanned_apart(scanned.over.span, value.type, sources[0].type, first))
            else:
                sources.append(replace(value, span=scanned.over.span))
        if statement.others and statement.before is not None:
            self._report(mistakes.others_after(statement.others[0].span, statement.before))
        if len(sources) < len(statement.scanned):
            return {}
        by_name = dict(zip((scanned.variable for scanned in statement.scanned), sources, strict=True))
        named = {node.parts[0] for node in tree.walk(statement.body) if isinstance(node, tree.Name)}
        named |= updated_names(statement.body).keys()
        # The first gives the length, if nothing is named.
        return {name: value for name, value in by_name.items() if name in named} or {statement.variable: sources[0]}

    def _add_parts(
        self, inner: Frame, variables: Sequence[tuple[str, Span]], sources: Mapping[str, Flow], part: Type | None
    ) -> None:
        """Binds the names of the parts. Those of several sequences are features of the body's input, side by side."""
        features = None if part is None else inner.builder.add_input(part, "_".join(sources), variables[0][1])
        start = Dim.of(0)
        for name, span in variables:
            if not self._context.declare(inner, name, span):
                continue
            value = None if name not in sources or features is None else replace(features, span=span)
            if value is not None and len(sources) > 1:
                statics = {"start": start, "width": sources[name].type.dims[-1]}
                value = self._calls.apply_library("slices", statics, [value], inner)
                start += statics["width"]
            inner.names[name] = value
            self._context.observe(span, value)

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
        states that do not grow by the same number of positions in each step, or in one step as those of one length."""
        types = []
        first: dict[Dim, tuple[str, Flow]] = {}  # of the states of a length
        for name, before in initial.items():
            kind, last = before.type, inner.names[name]
            if name in inner.growing and name in updates and isinstance(last, Flow):
                length = inner.growing[name]
                growth = Growth.of(length, last.type.lengths[0], chunk)
                first_name, grown = first.setdefault(length, (name, last))
                if growth is None or growth.each.names & self._lengths(inner):
                    state = Type("seq", (length, *kind.dims[1:]))
                    self._report(mistakes.no_growth(last.span, name, state, last.type, state == last.type))
                elif grown.type.lengths != last.type.lengths:
                    self._report(mistakes.grown_apart(last.span, name, last.type, first_name, grown.type))
                else:
                    kind = Type("seq", (kind.lengths[0] + growth.total(scanned, chunk), *kind.dims[1:]))
            types.append(kind)
        return types

    def _lengths(self, frame: Frame) -> set[str]:
        binding = frame.binding
        values = [binding.sizes[name].value for name in binding.lengths if name in binding.sizes]
        return {name for value in values if isinstance(value, Dim) for name in value.names}

    def _before(self, statement: tree.ScanStatement, part: Type | None, inner: Frame) -> int | None:
        """Binds the name of the positions before a part, if the statement has one. Returns how many they are at most, 0
        for all; None if it has none."""
        if statement.before is None:
            return None
        reach: int | None = 0
        if statement.reach is not None:
            reach = self._count(statement.reach, "after", inner, least=1)
        kind = None if part is None else Type("seq", (self._own_length(statement.before), part.dims[-1]))
        self._add_input(inner, statement.before, statement.before_span or statement.span, kind)
        return 1 if reach is None else reach

    def _own_length(self, name: str) -> Dim:
        """Returns the length of a scan's chunk, of what is before it or of a growing state; no other scan has it."""
        lengths = self._context.own_lengths
        count = lengths[name] = lengths.get(name, 0) + 1
        return own_length(name, count)

    def _carry(
        self,
        carried: Mapping[str, Span],
        together: Sequence[Sequence[str]],
        updates: Mapping[str, Span],
        frame: Frame,
        inner: Frame,
    ) -> list[Flow]:
        """Makes each carried name an input of the body, and returns the values before the scan."""
        initial: list[Flow] = []
        lengths: dict[str, Dim] = {}
        growing = {name: names[0] for names in together for name in names}
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
                if (one := growing.get(name)) is not None:
                    # In the body, a growing state has a length of its own, shared by those that grow together.
                    first = frame.find(one)[1]
                    begins_alike = not isinstance(first, Flow) or first.type.lengths == kind.lengths
                    lengths[name] = lengths[one] if begins_alike and one in lengths else self._own_length(name)
                    if isinstance(first, Flow) and not begins_alike:
                        self._report(mistakes.grown_apart(span, name, kind, one, first.type))
                    kind = Type("seq", (lengths[name], *kind.dims[1:]))
                inner.names[name] = inner.builder.add_input(kind, name, span)
        inner.growing = lengths
        return initial

    def experts(self, statement: tree.ExpertsStatement, frame: Frame) -> None:
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
        self._add_input(inner, statement.variable, statement.variable_span, part)
        updates = updated_names(statement.body)
        updates.pop(statement.variable, None)
        for name, span in updates.items():
            self._report(name_mistakes.updated_in_experts(span, name, _head(statement)))
        inner.states = frozenset(updates) | {statement.variable}
        with self._context.size.inside_loop(count, _head(statement)):
            self._run(statement.body.statements, inner)
        result = self._emission(statement, inner, part)
        flows = None
        if result is not None and values is not None and weights is not None and not updates:
            kind = Type(values.type.name, (*values.type.dims[:-1], *result.type.dims))
            operation = operations.Experts(1 if count is None else count, path)
            flows = self._add(operation, [values, weights], [kind], statement, inner, [result])
            for node in inner.builder.finish(()).walk():
                if isinstance(node.operation, operations.Loss | operations.Halting):
                    place = node.span or statement.span
                    self._report(mistakes.cost_in_experts(place, node.operation.mnemonic, _head(statement)))
        self._leave(statement, frame, (), flows)

    # Every loop

    def _loop_frame(self, frame: Frame, word: str, span: Span, paths: InstancePaths) -> Frame:
        return Frame(frame.binding, RegionBuilder(self._context.size, frame.builder), paths, frame, word, span)

    def _add_input(self, inner: Frame, name: str, span: Span, kind: Type | None) -> None:
        """Binds a name in a body to an input of its region; to an unknown value if `kind` is None."""
        if self._context.declare(inner, name, span):
            inner.names[name] = None if kind is None else inner.builder.add_input(kind, name, span)
            self._context.observe(span, inner.names[name])

    def _enter(
        self, frame: Frame, word: str, span: Span, states: Mapping[str, Span], paths: InstancePaths
    ) -> tuple[Frame, list[Flow]]:
        """Returns a loop's frame, in which each state is an input of the body, and the states' values before the
        loop."""
        inner = self._loop_frame(frame, word, span, paths)
        initial = self._initial(frame, word, states)
        inner.names.update(dict.fromkeys(states))
        for name, value in initial.items():
            inner.names[name] = inner.builder.add_input(value.type, name, value.span)
        inner.states = frozenset(states)
        return inner, list(initial.values())

    def _initial(self, frame: Frame, word: str, states: Mapping[str, Span]) -> dict[str, Flow]:
        """Returns the values of the states before a loop; reports those that are none."""
        initial: dict[str, Flow] = {}
        for name, update in states.items():
            is_bound, value = frame.find(name)
            if isinstance(value, Flow) and not _may_be_state(value, word):
                self._report(mistakes.no_state(update, name, value.type, word))
            elif isinstance(value, Flow):
                initial[name] = value
            elif value is not None or not is_bound:
                self._report(name_mistakes.update_of_unbound(update, name, () if is_bound else frame.visible()))
        return initial

    def _emission(self, statement: tree.Loop, inner: Frame, part: Type | None = None) -> Flow | None:
        """Returns what a step of a loop emits; None if that is nothing, and after a mistake."""
        if inner.emitted is None:
            if statement.target is not None:
                place, states = statement.target_span or statement.span, updated_names(statement.body)
                self._report(name_mistakes.emit_missing(place, statement.target, states))
            return None
        result, span = inner.emitted
        if result is None:
            return None
        if isinstance(statement, tree.ScanStatement | tree.ExpertsStatement):
            # The emissions of all parts are put together, so each has the positions of its part.
            if part is not None and (result.type.name != part.name or result.type.lengths != part.lengths):
                self._report(mistakes.emitted_off_axis(span, result.type, part))
                return None
            return None if part is None else result
        counts = [name for length in result.type.lengths for name in length.names if ".count" in name]
        if result.type.name in ("chunks", "number"):
            self._report(mistakes.emitted_no_tensor(span, result.type))
        elif counts:
            self._report(mistakes.emitted_length_unknown(span, result.type, counts[0]))
        else:
            return result
        return None

    def _add(
        self,
        operation: operations.Loop,
        inputs: Sequence[Flow],
        types: Sequence[Type],
        statement: tree.Loop,
        inner: Frame,
        results: Sequence[Flow],
    ) -> tuple[Flow, ...]:
        """Adds the node of a loop around the region of its body, which ends with `results`; returns its results."""
        region = inner.builder.finish([inner.builder.local_id(value) for value in results])
        builder = inner.builder.parent
        assert builder is not None
        captured = inner.builder.captured_flows(statement.span)
        return builder.add_node(operation, [*inputs, *captured], types, statement.span, [region])

    def _leave(
        self,
        statement: tree.Loop,
        frame: Frame,
        states: Iterable[str],
        flows: Sequence[Flow] | None,
        is_kept: bool = True,
    ) -> None:
        """Gives each state its last value, and the name of the loop what it emits. `flows` is None after a mistake in
        the body; the states are unknown unless `is_kept`."""
        for index, name in enumerate(states):
            is_bound, before = frame.find(name)
            if flows is not None and is_kept:
                frame.names[name] = named(flows[index], name)
            elif is_bound and isinstance(before, Flow):
                # The state keeps its type, so that the rest is checked; how a growing state has grown is unknown, and
                # a number may stand for zeros of another type.
                keeps_type = name not in frame.growing and before.type != NUMBER
                frame.names[name] = before if keeps_type else None
        if statement.target is not None:
            span = statement.target_span or statement.span
            if self._context.declare(frame, statement.target, span):
                frame.names[statement.target] = None if flows is None else named(flows[-1], statement.target)
                self._context.observe(span, frame.names[statement.target])


def _states_and_emission(inner: Frame, states: Iterable[str], emission: Flow | None, emits: bool) -> list[Flow] | None:
    values = [*(inner.names.get(name) for name in states), *([emission] if emits else ())]
    flows = [value for value in values if isinstance(value, Flow)]
    return flows if len(flows) == len(values) else None


def _weighs(weights: Type, values: Type) -> bool:
    """Whether weights are one vector for each position of the values."""
    return (weights.name, weights.dims[:-1]) == (values.name, values.dims[:-1])


def _may_be_state(value: Flow, word: str) -> bool:
    """Whether a loop can update a value. Where samples or chunks are updated one by one, the value must be a tensor."""
    return value.type.name != "chunks" and (value.type != NUMBER or word in ("repeat", "stack"))


def _head(statement: tree.Statement) -> Span:
    """The first line of a statement, up to its `{`: loops are long."""
    text = statement.span.text
    length = next((index for index, character in enumerate(text) if character in "{\n"), len(text))
    return Span(statement.span.source, statement.span.start, statement.span.start + len(text[:length].rstrip()))


def _bound_names(body: tree.Body) -> set[str]:
    return {each.name for each in body.statements if isinstance(each, tree.Assign)}


def updated_names(body: tree.Body) -> dict[str, Span]:
    """Returns the names that a loop's body updates and does not bind, each with its first `<-`."""
    updated: dict[str, Span] = {}
    bound: set[str] = set()

    def visit(statements: Sequence[tree.Statement]) -> None:
        for statement in statements:
            match statement:
                case tree.Update(name=name, name_span=span):
                    updated.setdefault(name, span)
                case tree.Assign(name=name) | tree.Let(name=name):
                    bound.add(name)
                case tree.If(then=then, otherwise=otherwise):
                    visit(then.statements)
                    visit(() if otherwise is None else otherwise.statements)
                case _ if isinstance(statement, tree.Loop):
                    bound.update(filter(None, [statement.target]))
                    own = {getattr(statement, name, None) for name in ("variable", "before")}
                    for name, span in updated_names(statement.body).items():
                        if name not in own:
                            updated.setdefault(name, span)

    visit(body.statements)
    return {name: span for name, span in updated.items() if name not in bound}
