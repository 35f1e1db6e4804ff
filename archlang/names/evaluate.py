"""Evaluates static expressions."""

from collections.abc import Callable
from dataclasses import dataclass

from archlang.diagnostics import Report
from archlang.diagnostics.effort import spend
from archlang.names import mistakes, static_mistakes
from archlang.names.resolve import Declaration, ResolvedFile
from archlang.names.values import (
    BlockValue,
    Bound,
    Data,
    InstanceValue,
    Length,
    Unknown,
    Value,
    as_float,
    describe,
    equal,
    may_be_symbol,
)
from archlang.syntax import tree
from archlang.types import Dim
from archlang.types.statics import Interval, Symbol

_LARGEST = 2**53

Lookup = Callable[[str], Bound | Data | Length | None]


@dataclass
class Evaluator:
    """Evaluates static expressions.

    `lookup` resolves the names in scope, which `names` lists, and `file` resolves blocks. `configure` turns
    `attention[heads = 4]` into a block with some statics set. `report` receives mistakes; a value with a mistake is
    None. With `every_branch`, mistakes in the part of `a when c else b` that is not chosen are reported too."""

    lookup: Lookup
    names: Callable[[], frozenset[str]]
    file: ResolvedFile
    report: Report
    configure: Callable[[tree.Call, Declaration | BlockValue], Value]
    every_branch: bool = False

    def value(self, expression: tree.Expression, kind: str | None) -> Value:
        """Returns the value of an expression in the place of a static of `kind` (None: of any kind)."""
        spend()
        match expression:
            case tree.Number(value=number):
                return self._number(number, expression)
            case tree.Boolean(value=truth):
                return truth
            case tree.String(value=text):
                return text
            case tree.Name():
                return self._name(expression, kind)
            case tree.ListOf(items=items):
                return tuple(self.value(item, None) for item in items)
            case tree.Range(low=low, high=high):
                return self._range(expression, self.value(low, "int"), self.value(high, "int"))
            case tree.Unary(operator="-", operand=operand):
                return self._negative(self.value(operand, kind), expression)
            case tree.Unary(operand=operand):
                holds = self.truth(operand)
                return Unknown("bool") if holds is None else not holds
            case tree.Binary(operator="-", left=tree.Number(), right=tree.Number()) if kind == "range":
                self.report(static_mistakes.range_with_minus(expression.span))
                return None
            case tree.Binary():
                return self._binary(expression)
            case tree.Conditional(then=then, test=test, otherwise=otherwise):
                holds = self.truth(test)
                if holds is None:
                    return Unknown(kind or "int")
                chosen, other = (then, otherwise) if holds else (otherwise, then)
                if self.every_branch:
                    self.value(other, kind)
                return self.value(chosen, kind)
            case tree.Call(callee=callee, arguments=None) if kind == "path":
                self.report(static_mistakes.path_with_brackets(expression.span, callee.text))
                return None
            case tree.Call(callee=callee, arguments=None):
                return self._configured(expression, callee)
            case tree.Missing():
                return None
        self.report(static_mistakes.computed_at_run_time(expression.span, kind))
        return None

    def truth(self, expression: tree.Expression) -> bool | None:
        """Returns whether a condition holds, or None if that is unknown or a mistake was reported."""
        value = self.value(expression, "bool")
        if isinstance(value, bool) or value is None or isinstance(value, Unknown):
            return value if isinstance(value, bool) else None
        self.report(static_mistakes.wrong_kind(expression.span, "a condition", "bool", describe(value), None))
        return None

    def _number(self, number: int | float, node: tree.Node) -> Value:
        if isinstance(number, float):
            return number
        if abs(number) > _LARGEST:
            self.report(static_mistakes.not_evaluable(node.span, "this number is too large", "use a number below 2^53"))
            return None
        return Dim.of(number)

    def _name(self, name: tree.Name, kind: str | None) -> Value:
        if kind == "path":
            return Symbol(name.text)
        binding = self.lookup(name.parts[0])
        if kind == "file":
            if len(name.parts) == 1 and isinstance(binding, Bound) and isinstance(binding.value, str | Unknown | None):
                return binding.value
            return Symbol(name.text)  # `coerce` reports an unquoted path to a file
        if kind == "symbol" and not (isinstance(binding, Bound) and may_be_symbol(binding.value)):
            return Symbol(name.text)
        if isinstance(binding, Data):
            self.report(static_mistakes.data_in_static(name.span, name.text, binding.span))
            return None
        if isinstance(binding, Length):
            self.report(static_mistakes.length_in_static(name.span, name.text, binding.span))
            return None
        if binding is not None:
            if len(name.parts) == 1:
                return binding.value
            return self._attribute(name, binding)
        declaration = self.file.find(name.text)
        if declaration is not None:
            return BlockValue(declaration)
        if kind is None:
            return Symbol(name.text)
        if kind == "block":
            self.report(mistakes.unknown_block(name.span, name.text, self.file.names()))
        else:
            self.report(static_mistakes.unknown_static_name(name.span, name.text, self.names(), kind))
        return None

    def _attribute(self, name: tree.Name, bound: Bound) -> Value:
        """Returns an attribute of an instance: a feature size, as in `table.vocab`, or a static, as in `table.d`."""
        owner = bound.value
        if isinstance(owner, Unknown) or owner is None:
            return Unknown("int") if owner else None
        if isinstance(owner, InstanceValue) and len(name.parts) == 2:
            settled = owner.block.settled.get(name.parts[1])
            if settled is not None:
                return settled.value
            size = owner.features.get(name.parts[1])
            if size is not None:
                return size
            if not owner.features:
                self.report(
                    static_mistakes.not_evaluable(
                        bound.span or name.span,
                        f"the sizes of `{owner.name}` are unknown before its first call",
                        f"apply `{owner.name}` to a value first",
                    )
                )
                return None
            self.report(static_mistakes.unknown_static_name(name.span, name.text, owner.features))
            return None
        self.report(static_mistakes.unknown_static_name(name.span, name.text, self.names()))
        return None

    def _configured(self, call: tree.Call, callee: tree.Name) -> Value:
        binding = self.lookup(callee.text)
        if isinstance(binding, Bound):
            if isinstance(binding.value, BlockValue):
                return self.configure(call, binding.value)
            if isinstance(binding.value, Unknown) or binding.value is None:
                return binding.value
            self.report(mistakes.not_a_block(callee.span, callee.text, describe(binding.value)))
            return None
        declaration = self.file.find(callee.text)
        if declaration is None:
            is_of_value = len(callee.parts) > 1 and isinstance(self.lookup(callee.parts[0]), Data)
            if is_of_value:
                self.report(mistakes.size_of_value(callee.span, callee.text))
            else:
                self.report(mistakes.unknown_block(callee.span, callee.text, self.file.names()))
            return None
        return self.configure(call, declaration)

    def _range(self, node: tree.Range, low: Value, high: Value) -> Value:
        if isinstance(low, Dim) and isinstance(high, Dim):
            first, last = low.constant, high.constant
            if first is None or last is None:
                return Unknown("range")
            if first > last:
                self.report(
                    static_mistakes.not_evaluable(
                        node.span,
                        f"the range `{first}..{last}` is empty",
                        f"write the lower end first: `{last}..{first}`",
                    )
                )
                return None
            return Interval(first, last)
        if low is None or high is None:
            return None
        if isinstance(low, Unknown) or isinstance(high, Unknown):
            return Unknown("range")
        bad, end = (low, node.low) if not isinstance(low, Dim) else (high, node.high)
        self.report(static_mistakes.wrong_kind(end.span, "a range", "int", describe(bad), None))
        return None

    def _negative(self, value: Value, node: tree.Node) -> Value:
        if isinstance(value, Dim):
            return -value
        if isinstance(value, float):
            return -value
        if isinstance(value, Unknown) or value is None:
            return value
        self.report(
            static_mistakes.not_evaluable(node.span, f"`-` takes a number, not {describe(value)}", "write a number")
        )
        return None

    def _binary(self, node: tree.Binary) -> Value:
        operator = node.operator
        if operator in ("and", "or"):
            sides = (self.truth(node.left), self.truth(node.right))
            decided = operator == "or"
            if decided in sides:
                return decided
            return Unknown("bool") if None in sides else not decided
        if operator in ("==", "!=", "in"):
            return self._compare_any(node)
        left, right = self.value(node.left, "float"), self.value(node.right, "float")
        if left is None or right is None:
            return None
        if isinstance(left, Unknown) or isinstance(right, Unknown):
            return Unknown("bool" if operator in ("<", "<=", ">", ">=") else "float")
        if isinstance(left, Dim) and isinstance(right, Dim):
            return self._whole(node, left, right)
        first, second = as_float(left), as_float(right)
        if first is None or second is None:
            bad = node.left if as_float(left) is None else node.right
            value = left if as_float(left) is None else right
            if isinstance(value, Dim):
                return Unknown("float")
            self.report(
                static_mistakes.not_evaluable(
                    bad.span, f"`{operator}` takes numbers, not {describe(value)}", "write a number"
                )
            )
            return None
        return self._real(node, first, second)

    def _whole(self, node: tree.Binary, left: Dim, right: Dim) -> Value:
        result: Value = None
        a, b = left.constant, right.constant
        match node.operator:
            case "+":
                result = left + right
            case "-":
                result = left - right
            case "*":
                spend(len(left.terms) * len(right.terms))
                result = left * right
            case "/" | "%" if b == 0:
                self.report(static_mistakes.divides_by_zero(node.span))
            case "/" | "%" if a is None or b is None:
                return Unknown("int")
            case "%" if a is not None and b is not None:
                result = Dim.of(a % b)
            case "/" if a is not None and b is not None:
                result = Dim.of(a // b) if a % b == 0 else a / b
            case _:
                difference = (left - right).constant
                if difference is None:
                    return Unknown("bool")
                return _order(node.operator, difference)
        if isinstance(result, Dim) and result.is_unwieldy:
            if result.constant is not None:
                self.report(
                    static_mistakes.not_evaluable(node.span, "this number is too large", "use a number below 2^53")
                )
            else:
                self.report(static_mistakes.size_too_large(node.span))
            return None
        return result

    def _real(self, node: tree.Binary, left: float, right: float) -> Value:
        match node.operator:
            case "+":
                return left + right
            case "-":
                return left - right
            case "*":
                return left * right
            case "/" | "%" if right == 0:
                self.report(static_mistakes.divides_by_zero(node.span))
                return None
            case "/":
                return left / right
            case "%":
                return left % right
        return _order(node.operator, left - right)

    def _compare_any(self, node: tree.Binary) -> Value:
        kind = "symbol" if self._is_symbol(node.left) or self._is_symbol(node.right) else None
        left = self.value(node.left, kind)
        if node.operator == "in" and isinstance(node.right, tree.ListOf):
            right: Value = tuple(self.value(item, kind) for item in node.right.items)
        else:
            right = self.value(node.right, kind)
        if left is None or right is None:
            return None
        for value, other, side in ((left, right, node.right), (right, left, node.left)):
            texts = other if isinstance(other, tuple) else (other,)
            if isinstance(value, Symbol) and any(isinstance(text, str) for text in texts):
                self.report(static_mistakes.string_for_symbol(side.span))
                return None
        if self._compares_kinds(node.left, left, node.right, right) or (
            node.operator != "in" and self._compares_kinds(node.right, right, node.left, left)
        ):
            return None
        if _compared_kind(left) == _compared_kind(right) == "block":
            self.report(static_mistakes.blocks_compared(node.span))
            return None
        if isinstance(left, Unknown) or isinstance(right, Unknown):
            return Unknown("bool")
        if node.operator != "in":
            same = equal(left, right)
            if same is None:
                return Unknown("bool")
            return same if node.operator == "==" else not same
        if isinstance(right, Interval) and isinstance(left, Dim | Interval | tuple):
            return _is_within(left, right)
        if isinstance(right, tuple):
            matches = [equal(left, item) for item in right]
            if True in matches:
                return True
            return Unknown("bool") if None in matches else False
        self.report(
            static_mistakes.not_evaluable(
                node.right.span, f"`in` takes a list or a range, not {describe(right)}", "write `[a, b]` or `1..5`"
            )
        )
        return None

    def _compares_kinds(self, static: tree.Expression, value: Value, operand: tree.Expression, compared: Value) -> bool:
        """Returns whether a static is compared with a value of another kind, which no value of it equals; reports
        that."""
        kind = _compared_kind(value)
        if kind is None or not isinstance(static, tree.Name) or not isinstance(self.lookup(static.parts[0]), Bound):
            return False
        items: list[tuple[tree.Expression, Value]] = [(operand, compared)]
        if isinstance(operand, tree.ListOf) and isinstance(compared, tuple):
            items = list(zip(operand.items, compared, strict=True))
        for expression, item in items:
            if _compared_kind(item) in (None, kind):
                continue
            if isinstance(item, Symbol) and isinstance(expression, tree.Name):
                self.report(static_mistakes.unknown_static_name(expression.span, expression.text, self.names(), kind))
            else:
                self.report(static_mistakes.wrong_kind(expression.span, static.text, kind, describe(item), None))
            return True
        return False

    def _is_symbol(self, expression: tree.Expression) -> bool:
        """Returns whether an operand is a symbol, so that unknown names in the comparison are symbols too."""
        if not isinstance(expression, tree.Name) or len(expression.parts) != 1:
            return False
        binding = self.lookup(expression.parts[0])
        return isinstance(binding, Bound) and binding.value is not None and may_be_symbol(binding.value)


def _is_within(value: Value, interval: Interval) -> bool | Unknown:
    """Returns whether an integer, every integer of a range, or every item of a list is in an interval."""
    match value:
        case Dim():
            number = value.constant
            return Unknown("bool") if number is None else interval.low <= number <= interval.high
        case Interval(low=low, high=high):
            return interval.low <= low <= high <= interval.high
        case tuple():
            answers = [_is_within(item, interval) for item in value]
            return False if False in answers else next((each for each in answers if isinstance(each, Unknown)), True)
    return False


def _order(operator: str, difference: float) -> bool:
    match operator:
        case "<":
            return difference < 0
        case "<=":
            return difference <= 0
        case ">":
            return difference > 0
    return difference >= 0


def _compared_kind(value: Value) -> str | None:
    """Returns the kind of a value whose comparison with other kinds is a mistake; None for other values."""
    if isinstance(value, Unknown):
        kinds = {"int": "float"} | {kind: kind for kind in ("bool", "symbol", "float", "file", "block")}
        return kinds.get(value.kind)
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, Dim | float):
        return "float"
    if isinstance(value, str):
        return "file"
    if isinstance(value, BlockValue | InstanceValue):
        return "block"
    return "symbol" if isinstance(value, Symbol) else None
