"""Removes the variables of a function that are constants or that nothing reads."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from archlang.export.plain.constants import is_foldable, is_pure
from archlang.export.plain.sources import arguments_of, local_names
from archlang.export.plain.substitution import SubstituteLocals


def clean_variables(function: ast.FunctionDef) -> None:
    """Replaces variables that are constants, and removes those that nothing reads."""
    stores: dict[str, int] = defaultdict(int)
    loads: dict[str, int] = defaultdict(int)
    for node in ast.walk(function):
        if isinstance(node, ast.Name):
            counts = stores if isinstance(node.ctx, ast.Store) else loads
            counts[node.id] += 1
    parameters = {argument.arg for argument in arguments_of(function.args)}
    constants: dict[str, object] = {}
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=value)):
                if stores[name] == 1 and name not in parameters and is_foldable(value):
                    constants[name] = value
    if constants:
        SubstituteLocals(constants).visit(function)
    local = local_names(function)
    for is_needed, body in _bodies(function):
        body[:] = [statement for statement in body if not _is_needless(statement, loads, constants, local)]
        if is_needed and not body:
            body.append(ast.Pass())
        _drop_unused_targets(body, loads, local)
        _return_directly(body, loads)


def _bodies(function: ast.FunctionDef) -> Iterator[tuple[bool, list[ast.stmt]]]:
    """The lists of statements in a function, and whether they may not be empty."""
    for node in list(ast.walk(function)):
        for name in ("body", "orelse"):
            body = getattr(node, name, None)
            if isinstance(body, list) and body:
                yield name == "body", body


def _is_needless(
    statement: ast.stmt, loads: Mapping[str, int], constants: Mapping[str, object], local: Iterable[str]
) -> bool:
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Name(id=same)) if name == same:
            return True
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return name in constants or (not loads.get(name) and name in local and is_pure(value))
        case ast.FunctionDef(name=name):
            return not loads.get(name)
        case ast.If(test=test, body=[ast.Pass()], orelse=[]):
            return is_pure(test)
        case ast.For(body=[ast.Pass()], iter=iterable):
            return is_pure(iterable)
        case ast.Pass():
            return True
    return False


def _drop_unused_targets(body: list[ast.stmt], loads: Mapping[str, int], local: Iterable[str]) -> None:
    """Removes unused variables from `a, b = …, …`."""
    for index, statement in enumerate(body):
        match statement:
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)) if len(targets) == len(
                values
            ):
                pairs = [
                    (target, value)
                    for target, value in zip(targets, values, strict=True)
                    if not (isinstance(target, ast.Name) and not loads.get(target.id) and is_pure(value))
                ]
                if len(pairs) == 1:
                    body[index] = ast.copy_location(ast.Assign([pairs[0][0]], pairs[0][1]), statement)
                elif len(pairs) < len(targets):
                    body[index] = ast.Pass()


def _return_directly(body: list[ast.stmt], loads: Mapping[str, int]) -> None:
    """Replaces `y = …; return y` by `return …`."""
    match body[-2:]:
        case [ast.Assign(targets=[ast.Name(id=name)], value=value) as first, ast.Return(value=ast.Name(id=returned))]:
            if name == returned and loads.get(name) == 1:
                result = ast.Return(value)
                result.comments = getattr(first, "comments", [])  # type: ignore[attr-defined]
                body[-2:] = [result]
