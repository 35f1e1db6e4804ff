"""Prints syntax trees of Python as text, with the comments of their sources and lines of at most 120 characters."""

import ast
import copy
import io
import keyword
import re
import tokenize
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from archlang.errors.visible import visible, visible_lines

WIDTH = 120
# Comments for tools, and reasons for types that the plain code does not have.
_FOR_TOOLS = re.compile(r"#\s*(fmt:|type:|noqa|mypy:|Any\b)")
_MARKER = re.compile(r"( *)__(comment|beside)_(\d+)__")
_BODIES = {"body", "orelse", "handlers", "finalbody", "cases"}
# What a statement sets or returns.
_VALUE = re.compile(r"( *(?:[\w., ]+ = |return ))(.+)")
# A line in brackets may be broken after the first of these, and before the others.
_AFTER, _BEFORE = (",", "(", "[", "{"), ("if", "else", "for", "and", "or", "+", "-", "*", "/", "|", "&")


def attach_comments(tree: ast.Module, source: str) -> None:
    """Sets `comments` on each statement of a tree: those above it or in it. `print_statements` prints them above it."""
    statements = sorted(
        (node for node in ast.walk(tree) if isinstance(node, ast.stmt)), key=lambda node: (node.lineno, node.col_offset)
    )
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT or _FOR_TOOLS.match(token.string):
            continue
        line = token.start[0]
        around = [
            node
            for node in statements
            if node.lineno <= line <= (node.end_lineno or node.lineno) and not hasattr(node, "body")
        ]
        owner = around[-1] if around else next((node for node in statements if node.lineno > line), None)
        if owner is not None:
            owner.comments = [*comments_of(owner), token.string]  # type: ignore[attr-defined]


def comments_of(node: ast.stmt) -> list[str]:
    """Returns the comments that are printed above a statement."""
    comments: list[str] = getattr(node, "comments", [])
    return comments


def print_statements(statements: Sequence[ast.stmt]) -> str:
    """Returns the text of statements, with their `comments` above them and their `beside` on their line."""
    marked = _Marked()
    unparsed = ast.unparse(ast.fix_missing_locations(ast.Module(marked.statements(statements), [])))
    docstrings = {
        number
        for token in tokenize.generate_tokens(io.StringIO(unparsed).readline)
        if token.start[0] < token.end[0] and token.type == tokenize.STRING
        for number in range(token.start[0], token.end[0] + 1)
    }
    lines: list[str] = []
    for number, line in enumerate(unparsed.split("\n"), start=1):
        marker = _MARKER.fullmatch(line)
        if number in docstrings or marker is None:
            lines += [line] if number in docstrings else _wrapped(line)
            continue
        comment = visible(marked.comments[int(marker[3])])
        if marker[2] == "comment":
            text = f"{marker[1]}{comment}"
            lines.append(text if len(text) <= WIDTH else f"{text[: WIDTH - 1]}…")
        elif len(lines[-1]) + len(comment) + 2 <= WIDTH:
            lines[-1] += f"  {comment}"
    return "\n".join([*lines, ""])


class _Marked:
    """Puts a statement in the place of each comment: `ast.unparse` prints none."""

    def __init__(self) -> None:
        self.comments: list[str] = []

    def statements(self, statements: Sequence[Any]) -> list[Any]:  # Any: statements, or handlers of exceptions
        marked: list[ast.AST] = []
        for statement in statements:
            marked += (self._marker("comment", comment) for comment in comments_of(statement))
            own = copy.copy(statement)
            for name in _BODIES & {*own._fields}:
                setattr(own, name, self.statements(getattr(own, name)))
            marked.append(own)
            if beside := getattr(own, "beside", ""):
                marked.append(self._marker("beside", beside))
        return marked

    def _marker(self, kind: str, comment: str) -> ast.stmt:
        self.comments.append(comment)
        return ast.Expr(ast.Name(f"__{kind}_{len(self.comments) - 1}__", ast.Load()))


def _wrapped(line: str) -> Iterator[str]:
    """Yields a line of code, broken inside of its brackets if it is too long. A value without a place for a break gets
    brackets."""
    indent = line[: len(line) - len(line.lstrip())]
    start, places = 0, list(_breaks(line)) if len(line) > WIDTH else []
    if len(line) > WIDTH and all(place > WIDTH for _, place in places) and (bare := _VALUE.fullmatch(line)):
        line = f"{bare[1]}({bare[2]})"
        places = list(_breaks(line))
    while True:
        before = f"{indent}        " if start else ""
        rest = line[start:].lstrip() if start else line
        end = len(line) - len(rest) + WIDTH - len(before)
        _, place = max((pair for pair in places if start < pair[1] <= end), default=(True, len(line)))
        if len(before) + len(rest) <= WIDTH or place == len(line):
            yield f"{before}{rest}"
            return
        yield f"{before}{line[len(line) - len(rest) : place]}".rstrip()
        start = place


def _breaks(line: str) -> Iterator[tuple[bool, int]]:
    """Yields the places inside of brackets, and outside of texts, at which a line may be broken, each behind whether
    it follows a comma."""
    depth, indent = 0, len(line) - len(line.lstrip())
    with suppress(tokenize.TokenError, SyntaxError):  # a line of a docstring
        for token in tokenize.generate_tokens(io.StringIO(line.lstrip()).readline):
            depth += (token.string in ("(", "[", "{")) - (token.string in (")", "]", "}"))
            if depth and token.string in _AFTER:
                yield token.string == ",", indent + token.end[1]
            elif depth and token.string in _BEFORE:
                yield False, indent + token.start[1]


def is_text_of(text: str, statements: Sequence[ast.stmt]) -> bool:
    """Returns whether a text is Python of these statements and of nothing else. The names in them may be any texts;
    spaces of docstrings do not count."""
    for node in ast.walk(tree := ast.Module([*statements], [])):
        names = [value for _, value in ast.iter_fields(node) if isinstance(value, str)]
        parts = (part for name in names for part in name.split("."))
        if not isinstance(node, ast.Constant) and any(keyword.iskeyword(p) or not p.isidentifier() for p in parts):
            return False
    try:
        return _dump(ast.parse(text)) == _dump(ast.parse(ast.unparse(ast.fix_missing_locations(tree))))
    except (SyntaxError, ValueError):
        return False


def _dump(tree: ast.Module) -> str:
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            node.value.value = " ".join(visible_lines(node.value.value).split())
    return ast.dump(tree)
