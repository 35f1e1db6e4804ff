"""Notes of the lines of a program in exported code, and names for its values."""

from __future__ import annotations

import ast
import builtins
import keyword
import re
from collections.abc import Collection
from itertools import count

from archlang.graph import operations
from archlang.graph.graph import Graph, Node
from archlang.types import Dim

RESERVED = {*keyword.kwlist, *dir(builtins), "_", "self", "torch", "nn", "F", "Tensor", "lengths"}


def placed(statement: ast.stmt, node: Node) -> ast.stmt:
    """Notes the line of the program beside a statement."""
    if node.span is not None and node.span.source.path.endswith(".arch"):
        path = node.span.source.path.replace("\\", "/").rpartition("/")[2]
        statement.trailing = f"# {path}:{node.span.line}"  # type: ignore[attr-defined]
    return statement


def described(statement: ast.stmt, node: Node) -> ast.stmt:
    """Notes the line of the program above a loop."""
    if node.span is not None and node.span.source.path.endswith(".arch"):
        path = node.span.source.path.replace("\\", "/").rpartition("/")[2]
        first = node.span.text.split("\n", 1)[0].strip().removesuffix("{").strip()
        statement.comments = [f"# {path}:{node.span.line}: {first}"]  # type: ignore[attr-defined]
    return statement


def preferred_name(node: Node, graph: Graph) -> str:
    """Returns the name for a value without one: that of its block or operation."""
    if isinstance(node.operation, operations.Call):
        return graph.instances[node.operation.instance].block
    return node.operation.mnemonic


def unused_name(preferred: str, taken: Collection[str]) -> str:
    """Returns a Python name that is not taken: the preferred one, with an underscore if Python or the file reserves it,
    and a number from 2 if it is taken."""
    name = allowed_name(re.sub(r"\W", "_", preferred))
    candidates = (f"{name}_{number}" for number in count(2))
    return name if name not in taken else next(candidate for candidate in candidates if candidate not in taken)


def allowed_name(word: str) -> str:
    """Returns a word of a program as a name in Python; a class would rename a parameter with two underscores before."""
    return f"{word.lstrip('_') or 'value'}_" if word in RESERVED or word.startswith("__") else word


def length_words(length: Dim) -> str:
    """Returns a length as a part of a Python name."""
    text = str(length)
    for sign, word in ((" + ", "_plus_"), (" - ", "_minus_"), ("*", "_times_"), ("-", "minus_"), (".", "_")):
        text = text.replace(sign, word)
    return text
