"""Replaces variables and attributes by constants."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from archlang.export.plain.infrastructure import constant, target_of
from archlang.export.plain.sources import arguments_of


class Substitute(ast.NodeTransformer):
    """Replaces variables of a function by constants, unless the function sets them."""

    def __init__(self, constants: Mapping[str, object]) -> None:
        self._constants = constants

    def function(self, function: ast.FunctionDef) -> None:
        stored = {
            node.id
            for statement in function.body
            for node in ast.walk(statement)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        inner = {
            argument.arg
            for statement in function.body
            for node in ast.walk(statement)
            if isinstance(node, ast.FunctionDef | ast.Lambda)
            for argument in arguments_of(node.args)
        }
        self._constants = {name: value for name, value in self._constants.items() if name not in stored | inner}
        if self._constants:
            function.body = [self.visit(statement) for statement in function.body]

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if isinstance(node.ctx, ast.Load) and node.id in self._constants and target_of(node) is None:
            return constant(self._constants[node.id])
        return node


class SubstituteAttributes(ast.NodeTransformer):
    def __init__(self, constants: Mapping[str, object]) -> None:
        self._constants = constants

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        match node:
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Load()) if name in self._constants:
                return constant(self._constants[name])
        return node


class SubstituteLocals(ast.NodeTransformer):
    def __init__(self, constants: Mapping[str, object]) -> None:
        self._constants = constants

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if isinstance(node.ctx, ast.Load) and node.id in self._constants and target_of(node) is None:
            return constant(self._constants[node.id])
        return node
