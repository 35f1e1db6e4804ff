"""Shrinks a failing program while the same property fails in the same way."""

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import Any

from archlang.errors.source import Source
from archlang.syntax import tree
from archlang.syntax.parser import parse
from archlang.syntax.printer import format_program
from tests.semantics.compiled import PATH
from tests.semantics.failures import Failure, failures

# The most smaller programs to try.
ATTEMPTS = 1_500


def shrink(text: str, seed: int, failure: Failure, attempts: int = ATTEMPTS) -> str:
    """Returns the smallest program with the same failure after at most `attempts` tries."""
    tried = {text}
    while attempts > 0:
        for smaller in _smaller(text):
            if smaller in tried or len(smaller) > len(text) or attempts <= 0:
                continue
            tried.add(smaller)
            attempts -= 1
            if _fails_alike(smaller, seed, failure):
                text = smaller
                break
        else:
            return text
    return text


def _fails_alike(text: str, seed: int, failure: Failure) -> bool:
    names = () if failure.name == "check" else (failure.name,)
    return any(candidate.signature == failure.signature for candidate in failures(text, seed, names))


def _smaller(text: str) -> Iterator[str]:
    """Yields the program after each possible edit, the largest cuts first."""
    program = parse(Source(PATH, text))
    for edited in _edits_of_program(program):
        try:
            yield format_program(edited)
        except Exception:  # an edit that leaves no valid tree, such as a call without a callee
            continue


def _edits_of_program(program: tree.Program) -> Iterator[tree.Program]:
    items = program.items
    for index in range(len(items)):
        yield replace(program, items=(*items[:index], *items[index + 1 :]))
    for index, item in enumerate(items):
        for edited in _edits(item):
            yield replace(program, items=(*items[:index], edited, *items[index + 1 :]))


def _edits(node: Any) -> Iterator[Any]:  # Any: dataclasses.replace takes what a field holds
    """Yields a node after each edit of itself, then of its parts."""
    yield from _own_edits(node)
    for field in fields(node):
        value = getattr(node, field.name)
        if isinstance(value, tree.Node):
            for edited in _edits(value):
                yield replace(node, **{field.name: edited})
        elif isinstance(value, tuple) and value and all(isinstance(item, tree.Node) for item in value):
            for index in range(len(value)):
                yield replace(node, **{field.name: (*value[:index], *value[index + 1 :])})
            for index, item in enumerate(value):
                for edited in _edits(item):
                    yield replace(node, **{field.name: (*value[:index], edited, *value[index + 1 :])})
        if value is not None and field.name in ("mixture", "otherwise"):
            yield replace(node, **{field.name: None})


def _own_edits(node: Any) -> Iterator[tree.Node]:  # Any: as above
    match node:
        case tree.Body(statements=statements):
            for index, statement in enumerate(statements):
                for inner in _unwrapped(statement):
                    yield replace(node, statements=(*statements[:index], *inner, *statements[index + 1 :]))
        case tree.Binary(left=left, right=right):
            yield left
            yield right
        case tree.Unary(operand=operand):
            yield operand
        case tree.Conditional(then=then, otherwise=otherwise):
            yield then
            yield otherwise
        case tree.Pipe(value=value):
            yield value
        case tree.Call(arguments=arguments) if arguments:
            yield from arguments
        case tree.Number(value=value):
            for small in (0, 1, 2):
                if value > small or value % 1:
                    yield replace(node, value=small, text=str(small))


def _unwrapped(statement: tree.Statement) -> Iterator[Sequence[tree.Statement]]:
    """Yields the statements that may replace a compound statement."""
    match statement:
        case tree.Repeat(body=body) | tree.Stack(body=body) | tree.Halting(body=body):
            yield body.statements
        case tree.If(then=then, otherwise=otherwise):
            yield then.statements
            if otherwise is not None:
                yield otherwise.statements
    if isinstance(statement, tree.Halting | tree.Stack):
        yield (tree.Repeat(span=statement.span, count=statement.count, body=statement.body),)
