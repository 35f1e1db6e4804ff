"""Evaluates what is constant in a definition, and keeps the branches that are taken."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

from archlang.export.plain.constants import constant_of, is_pure
from archlang.export.plain.infrastructure import target_of
from archlang.export.plain.sources import Import, Name

_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {  # Any: constants
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not, ast.In: lambda left, right: left in right,
    ast.NotIn: lambda left, right: left not in right,
}  # fmt: skip
_OPERATIONS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {  # Any: numbers
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
}  # fmt: skip


class Evaluate(ast.NodeTransformer):
    """Evaluates what is constant, and keeps the branches that are taken."""

    def __init__(self, definitions: Mapping[Name, ast.AST]) -> None:
        self._definitions = definitions

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        operands = [node.left, *node.comparators]
        if all(isinstance(operand, ast.Constant | ast.Tuple | ast.List) for operand in operands):
            try:
                values = [ast.literal_eval(operand) for operand in operands]
            except ValueError:
                return node
            pairs = zip(node.ops, values, values[1:], strict=False)
            return ast.Constant(all(_COMPARISONS[type(op)](left, right) for op, left, right in pairs))
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        stops = isinstance(node.op, ast.Or)
        values: list[ast.expr] = []
        for value in node.values:
            if isinstance(value, ast.Constant):
                if bool(value.value) != stops:
                    continue  # never the result, unless it is the last value
                values.append(value)
                break
            values.append(value)
        if not values:
            return node.values[-1]
        last = values[-1]
        decides = isinstance(last, ast.Constant) and (isinstance(last.value, bool) or (not stops and not last.value))
        if decides and all(is_pure(value) for value in values):
            return last
        return values[0] if len(values) == 1 else ast.BoolOp(node.op, values)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Not) and isinstance(node.operand, ast.Constant):
            return ast.Constant(not node.operand.value)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        left, right = node.left, node.right
        if isinstance(node.op, ast.Add) and _is_zero(left):
            return right
        if isinstance(node.op, ast.Add | ast.Sub) and _is_zero(right):
            return left
        if isinstance(node.op, ast.Sub) and _is_zero(left):
            return ast.UnaryOp(ast.USub(), right)
        operands = constant_of(left), constant_of(right)
        if type(node.op) in _OPERATIONS and all(isinstance(value, int | float) for value in operands):
            return ast.Constant(_OPERATIONS[type(node.op)](*operands))
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.test, ast.Constant):
            return node.body if node.test.value else node.orelse
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        match node.func:
            case ast.Attribute(value=ast.Name() as package, attr="dropout") if isinstance(target_of(package), Import):
                rate = node.args[1] if len(node.args) > 1 else None
                if isinstance(rate, ast.Constant) and rate.value == 0:
                    return node.args[0]
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """The item of a dictionary at the top of a module."""
        self.generic_visit(node)
        target = target_of(node.value)
        if isinstance(target, Name) and isinstance(node.slice, ast.Constant):
            definition = self._definitions.get(target)
            value = definition.value if isinstance(definition, ast.Assign | ast.AnnAssign) else None
            if isinstance(value, ast.Dict):
                for key, item in zip(value.keys, value.values, strict=True):
                    if isinstance(key, ast.Constant) and key.value == node.slice.value:
                        return item
        return node

    # Statements

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        if isinstance(node.test, ast.Constant):
            branch = node.body if node.test.value else node.orelse
            if branch and node.test.value:
                branch[0].comments = [*getattr(node, "comments", []), *getattr(branch[0], "comments", [])]  # type: ignore[attr-defined]
            return branch
        if not node.body:
            node.body = [ast.Pass()]
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        node.body = _until_return(node.body) or [ast.Pass()]
        return node


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value == 0


def _until_return(body: list[ast.stmt]) -> list[ast.stmt]:
    for index, statement in enumerate(body):
        if isinstance(statement, ast.Return | ast.Raise):
            return body[: index + 1]
    return body
