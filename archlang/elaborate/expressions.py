"""Expressions that flow: names, numbers, arithmetic, pipes and calls."""

from __future__ import annotations

from archlang.elaborate import mistakes
from archlang.elaborate.calls import Calls
from archlang.elaborate.frame import Flow, Frame
from archlang.graph.graph import NUMBER
from archlang.graph.operations import Arithmetic, Literal
from archlang.names import mistakes as name_mistakes
from archlang.names.values import (
    InstanceValue,
    Unknown,
    describe,
)
from archlang.source import Span
from archlang.syntax.tree import (
    Binary,
    Call,
    Conditional,
    Expression,
    Name,
    Number,
    Pipe,
    Unary,
)
from archlang.types import ISOLATED, Dim

# Ids and lists of parts.
_WITHOUT_ARITHMETIC = ("tokens", "chunks")
_OPERATIONS = {
    "+": Arithmetic.ADD,
    "-": Arithmetic.SUBTRACT,
    "*": Arithmetic.MULTIPLY,
    "/": Arithmetic.DIVIDE,
}


class Expressions(Calls):
    """Turns expressions into nodes."""

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
                return self._node(frame.builder, Arithmetic.NEGATE, [value_], [value_.type], expression.span)[0]
            case Binary(operator=operator) if operator in _OPERATIONS:
                return self._arithmetic(expression, frame)
            case Binary(operator=operator) | Unary(operator=operator):
                self.report(mistakes.bad_operator(expression.span, operator))
                return None
            case Conditional(then=then, test=test, otherwise=otherwise):
                truth = self._evaluator(frame).truth(test)
                if truth is None:
                    self._require_known(test, frame)
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
            self._require_known(name, frame)
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
        return self._node(frame.builder, Literal(value), [], [NUMBER], span)[0]

    def _data(self, value: Flow, span: Span, what: str) -> bool:
        """Whether arithmetic applies to a value."""
        if value.type.name in ISOLATED:
            self.report(mistakes.address_is_no_data(span, what, value.type))
            return False
        if value.type.name in _WITHOUT_ARITHMETIC:
            self.report(mistakes.no_arithmetic(span, what, value.type))
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
        if left.type != right.type and NUMBER not in (left.type, right.type):
            self.report(mistakes.unlike_operands(expression.span, expression.operator, left.type, right.type, sides))
            return None
        return self._node(frame.builder, _OPERATIONS[expression.operator], [left, right], [kind], expression.span)[0]
