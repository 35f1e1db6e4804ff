"""From a block or model with its statics to a typed graph, statement by statement."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from archlang.elaborate import mistakes
from archlang.elaborate.calls import Calls
from archlang.elaborate.context import Context, Observe
from archlang.elaborate.expressions import Expressions
from archlang.elaborate.frame import Frame, InstancePaths
from archlang.elaborate.loops import Loops
from archlang.elaborate.region_builder import Flow, TooLarge, named
from archlang.elaborate.static_arguments import first_missing_static
from archlang.errors import Diagnostic, Report, Span
from archlang.graph import operations
from archlang.graph.graph import ONE_NUMBER, Graph
from archlang.resolve import mistakes as name_mistakes
from archlang.resolve.resolve import Declaration
from archlang.resolve.unused import unlisted_symbols
from archlang.resolve.values import BlockValue, Bound, InstanceValue, Unknown
from archlang.syntax import tree
from archlang.syntax.tree import Definition, Name, walk
from archlang.types import Dim, Type


class Statements:
    """Elaborates the statements of bodies."""

    def __init__(self, context: Context, calls: Calls) -> None:
        self._context = context
        self._report = context.report
        self._expressions = Expressions(context, calls)
        self._loops = Loops(context, calls, self._expressions, self.run)

    def run(self, statements: Sequence[tree.Statement], frame: Frame) -> None:
        """Elaborates statements in order. Reports those after a `return`."""
        for statement in statements:
            if frame.returned is not None:
                self._report(
                    name_mistakes.unreachable(statement.span, frame.returned[1], statement.span.to(statements[-1].span))
                )
                return
            self._statement(statement, frame)

    def _statement(self, statement: tree.Statement, frame: Frame) -> None:
        match statement:
            case tree.Let():
                self._let(statement, frame)
            case tree.Assign(value=tree.CallExpression(arguments=None) as block) if self._is_let(
                block.callee, statement, frame
            ):
                # The body applies the name, so it is read as if `let` stood there: its uses get no further errors.
                self._report(mistakes.block_without_let(block.span, statement.name, statement.span))
                name, place = statement.name, statement.name_span
                self._let(tree.Let(name=name, value=block, name_span=place, span=statement.span), frame)
            case tree.Assign():
                value = self._expressions.value(statement.value, frame)
                if self._context.declare(frame, statement.name, statement.name_span, _bound_twice(statement, frame)):
                    frame.names[statement.name] = named(value, statement.name)
                self._context.observe(statement.name_span, value)
            case tree.Update():
                self._update(statement, frame)
            case tree.LossStatement():
                self._loss(statement, frame)
            case tree.Return():
                value = self._expressions.value(statement.value, frame)
                if frame.outer is not None:
                    self._report(name_mistakes.return_in_loop(statement.span))
                    frame.root.misplaced = True
                else:
                    frame.returned = (value, statement.span)
            case tree.Emit():
                value = self._expressions.value(statement.value, frame)
                if not frame.word:
                    self._report(name_mistakes.emit_outside_loop(statement.span))
                elif frame.emitted is not None:
                    self._report(name_mistakes.emit_twice(statement.span, frame.emitted[1]))
                else:
                    frame.emitted = (value, statement.value.span)
            case tree.If():
                self._if(statement, frame)
            case tree.StackStatement(index=str(index)):
                self._loops.numbered(statement, index, frame)
            case tree.RepeatStatement() | tree.StackStatement():
                self._loops.repeat(statement, frame)
            case tree.HaltingStatement():
                self._loops.halting(statement, frame)
            case tree.ScanStatement():
                self._loops.scan(statement, frame)
            case tree.ExpertsStatement():
                self._loops.experts(statement, frame)

    def _is_let(self, callee: tree.Name, statement: tree.Assign, frame: Frame) -> bool:
        declaration = None if frame.find(callee.text)[0] else frame.file.find(callee.text)
        if declaration is None or not declaration.item.signature.inputs:
            return False
        return statement.name in frame.root.applied

    def _let(self, statement: tree.Let, frame: Frame) -> None:
        is_applied = isinstance(statement.value, tree.CallExpression) and statement.value.arguments is not None
        if is_applied or (
            isinstance(statement.value, tree.Name) and isinstance(frame.find(statement.value.text)[1], Flow)
        ):
            let = Span(statement.span.source, statement.span.start, statement.name_span.end)
            is_value = statement.name not in frame.root.applied
            self._report(mistakes.let_of_value(statement.value.span, statement.name, let, not is_value))
            flow = self._expressions.value(statement.value, frame)
            if self._context.declare(frame, statement.name, statement.name_span):
                frame.names[statement.name] = named(flow, statement.name) if is_value else None
            return
        evaluator = self._context.evaluator(frame)
        value = evaluator.value(statement.value, "block")
        instance: InstanceValue | None = None
        if isinstance(value, BlockValue):
            if not self._lacks_static(value, statement, frame):
                path = frame.paths.unused(statement.name)
                instance = InstanceValue(statement.name, value, path, statement.value.span)
        elif value is not None and not isinstance(value, Unknown):
            self._report(mistakes.bad_let(statement.value.span, statement.name))
        if self._context.declare(frame, statement.name, statement.name_span):
            frame.names[statement.name] = instance

    def _lacks_static(self, block: BlockValue, let: tree.Let, frame: Frame) -> bool:
        """Reports the first static that an instance requires and that is not set."""
        callee = let.value.callee if isinstance(let.value, tree.CallExpression) else let.value
        if isinstance(callee, tree.Name) and frame.file.find(callee.text) is None:
            return False  # a static of the block around it, which only calls set
        mistake = first_missing_static(block, let.value.span)
        if mistake is not None:
            self._report(mistake)
        return mistake is not None

    def _update(self, statement: tree.Update, frame: Frame) -> None:
        value = self._expressions.value(statement.value, frame)
        name, span = statement.name, statement.name_span
        if name == frame.mixture:
            return  # reported with the loop
        if name not in frame.states:
            first = frame.binding_span(name)
            self._report(name_mistakes.update_outside_loop(span, name, first))
            is_new = first is None and name not in frame.binding.parameters
            if is_new and self._context.declare(frame, name, span):
                frame.names[name] = named(value, name)
            return
        state = frame.names.get(name)
        if isinstance(value, Flow) and isinstance(state, Flow):
            grows = name in frame.growing and _differ_in_length(value.type, state.type)
            if value.type != state.type and not grows:
                place, first, length = statement.value.span, frame.binding_span(name), frame.length_of(name)
                self._report(mistakes.state_changes_type(place, name, state.type, value.type, first, length))
                value = None
            frame.names[name] = named(value, name)
            self._context.observe(span, value)
        elif value is None:
            # Whether a growing state grows by an unknown value is unknown.
            is_kept = isinstance(state, Flow) and name not in frame.growing
            frame.names[name] = replace(state, span=span) if is_kept and isinstance(state, Flow) else None

    def _loss(self, statement: tree.LossStatement, frame: Frame) -> None:
        value = self._expressions.value(statement.value, frame)
        if value is None:
            return
        if value.type != ONE_NUMBER:
            self._report(mistakes.loss_of_several_numbers(statement.value.span, statement.name, value.type))
            return
        frame.builder.add_node(operations.Loss(statement.name), [value], [], statement.span)

    def _if(self, statement: tree.If, frame: Frame) -> None:
        truth = self._context.evaluator(frame).truth(statement.test)
        if truth is not None:
            body = statement.then if truth else statement.otherwise
            if body is not None:
                self.run(body.statements, frame)
        else:
            if not self._is_mistaken(statement.test, frame):
                self._context.require_known(statement.test, frame)
            self._both_branches(statement, frame)

    def _both_branches(self, statement: tree.If, frame: Frame) -> None:
        """Elaborates both branches, as the test is unknown."""
        before, bound, returned = dict(frame.names), dict(frame.bound), frame.returned
        self.run(statement.then.statements, frame)
        then, bound_then, returned_then = frame.names, frame.bound, frame.returned
        frame.names, frame.bound, frame.returned = before, bound, returned
        if statement.otherwise is not None:
            self.run(statement.otherwise.statements, frame)
            # A name that one branch alone binds may be unbound after the `if`.
            frame.names = {name: value for name, value in then.items() if name in frame.names}
            frame.returned = frame.returned and returned_then
        if not self._is_mistaken(statement.test, frame):
            frame.bound = {**bound_then, **frame.bound}
        else:
            # Without the mistake in the test, one of the branches would have bound the name.
            frame.names = {**dict.fromkeys(then), **before, **frame.names}
            frame.returned = frame.returned and (None, frame.returned[1])

    def _is_mistaken(self, test: tree.Expression, frame: Frame) -> bool:
        """Whether a condition could not be read, or depends on a static with a mistake."""
        bounds = [frame.lookup(node.parts[0]) for node in walk(test) if isinstance(node, tree.Name)]
        is_mistaken = any(isinstance(bound, Bound) and bound.value is None for bound in bounds)
        return isinstance(test, tree.Missing) or is_mistaken


def _differ_in_length(value: Type, state: Type) -> bool:
    return value.name == state.name == "seq" and value.feature == state.feature


def _bound_twice(statement: tree.Assign, frame: Frame) -> Callable[[Span, str, Span], Diagnostic]:
    is_outside = statement.name not in frame.bound and frame.word in ("repeat", "stack", "halting")
    return name_mistakes.bound_in_loop if is_outside else name_mistakes.bound_twice


class _Elaborator:
    """Elaborates one block or model, and the composed blocks that it calls."""

    def __init__(self, report: Report, may_be_unknown: bool, observe: Observe | None) -> None:
        self._context = Context(report, may_be_unknown, observe)
        self._statements = Statements(self._context, Calls(self._context, self._body))

    def graph(
        self,
        declaration: Declaration,
        statics: Mapping[str, Bound],
        ambient: Mapping[str, Bound],
        span: Span,
        generic: bool,
    ) -> tuple[Graph | None, Type | None, tuple[Type, ...]]:
        item = declaration.item
        assert isinstance(item, Definition)
        self._context.task_sizes |= ambient
        binding = self._context.binding(declaration, dict(statics), span, ambient, generic)
        builder = self._context.new_region()
        frame = Frame(binding, builder, InstancePaths(""))
        types = []
        binding.bind_names()
        for parameter in item.signature.inputs:
            if parameter.type.name == "data":
                binding.family = ("seq", (Dim.of("n"),))
            kind = binding.type(parameter.type)
            is_first = self._context.declare(frame, parameter.name, parameter.span, name_mistakes.declared_twice)
            # A name without a value: uses of an input whose type has a mistake get no further errors.
            frame.names[parameter.name] = None
            if kind is not None:
                types.append(kind)
                flow = builder.add_input(kind, parameter.name, parameter.span)
                frame.names[parameter.name] = flow if is_first else None
        binding.finish()
        result = self._body(declaration, frame)
        if result is None or len(types) < len(item.signature.inputs):
            return None, None, ()
        region, instances = builder.finish([result.id]), dict(self._context.instances)
        graph = Graph(item.name, region, instances, item.word)
        return graph, result.type, tuple(types)

    def _body(self, declaration: Declaration, frame: Frame) -> Flow | None:
        """Elaborates the body of a definition. Returns its result if that has the promised type, else None."""
        item = declaration.item
        assert isinstance(item, Definition)
        for mistake in unlisted_symbols(item):
            self._context.report(mistake)
        self._statements.run(item.body.statements, frame)
        if frame.returned is None:
            if not frame.misplaced:
                self._context.report(name_mistakes.no_return(item.name_span, item.name))
            return None
        result, span = frame.returned
        promised = item.signature.result
        if result is None or promised is None:
            return result
        names, sizes = _promised_names(item), result.type.dims

        def free(name: str) -> Dim:
            # The body determines a size that only the result names.
            return sizes[names.index(name)] if name in names and len(names) <= len(sizes) else Dim.of(name)

        expected_type = frame.binding.type(promised, free=free)
        if expected_type is not None and not _keeps(expected_type, result.type):
            is_model = item.word == "model"
            self._context.report(
                mistakes.wrong_result(span, item.name, expected_type, result.type, promised.span, is_model)
            )
            return None
        return result


def elaborate(
    declaration: Declaration,
    statics: Mapping[str, Bound],
    ambient: Mapping[str, Bound],
    span: Span,
    report: Report,
    generic: bool = False,
    may_be_unknown: bool = False,
    observe: Observe | None = None,
) -> tuple[Graph | None, Type | None, tuple[Type, ...]]:
    """Returns the graph of a block or model, the type of its result and those of its inputs. After an error, which is
    reported, the graph is None.

    `ambient` are the sizes that a task sets; `span` is the place to blame for a missing static. With `generic`, statics
    without a default may be missing. With `may_be_unknown`, the sizes of `ambient` may lack a value, and parts of the
    program that depend on them are checked as far as possible. `observe` is called with the places and the types of its
    values, also after errors."""
    errors: list[Diagnostic] = []

    def note(diagnostic: Diagnostic) -> None:
        if diagnostic.is_error:
            errors.append(diagnostic)
        report(diagnostic)

    elaborator = _Elaborator(note, generic or may_be_unknown, observe)
    try:
        graph, result, types = elaborator.graph(declaration, statics, ambient, span, generic)
    except TooLarge as error:
        report(error.mistake)
        return None, None, ()
    except RecursionError:
        # Calls in loops in calls: each is within its own limit of depth, but together they are too deep.
        report(name_mistakes.too_deep_together(declaration.span, declaration.name))
        return None, None, ()
    return (None if errors else graph), result, types


def _keeps(promised: Type, actual: Type) -> bool:
    """Whether a result has the promised type. The promised type of chunks need not state their length."""
    if promised.part == Dim.of(0) and actual.name == promised.name:
        return promised.dims[:-1] == actual.dims[:-1]
    return promised == actual


def _promised_names(item: Definition) -> list[str | None]:
    """The names of the sizes in the type of a definition's result, in order; None for a size that is no name."""
    result = item.signature.result
    dimensions = getattr(result, "dimensions", ())
    return [size.text if isinstance(size, Name) else None for size in dimensions]
