"""Builds syntax trees of Python."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence


def parsed_expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def parsed_statement(text: str) -> ast.stmt:
    return ast.parse(text).body[0]


def function_of(text: str, body: list[ast.stmt]) -> ast.FunctionDef:
    function = ast.parse(f"{text}\n    pass").body[0]
    assert isinstance(function, ast.FunctionDef)
    function.body = body
    return function


def assignment(name: str, value: ast.expr) -> ast.Assign:
    return ast.Assign([ast.Name(name, ast.Store())], value, lineno=0)


def call_of(function: ast.expr, arguments: Iterable[ast.expr], keywords: Mapping[str, ast.expr]) -> ast.Call:
    return ast.Call(function, list(arguments), [ast.keyword(name, value) for name, value in keywords.items()])


def for_loop(target: str, iterable: str) -> ast.For:
    loop = parsed_statement(f"for {target} in {iterable}:\n    pass")
    assert isinstance(loop, ast.For)
    return loop


def mean_of(values: Sequence[ast.expr]) -> ast.expr:
    total = values[0]
    for value in values[1:]:
        total = ast.BinOp(total, ast.Add(), value)
    return ast.BinOp(total, ast.Div(), ast.Constant(len(values))) if len(values) > 1 else total


def updates(states: Sequence[str], results: Sequence[ast.expr]) -> list[ast.stmt]:
    """Sets the states to their next values, at once if one needs the old value of another."""
    pairs = [
        (state, result)
        for state, result in zip(states, results, strict=False)
        if not (isinstance(result, ast.Name) and result.id == state)
    ]
    for index, (state, _) in enumerate(pairs):
        later = (node for _, result in pairs[index + 1 :] for node in ast.walk(result))
        if any(isinstance(node, ast.Name) and node.id == state for node in later):
            targets = ast.Tuple([ast.Name(name, ast.Store()) for name, _ in pairs], ast.Store())
            return [ast.Assign([targets], ast.Tuple([result for _, result in pairs], ast.Load()), lineno=0)]
    return [assignment(state, result) for state, result in pairs]
