"""Evaluates static expressions."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import add, ge, gt, le, lt, mod, mul, sub, truediv
from typing import Any  # numbers and sizes have no common type

from archlang.errors import Diagnostic, Report
from archlang.errors.effort import spend
from archlang.resolve import mistakes, values
from archlang.resolve.resolve import Declaration, ResolvedFile
from archlang.syntax import tree
from archlang.types import Dim
from archlang.types.dimension import MOST_TERMS
from archlang.types.statics import Interval, Symbol

_LARGEST = 2**53
_TOO_LARGE = "this number is too large", "use a number below 2^53"
_BY_ZERO = "this divides by zero", "divide by another number"
_ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {"<": lt, "<=": le, ">": gt, ">=": ge}
_ARITHMETIC: Mapping[str, Callable[[Any, Any], Any]] = {"+": add, "-": sub, "*": mul, "/": truediv, "%": mod}

Lookup = Callable[[str], values.Bound | values.Data | values.Length | None]

Configure = Callable[["Evaluator", Sequence[tree.StaticArgument], "Declaration | values.BlockValue"], values.Value]


@dataclass
class Evaluator:
    """Evaluates static expressions.

    `lookup` resolves the names in scope, which `names` lists, and `file` resolves blocks. `configure` sets the statics
    of a block, as in `attention[heads = 4]`, to values of this evaluator. `report` receives mistakes; a value with a
    mistake is None."""

    lookup: Lookup
    names: Callable[[], frozenset[str]]
    file: ResolvedFile
    report: Report
    configure: Configure = lambda *block: None
    rounds_down: bool = False
    """whether sizes are divided as lengths are"""

    def value(self, expression: tree.Expression, kind: str | None) -> values.Value:
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
                return tuple(self.value(item, "file" if kind == "files" else None) for item in items)
            case tree.Range(low=low, high=high):
                return self._range(expression, self.value(low, "int"), self.value(high, "int"))
            case tree.Unary(operator="-", operand=operand):
                return self._negative(self.value(operand, kind), expression)
            case tree.Unary(operand=operand):
                holds = self.truth(operand)
                return values.Unknown("bool") if holds is None else not holds
            case tree.Binary():
                return self._binary(expression)
            case tree.Conditional(then=then, test=test, otherwise=otherwise):
                holds = self.truth(test)
                if holds is None:
                    return values.Unknown(kind or "int")
                return self.value(then if holds else otherwise, kind)
            case tree.CallExpression(callee=callee, arguments=None) if kind == "path":
                return self._refused(mistakes.path_with_brackets(expression.span, callee.text))
            case tree.CallExpression(callee=callee, arguments=None):
                return self._configured(expression, callee)
            case tree.Missing():
                return None
        return self._not_evaluable(expression, "this is computed at run time", mistakes.remedy_of_kind(kind))

    def truth(self, expression: tree.Expression) -> bool | None:
        """Returns whether a condition holds, or None if that is unknown or a mistake was reported."""
        value = self.value(expression, "bool")
        if isinstance(value, bool) or value is None or isinstance(value, values.Unknown):
            return value if isinstance(value, bool) else None
        self.report(mistakes.wrong_kind(expression.span, "a condition", "bool", values.describe(value), None))
        return None

    def _refused(self, mistake: Diagnostic) -> values.Value:
        self.report(mistake)
        return None

    def _not_evaluable(self, node: tree.Syntax, reason: str, remedy: str) -> values.Value:
        return self._refused(mistakes.not_evaluable(node.span, reason, remedy))

    def _number(self, number: int | float, node: tree.Syntax) -> values.Value:
        if isinstance(number, float):
            return number
        if abs(number) > _LARGEST:
            return self._not_evaluable(node, *_TOO_LARGE)
        return Dim.of(number)

    def _name(self, name: tree.Name, kind: str | None) -> values.Value:
        if kind == "path":
            return Symbol(name.text)
        binding = self.lookup(name.parts[0])
        if kind in ("file", "files"):
            if (
                len(name.parts) == 1
                and isinstance(binding, values.Bound)
                and isinstance(binding.value, str | tuple | values.Unknown | None)
            ):
                return binding.value
            return Symbol(name.text)  # `coerce` reports an unquoted path to a file
        if kind == "symbol" and not (isinstance(binding, values.Bound) and values.may_be_symbol(binding.value)):
            return Symbol(name.text)
        if isinstance(binding, values.Data):
            return self._refused(mistakes.data_in_static(name.span, name.text, binding.span))
        if isinstance(binding, values.Length):
            return self._refused(mistakes.length_in_static(name.span, name.text, binding.span))
        if binding is not None:
            if len(name.parts) == 1:
                return binding.value
            return self._attribute(name, binding)
        declaration = self.file.find(name.text)
        if declaration is not None:
            return values.BlockValue(declaration)
        if kind is None:
            return Symbol(name.text)
        if kind == "block":
            return self._refused(mistakes.unknown_block(name.span, name.text, self.file.names()))
        return self._refused(mistakes.unknown_static_name(name.span, name.text, self.names(), kind))

    def _attribute(self, name: tree.Name, bound: values.Bound) -> values.Value:
        owner = bound.value
        if isinstance(owner, values.Unknown) or owner is None:
            return values.Unknown("int") if owner else None
        if isinstance(owner, values.InstanceValue) and len(name.parts) == 2:
            settled = owner.block.settled.get(name.parts[1])
            if settled is not None:
                return settled.value
            size = owner.features.get(name.parts[1])
            if size is not None:
                return size
            if not owner.features:
                return self._refused(
                    mistakes.not_evaluable(
                        bound.span or name.span,
                        f"the sizes of `{owner.name}` are unknown before its first call",
                        f"apply `{owner.name}` to a value first",
                    )
                )
            return self._refused(mistakes.unknown_static_name(name.span, name.text, owner.features))
        return self._refused(mistakes.unknown_static_name(name.span, name.text, self.names()))

    def _configured(self, call: tree.CallExpression, callee: tree.Name) -> values.Value:
        binding = self.lookup(callee.text)
        if isinstance(binding, values.Bound):
            if isinstance(binding.value, values.BlockValue):
                return self.configure(self, call.statics, binding.value)
            if isinstance(binding.value, values.Unknown) or binding.value is None:
                return binding.value
            return self._refused(mistakes.not_a_block(callee.span, callee.text, values.describe(binding.value)))
        declaration = self.file.find(callee.text)
        if declaration is not None:
            return self.configure(self, call.statics, declaration)
        if len(callee.parts) > 1 and isinstance(self.lookup(callee.parts[0]), values.Data):
            return self._refused(mistakes.size_of_value(callee.span, callee.parts[0], ".".join(callee.parts[1:])))
        return self._refused(mistakes.unknown_block(callee.span, callee.text, self.file.names()))

    def _range(self, node: tree.Range, low: values.Value, high: values.Value) -> values.Value:
        if isinstance(low, Dim) and isinstance(high, Dim):
            first, last = low.constant, high.constant
            if first is None or last is None:
                return values.Unknown("range")
            if first > last:
                return self._not_evaluable(
                    node, f"the range `{first}..{last}` is empty", f"write the lower end first: `{last}..{first}`"
                )
            return Interval(first, last)
        if low is None or high is None:
            return None
        if isinstance(low, values.Unknown) or isinstance(high, values.Unknown):
            return values.Unknown("range")
        bad, end = (low, node.low) if not isinstance(low, Dim) else (high, node.high)
        return self._refused(mistakes.wrong_kind(end.span, "a range", "int", values.describe(bad), None))

    def _negative(self, value: values.Value, node: tree.Syntax) -> values.Value:
        if isinstance(value, Dim | float):
            return -value
        if isinstance(value, values.Unknown) or value is None:
            return value
        return self._not_evaluable(node, f"`-` takes a number, not {values.describe(value)}", "write a number")

    def _binary(self, node: tree.Binary) -> values.Value:
        operator = node.operator
        if operator in ("and", "or"):
            sides = (self.truth(node.left), self.truth(node.right))
            decided = operator == "or"
            if decided in sides:
                return decided
            return values.Unknown("bool") if None in sides else not decided
        if operator in ("==", "!=", "in"):
            return self._compare_any(node)
        left, right = self.value(node.left, "float"), self.value(node.right, "float")
        if left is None or right is None:
            return None
        if isinstance(left, values.Unknown) or isinstance(right, values.Unknown):
            return values.Unknown("bool" if operator in ("<", "<=", ">", ">=") else "float")
        if isinstance(left, Dim) and isinstance(right, Dim):
            return self._whole(node, left, right)
        first, second = values.as_float(left), values.as_float(right)
        if first is None or second is None:
            bad, value = (node.left, left) if first is None else (node.right, right)
            if isinstance(value, Dim):
                return values.Unknown("float")
            return self._not_evaluable(
                bad, f"`{operator}` takes numbers, not {values.describe(value)}", "write a number"
            )
        return self._real(node, first, second)

    def _whole(self, node: tree.Binary, left: Dim, right: Dim) -> values.Value:
        if node.operator in _ORDERS:
            difference = (left - right).constant
            return values.Unknown("bool") if difference is None else _ORDERS[node.operator](difference, 0)
        if node.operator in ("/", "%"):
            a, b = left.constant, right.constant
            if b == 0:
                return self._not_evaluable(node, *_BY_ZERO)
            if b is not None and b > 0 and node.operator == "/" and self.rounds_down:
                return left.over(b)
            if b is not None and node.operator == "/" and not any(count % b for _, count in left.terms):
                return Dim(tuple((names, count // b) for names, count in left.terms))
            if a is None or b is None:
                return values.Unknown("int")
            if node.operator == "/" and a % b and not self.rounds_down:
                return a / b
            result = Dim.of(a // b if node.operator == "/" else a % b)
        else:
            if node.operator == "*" and len(left.terms) * len(right.terms) > MOST_TERMS:
                return self._refused(mistakes.size_too_large(node.span))
            result = _ARITHMETIC[node.operator](left, right)
        if result.is_unwieldy and result.constant is None:
            return self._refused(mistakes.size_too_large(node.span))
        return self._not_evaluable(node, *_TOO_LARGE) if result.is_unwieldy else result

    def _real(self, node: tree.Binary, left: float, right: float) -> values.Value:
        if node.operator in _ORDERS:
            return _ORDERS[node.operator](left, right)
        if node.operator in ("/", "%") and right == 0:
            return self._not_evaluable(node, *_BY_ZERO)
        value: float = _ARITHMETIC[node.operator](left, right)
        return value

    def _compare_any(self, node: tree.Binary) -> values.Value:
        kind = "symbol" if self._is_symbol(node.left) or self._is_symbol(node.right) else None
        left = self.value(node.left, kind)
        if node.operator == "in" and isinstance(node.right, tree.ListOf):
            right: values.Value = tuple(self.value(item, kind) for item in node.right.items)
        else:
            right = self.value(node.right, kind)
        if left is None or right is None:
            return None
        if self._compares_kinds(node.left, left, node.right, right) or (
            node.operator != "in" and self._compares_kinds(node.right, right, node.left, left)
        ):
            return None
        for operand, value in ((node.left, left), (node.right, right)) if kind is None else ():
            # Names are symbols beside a static that is one.
            if isinstance(value, Symbol) and isinstance(operand, tree.Name) and self.lookup(operand.parts[0]) is None:
                return self._refused(mistakes.unknown_static_name(operand.span, operand.text, self.names()))
        if _compared_kind(left) == _compared_kind(right) == "block":
            return self._refused(mistakes.blocks_compared(node.span))
        if isinstance(left, values.Unknown) or isinstance(right, values.Unknown):
            return values.Unknown("bool")
        if node.operator != "in":
            same = values.equal(left, right)
            if same is None:
                return values.Unknown("bool")
            return same if node.operator == "==" else not same
        if isinstance(right, Interval) and isinstance(left, Dim | Interval | tuple):
            return _is_within(left, right)
        if isinstance(right, tuple):
            matches = [values.equal(left, item) for item in right]
            if True in matches:
                return True
            return values.Unknown("bool") if None in matches else False
        return self._not_evaluable(
            node.right, f"`in` takes a list or a range, not {values.describe(right)}", "write `[a, b]` or `1..5`"
        )

    def _compares_kinds(
        self, static: tree.Expression, value: values.Value, operand: tree.Expression, compared: values.Value
    ) -> bool:
        """Returns whether a static is compared with a value of another kind, which no value of it equals; reports
        that."""
        kind = _compared_kind(value)
        if (
            kind is None
            or not isinstance(static, tree.Name)
            or not isinstance(self.lookup(static.parts[0]), values.Bound)
        ):
            return False
        items: list[tuple[tree.Expression, values.Value]] = [(operand, compared)]
        if isinstance(operand, tree.ListOf) and isinstance(compared, tuple):
            items = list(zip(operand.items, compared, strict=True))
        for expression, item in items:
            if _compared_kind(item) in (None, kind):
                continue
            if isinstance(item, Symbol) and isinstance(expression, tree.Name):
                self.report(mistakes.unknown_static_name(expression.span, expression.text, self.names(), kind))
            else:
                self.report(mistakes.wrong_kind(expression.span, static.text, kind, values.describe(item), None))
            return True
        return False

    def _is_symbol(self, expression: tree.Expression) -> bool:
        """Returns whether an operand is a symbol, so that unknown names in the comparison are symbols too."""
        if not isinstance(expression, tree.Name) or len(expression.parts) != 1:
            return False
        binding = self.lookup(expression.parts[0])
        return isinstance(binding, values.Bound) and binding.value is not None and values.may_be_symbol(binding.value)


def _is_within(value: values.Value, interval: Interval) -> bool | values.Unknown:
    match value:
        case Dim():
            number = value.constant
            return values.Unknown("bool") if number is None else interval.low <= number <= interval.high
        case Interval(low=low, high=high):
            return interval.low <= low <= high <= interval.high
        case tuple():
            answers = [_is_within(item, interval) for item in value]
            return (
                False
                if False in answers
                else next((each for each in answers if isinstance(each, values.Unknown)), True)
            )
    return False


def _compared_kind(value: values.Value) -> str | None:
    """Returns the kind of a value whose comparison with other kinds is a mistake; None for other values."""
    if isinstance(value, values.Unknown):
        kinds = {"int": "float"} | {kind: kind for kind in ("bool", "symbol", "float", "file", "block")}
        return kinds.get(value.kind)
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, Dim | float):
        return "float"
    if isinstance(value, str):
        return "file"
    if isinstance(value, values.BlockValue | values.InstanceValue):
        return "block"
    return "symbol" if isinstance(value, Symbol) else None
