"""Matches the arguments of calls with the parameters of functions."""

from __future__ import annotations

import ast

from archlang.export.plain.constants import UNKNOWN, constant_of
from archlang.export.plain.sources import arguments_of


def positional_parameters(function: ast.FunctionDef, is_method: bool) -> list[str]:
    names = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
    return names[1:] if is_method else names


def defaults_of(function: ast.FunctionDef) -> dict[str, object]:
    """The default of each parameter that has one."""
    arguments = function.args
    names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    pairs = [*zip(reversed(names), reversed(arguments.defaults), strict=False)]
    pairs += [
        (argument.arg, default)
        for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default is not None
    ]
    return {name: constant_of(default) for name, default in pairs}


def bound_arguments(function: ast.FunctionDef, call: ast.Call, is_method: bool) -> dict[str, object]:
    """The value of each parameter in a call."""
    parameters = [argument.arg for argument in arguments_of(function.args)]
    if any(isinstance(argument, ast.Starred) for argument in call.args) or any(k.arg is None for k in call.keywords):
        return dict.fromkeys(parameters, UNKNOWN)
    values: dict[str, object] = dict(defaults_of(function))
    values.update(
        (name, constant_of(value))
        for name, value in zip(positional_parameters(function, is_method), call.args, strict=False)
    )
    values.update((keyword.arg, constant_of(keyword.value)) for keyword in call.keywords if keyword.arg is not None)
    return values


def argument_for(function: ast.FunctionDef, call: ast.Call, parameter: str, is_method: bool) -> ast.expr | None:
    """The argument of a call for a parameter."""
    for keyword in call.keywords:
        if keyword.arg == parameter:
            return keyword.value
    names = positional_parameters(function, is_method)
    if parameter in names and names.index(parameter) < len(call.args):
        return call.args[names.index(parameter)]
    return None
