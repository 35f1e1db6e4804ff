"""The names that the body of a loop updates, which are its states."""

from collections.abc import Sequence

from archlang.source import Span
from archlang.syntax.tree import (
    Assign,
    Body,
    Experts,
    Halting,
    If,
    Let,
    Repeat,
    Scan,
    Stack,
    Statement,
    Unclear,
    Update,
)


def updated_names(body: Body) -> dict[str, Span]:
    """Returns the names that a loop's body updates and does not bind, each with its first `<-`."""
    updated: dict[str, Span] = {}
    bound: set[str] = set()

    def visit(statements: Sequence[Statement]) -> None:
        for statement in statements:
            match statement:
                case Update(name=name, name_span=span):
                    updated.setdefault(name, span)
                case Assign(name=name) | Let(name=name):
                    bound.add(name)
                case If(then=then, otherwise=otherwise):
                    visit(then.statements)
                    if otherwise is not None:
                        visit(otherwise.statements)
                case (
                    Repeat(target=target, body=inner)
                    | Stack(target=target, body=inner)
                    | Halting(target=target, body=inner)
                ):
                    if target:
                        bound.add(target)
                    add(updated_names(inner))
                case Unclear(body=inner):
                    visit(inner.statements)
                case (
                    Scan(target=target, variable=variable, body=inner)
                    | Experts(target=target, variable=variable, body=inner)
                ):
                    if target:
                        bound.add(target)
                    updated_inside = updated_names(inner)
                    updated_inside.pop(variable, None)
                    if isinstance(statement, Scan) and statement.before is not None:
                        updated_inside.pop(statement.before, None)
                    add(updated_inside)

    def add(names: dict[str, Span]) -> None:
        for name, span in names.items():
            updated.setdefault(name, span)

    visit(body.statements)
    return {name: span for name, span in updated.items() if name not in bound}
