"""Shrinks a failing program while the same property fails in the same way."""

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields
from itertools import chain

from archlang.errors import ProgramError, Source, Span
from archlang.syntax import tree
from archlang.syntax.parser import parse
from tests.semantics.compiled import PATH
from tests.semantics.failures import Failure, failures

Edit = tuple[Span, str]
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
    edits = [(item.span, "") for item in program.items]
    for span, replacement in chain(edits, *map(_edits, program.items)):
        smaller = text[: span.start] + replacement + text[span.end :]
        with suppress(ProgramError):
            parse(Source(PATH, smaller))
            yield smaller


def _edits(node: tree.Syntax) -> Iterator[Edit]:
    """Yields the edits of a node, then those of its parts."""
    yield from _own_edits(node)
    for field in fields(node):
        value = getattr(node, field.name)
        if isinstance(value, tuple):
            yield from ((_with_comma(part.span), "") for part in value if isinstance(part, tree.Syntax))
    for child in tree.children(node):
        yield from _edits(child)


def _with_comma(span: Span) -> Span:
    """Returns a span with the comma beside it."""
    text = span.source.text
    after, before = re.compile(r"\s*,").match(text, span.end), text[: span.start].rstrip()
    if after is not None:
        return Span(span.source, span.start, after.end())
    return Span(span.source, len(before) - 1, span.end) if before.endswith(",") else span


def _own_edits(node: tree.Syntax) -> Iterator[Edit]:
    inner: tuple[tree.Syntax, ...] = ()
    match node:
        case tree.RepeatStatement(body=body) | tree.StackStatement(body=body) | tree.HaltingStatement(body=body):
            yield node.span, body.span.text[1:-1]
            yield node.span, f"repeat {node.count.span.text} {body.span.text}"
        case tree.If(then=then, otherwise=otherwise):
            yield node.span, then.span.text.strip("{}")
            if otherwise is not None:
                yield node.span, otherwise.span.text.strip("{}")
                yield Span(node.span.source, then.span.end, otherwise.span.end), ""
        case tree.Binary(left=left, right=right):
            inner = (left, right)
        case tree.Unary(operand=operand):
            inner = (operand,)
        case tree.Conditional(then=then, otherwise=otherwise):
            inner = (then, otherwise)
        case tree.Pipe(value=value):
            inner = (value,)
        case tree.CallExpression(arguments=arguments) if arguments:
            inner = arguments
        case tree.Number(value=value):
            yield from ((node.span, str(small)) for small in (0, 1, 2) if value > small or value % 1)
    yield from ((node.span, f"({each.span.text})") for each in inner)
