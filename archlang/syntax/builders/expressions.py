"""Builds expressions."""

import math

from archlang.syntax import mistakes, tree
from archlang.syntax.builders.context import Section
from archlang.syntax.builders.parts import Group, Parts, nodes_of, nodes_of_kind

_LARGEST = 2**63


class Expressions(Section):
    """Expressions, from pipes to names."""

    def pipe(self, parts: Parts) -> tree.Pipe:
        value, _, stage = parts
        return self._context.nested(tree.Pipe(value=value, stage=stage, span=self._context.span(parts)), value, stage)

    def conditional(self, parts: Parts) -> tree.Conditional:
        then, _, test, _, otherwise = parts
        node = tree.Conditional(then=then, test=test, otherwise=otherwise, span=self._context.span(parts))
        return self._context.nested(node, then, test, otherwise)

    def binary(self, parts: Parts) -> tree.Binary:
        left, operator, right = parts
        node = tree.Binary(
            operator=str(operator),
            left=left,
            right=right,
            operator_span=self._context.token_span(operator),
            span=self._context.span(parts),
        )
        return self._context.nested(node, left, right)

    def range(self, parts: Parts) -> tree.Range:
        low, _, high = parts
        return self._context.nested(tree.Range(low=low, high=high, span=self._context.span(parts)), low, high)

    def unary(self, parts: Parts) -> tree.Unary:
        operator, operand = parts
        span = self._context.span(parts)
        if operator == "-" and span.source.text.endswith("-", 0, span.start):
            self._context.mistakes.append(mistakes.doubled_minus(span))
        node = tree.Unary(operator=str(operator), operand=operand, span=span)
        return self._context.nested(node, operand)

    def number(self, parts: Parts) -> tree.Number:
        (token,) = parts
        text, span = str(token), self._context.span(parts)
        value: int | float = 0
        digits = text.replace("_", "")
        if set("eE.").isdisjoint(digits):
            # `int` refuses texts of thousands of digits.
            digits = digits.lstrip("0") or "0"
            value = int(digits) if len(digits) < 20 else _LARGEST
            in_range = value < _LARGEST
        else:
            value = float(digits)
            mantissa = digits.lower().partition("e")[0]
            in_range = math.isfinite(value) and (value != 0 or not mantissa.strip("0."))
        if not in_range:
            self._context.mistakes.append(mistakes.number_out_of_range(span))
        return tree.Number(value=value, text=text, span=span)

    def string(self, parts: Parts) -> tree.String:
        return tree.String(value=parts[0][1:-1], span=self._context.span(parts))

    def boolean(self, parts: Parts) -> tree.Boolean:
        return tree.Boolean(value=parts[0] == "true", span=self._context.span(parts))

    def list_of(self, parts: Parts) -> tree.ListOf:
        items: tuple[tree.Expression, ...] = nodes_of(parts)  # type: ignore[assignment]  # the grammar has only expressions there
        return self._context.nested(tree.ListOf(items=items, span=self._context.span(parts)), *items)

    def group(self, parts: Parts) -> tree.Node:
        node: tree.Node = parts[1]
        return self._context.replace_span(node, self._context.span(parts))

    def call(self, parts: Parts) -> tree.Call:
        callee, statics, arguments = parts
        return self._call(parts, callee, statics, arguments.nodes)

    def configuration(self, parts: Parts) -> tree.Call:
        callee, statics = parts
        return self._call(parts, callee, statics, None)

    def _call(
        self, parts: Parts, callee: tree.Name, group: Group | None, arguments: tuple[tree.Expression, ...] | None
    ) -> tree.Call:
        statics = nodes_of_kind(tree.StaticArgument, group)
        node = tree.Call(callee=callee, statics=statics, arguments=arguments, span=self._context.span(parts))
        return self._context.nested(node, *(static.value for static in statics), *(arguments or ()))

    def positional_static(self, parts: Parts) -> tree.StaticArgument:
        return tree.StaticArgument(name=None, value=parts[0], span=self._context.span(parts))

    def missing(self, parts: Parts) -> tree.Missing:
        return tree.Missing(span=self._context.span(parts))

    def name(self, parts: Parts) -> tree.Name:
        return tree.Name(parts=tuple(parts[0].split(".")), span=self._context.span(parts))
