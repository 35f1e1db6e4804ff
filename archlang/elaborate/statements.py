"""Statements: names bound and updated, results returned and emitted, and branches chosen."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from archlang.elaborate import mistakes
from archlang.elaborate.calls import Calls
from archlang.elaborate.context import Context
from archlang.elaborate.expressions import Expressions
from archlang.elaborate.frame import Frame
from archlang.elaborate.loops import Loops
from archlang.elaborate.region_builder import Flow, named
from archlang.elaborate.static_arguments import first_missing_static
from archlang.errors import Diagnostic
from archlang.errors.source import Span
from archlang.graph import operations
from archlang.graph.graph import ONE_NUMBER
from archlang.resolve import mistakes as name_mistakes
from archlang.resolve.values import BlockValue, Bound, InstanceValue, Unknown
from archlang.syntax import tree
from archlang.syntax.walk import walk
from archlang.types import Type


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
            if frame.returned is not None and not isinstance(statement, tree.Missing):
                self._report(
                    name_mistakes.unreachable(statement.span, frame.returned[1], statement.span.to(statements[-1].span))
                )
                return
            self._statement(statement, frame)

    def _statement(self, statement: tree.Statement, frame: Frame) -> None:
        match statement:
            case tree.Let():
                self._let(statement, frame)
            case tree.Assign(value=tree.Call(arguments=None) as block) if self._is_let(block.callee, statement, frame):
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
            case tree.Loss():
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
            case tree.Repeat() | tree.Stack():
                self._loops.repeat(statement, frame)
            case tree.Halting():
                self._loops.halting(statement, frame)
            case tree.Scan():
                self._loops.scan(statement, frame)
            case tree.Experts():
                self._loops.experts(statement, frame)
            case tree.Missing():
                self._context.is_whole = False
            case tree.Unclear(body=body):
                self._context.is_whole = False
                self.run(body.statements, frame)

    def _is_let(self, callee: tree.Name, statement: tree.Assign, frame: Frame) -> bool:
        """Returns whether a statement binds a name, which the body then applies, to a block that takes inputs."""
        declaration = None if frame.find(callee.text)[0] else frame.file.find(callee.text)
        if declaration is None or not declaration.item.signature.inputs:
            return False
        return statement.name in frame.root.applied

    def _let(self, statement: tree.Let, frame: Frame) -> None:
        is_applied = isinstance(statement.value, tree.Call) and statement.value.arguments is not None
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
        """Reports the first static that an instance requires and that is not set. What a static of the block around
        is, only its calls know."""
        callee = let.value.callee if isinstance(let.value, tree.Call) else let.value
        if isinstance(callee, tree.Name) and frame.file.find(callee.text) is None:
            return False
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
                place, first = statement.value.span, frame.binding_span(name)
                in_scan = frame.word == "scan"
                grows_outside = frame.outer is not None and frame.outer.is_growing(name)
                self._report(
                    mistakes.state_changes_type(place, name, state.type, value.type, first, in_scan, grows_outside)
                )
                value = None
            frame.names[name] = named(value, name)
            self._context.observe(span, value)
        elif value is None:
            # Whether a growing state grows by an unknown value is unknown.
            is_kept = isinstance(state, Flow) and name not in frame.growing
            frame.names[name] = replace(state, span=span) if is_kept and isinstance(state, Flow) else None

    def _loss(self, statement: tree.Loss, frame: Frame) -> None:
        value = self._expressions.value(statement.value, frame)
        if value is None:
            return
        if value.type != ONE_NUMBER:
            self._report(mistakes.loss_of_several_numbers(statement.value.span, statement.name, value.type))
            return
        frame.builder.add_node(operations.Loss(statement.name), [value], [], statement.span)

    def _if(self, statement: tree.If, frame: Frame) -> None:
        truth = self._context.evaluator(frame).truth(statement.test)
        if self._context.takes_every_branch or (truth is None and self._is_mistaken(statement.test, frame)):
            # Nothing is known of the test, so other branches may bind the names that they use.
            self._context.doubt(frame)
            self._both(statement, frame)
        elif truth is not None:
            body = statement.then if truth else statement.otherwise
            if body is not None:
                self.run(body.statements, frame)
        else:
            self._context.require_known(statement.test, frame)
            self._both(statement, frame)

    def _both(self, statement: tree.If, frame: Frame) -> None:
        """Elaborates both branches, as the test is unknown. The names that both bind stay bound; all names, if the test
        has a mistake."""
        before, bound, returned = dict(frame.names), dict(frame.bound), frame.returned
        self.run(statement.then.statements, frame)
        then, bound_then, returned_then = frame.names, frame.bound, frame.returned
        frame.names, frame.bound, frame.returned = before, bound, returned
        if statement.otherwise is not None:
            self.run(statement.otherwise.statements, frame)
            frame.names = {name: value for name, value in then.items() if name in frame.names}
            frame.returned = frame.returned and returned_then
        if not (self._context.takes_every_branch or self._is_mistaken(statement.test, frame)):
            frame.bound = {**bound_then, **frame.bound}
        else:
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
