"""Expressions that flow: names, numbers, arithmetic, pipes and calls."""

from collections.abc import Sequence

from archlang.elaborate import mistakes
from archlang.elaborate.calls import Calls
from archlang.elaborate.context import Context
from archlang.elaborate.frame import Frame
from archlang.elaborate.gradients import gradient, is_gradient
from archlang.elaborate.region_builder import Flow
from archlang.errors import Span
from archlang.errors.effort import spend
from archlang.graph.graph import NUMBER
from archlang.graph.operations import Arithmetic, Literal
from archlang.resolve import mistakes as name_mistakes
from archlang.resolve.values import InstanceValue, Unknown, describe
from archlang.syntax import tree
from archlang.types import ISOLATED, Dim

# Ids and lists of parts.
_WITHOUT_ARITHMETIC = ("tokens", "chunks")
_OPERATIONS = {"+": Arithmetic.ADD, "-": Arithmetic.SUBTRACT, "*": Arithmetic.MULTIPLY, "/": Arithmetic.DIVIDE}


class Expressions:
    """Turns expressions into nodes."""

    def __init__(self, context: Context, calls: Calls) -> None:
        self._context = context
        self._report = context.report
        self._calls = calls

    def value(self, expression: tree.Expression, frame: Frame) -> Flow | None:
        """Returns the value of an expression that flows; None after a mistake."""
        spend()
        value = self._value(expression, frame)
        self._context.observe(expression.span, value)
        return value

    def _value(self, expression: tree.Expression, frame: Frame) -> Flow | None:
        match expression:
            case tree.Name():
                return self._name(expression, frame)
            case tree.Number():
                return self._number(expression.value, expression.span, frame)
            case tree.Missing():
                return None
            case tree.CallExpression(callee=callee, arguments=None):
                is_bound, bound = frame.find(callee.text)
                before = self._context.reported
                if is_bound and not isinstance(bound, InstanceValue):
                    self._report(mistakes.value_with_brackets(expression.span, callee.text))
                elif not is_bound:
                    self._context.evaluator(frame).value(expression, "block")
                if self._context.reported == before:
                    place = Span(expression.span.source, expression.span.end, expression.span.end)
                    end = None if _takes_inputs(callee, frame) else place
                    self._report(mistakes.not_applied(expression.span, callee.text, end))
                return None
            case tree.CallExpression(callee=callee, statics=statics, arguments=arguments):
                values = [(self.value(argument, frame), argument.span) for argument in arguments or ()]
                return self._applied(callee, statics, values, expression.span, frame)
            case tree.Pipe(value=value, stage=stage):
                first = (self.value(value, frame), value.span)
                call = tree.as_call(stage)
                rest = [(self.value(argument, frame), argument.span) for argument in call.arguments or ()]
                result = self._applied(call.callee, call.statics, [first, *rest], stage.span, frame)
                self._context.observe(stage.span, result)
                return result
            case tree.Unary(operator="-", operand=operand):
                negated = self.value(operand, frame)
                if negated is None or not self._may_be_operand(negated, operand.span, "negation"):
                    return None
                return frame.builder.add_node(Arithmetic.NEGATE, [negated], [negated.type], expression.span)[0]
            case tree.Binary(operator=operator) if operator in _OPERATIONS:
                return self._arithmetic(expression, frame)
            case tree.Binary(operator=operator) | tree.Unary(operator=operator):
                self._report(mistakes.bad_operator(expression.span, operator))
                return None
            case tree.Conditional(then=then, test=test, otherwise=otherwise):
                truth = self._context.evaluator(frame).truth(test)
                if truth is None:
                    self._context.require_known(test, frame)
                return self.value(otherwise if truth is False else then, frame)
        if isinstance(expression, tree.ListOf):
            self._report(mistakes.list_as_value(expression.span))
            return None
        static = self._context.evaluator(frame).value(expression, None)
        if static is not None:
            self._report(mistakes.static_as_value(expression.span, describe(static)))
        return None

    def _applied(
        self,
        callee: tree.Name,
        statics: Sequence[tree.StaticArgument],
        values: Sequence[tuple[Flow | None, Span]],
        span: Span,
        frame: Frame,
    ) -> Flow | None:
        if is_gradient(callee, frame):
            return gradient(statics, values, span, self._report)
        return self._calls.apply(callee, statics, values, span, frame)

    def _name(self, name: tree.Name, frame: Frame) -> Flow | None:
        is_bound, value = frame.find(name.text)
        if isinstance(value, InstanceValue):
            self._report(mistakes.not_applied(name.span, name.text, None))
            return None
        if is_bound:
            return value
        static = frame.lookup(name.parts[0])
        if static is not None:
            number = self._context.evaluator(frame).value(name, "float")
            if number is None:
                return None
            self._context.require_known(name, frame)
            if isinstance(number, Dim):
                size = number.constant
                return self._number(1.0 if size is None else size, name.span, frame)
            if isinstance(number, float) and not isinstance(number, bool):
                return self._number(number, name.span, frame)
            if isinstance(number, Unknown) and number.kind in ("int", "float"):
                return self._number(1.0, name.span, frame)
            self._report(mistakes.static_as_value(name.span, describe(number)))
            return None
        is_block = frame.file.find(name.text) is not None
        self._report(name_mistakes.unknown_value(name.span, name.text, frame.visible(), is_block))
        return None

    def _number(self, value: int | float, span: Span, frame: Frame) -> Flow:
        return frame.builder.add_node(Literal(value), [], [NUMBER], span)[0]

    def _may_be_operand(self, value: Flow, span: Span, what: str) -> bool:
        if value.type.name in ISOLATED:
            self._report(mistakes.address_is_no_data(span, what, value.type))
            return False
        if value.type.name in _WITHOUT_ARITHMETIC:
            self._report(mistakes.no_arithmetic(span, what, value.type))
            return False
        return True

    def _arithmetic(self, expression: tree.Binary, frame: Frame) -> Flow | None:
        left, right = self.value(expression.left, frame), self.value(expression.right, frame)
        if left is None or right is None:
            return None
        sides = (expression.left.span, expression.right.span)
        if not self._may_be_operand(left, sides[0], f"`{expression.operator}`") or not self._may_be_operand(
            right, sides[1], f"`{expression.operator}`"
        ):
            return None
        kind = left.type.broadcast(right.type)
        if kind is None:
            self._report(mistakes.unlike_operands(expression.span, expression.operator, left.type, right.type, sides))
            return None
        return frame.builder.add_node(_OPERATIONS[expression.operator], [left, right], [kind], expression.span)[0]


def _takes_inputs(callee: tree.Name, frame: Frame) -> bool:
    declaration = frame.file.find(callee.text)
    return declaration is None or bool(declaration.item.signature.inputs)
