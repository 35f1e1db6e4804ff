"""Which names the body of a loop moves: they are its states."""

from __future__ import annotations

from collections.abc import Sequence

from archlang.source import Span
from archlang.syntax.tree import Assign, Body, Halting, If, Let, Move, Repeat, Scan, Stack, Statement


def moved_names(body: Body) -> dict[str, Span]:
    """Returns the names that a loop's body moves and does not bind, each with its first `<-`."""
    moved: dict[str, Span] = {}
    bound: set[str] = set()

    def visit(statements: Sequence[Statement]) -> None:
        for statement in statements:
            match statement:
                case Move(name=name, name_span=span):
                    moved.setdefault(name, span)
                case Assign(name=name) | Let(name=name):
                    bound.add(name)
                case If(then=then, otherwise=otherwise):
                    visit(then.statements)
                    if otherwise is not None:
                        visit(otherwise.statements)
                case Repeat(body=inner) | Stack(body=inner) | Halting(body=inner):
                    add(moved_names(inner))
                case Scan(target=target, variable=variable, body=inner):
                    if target:
                        bound.add(target)
                    moved_inside = moved_names(inner)
                    moved_inside.pop(variable, None)
                    add(moved_inside)

    def add(names: dict[str, Span]) -> None:
        for name, span in names.items():
            moved.setdefault(name, span)

    visit(body.statements)
    return {name: span for name, span in moved.items() if name not in bound}
