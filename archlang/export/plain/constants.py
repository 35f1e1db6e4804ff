"""What is constant in a definition."""

from __future__ import annotations

import ast


class _Unknown:
    pass


UNKNOWN = _Unknown()


def is_foldable(value: object) -> bool:
    """Returns whether a value replaces its parameter."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value <= 0
    return value is None or isinstance(value, str | bool)


def constant_of(node: ast.expr) -> object:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
    return UNKNOWN


def is_same(left: object, right: object) -> bool:
    return type(left) is type(right) and left == right


_PURE = (
    ast.Name, ast.Attribute, ast.Constant, ast.Compare, ast.BoolOp, ast.UnaryOp, ast.BinOp, ast.Subscript, ast.Tuple,
    ast.List, ast.IfExp, ast.Slice, ast.expr_context, ast.operator, ast.boolop, ast.unaryop, ast.cmpop, ast.Dict,
)  # fmt: skip


def is_pure(node: ast.expr) -> bool:
    """Returns whether evaluating an expression has no effect."""
    return all(isinstance(part, _PURE) for part in ast.walk(node))
