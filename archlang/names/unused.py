"""Warns about names that a definition binds or declares and never uses."""

from collections.abc import Iterator

from archlang.diagnostics import Diagnostic
from archlang.names import mistakes, static_mistakes
from archlang.syntax.tree import (
    Assign,
    Body,
    Definition,
    Emit,
    Experts,
    Halting,
    If,
    Let,
    Missing,
    Name,
    Repeat,
    Scan,
    Stack,
    Update,
)
from archlang.syntax.walk import walk


def unused_names(definition: Definition) -> Iterator[Diagnostic]:
    """Yields a warning for each static that a definition declares, and each value or instance that it binds, and does
    not mention elsewhere; none if a line could not be read, which may mention it."""
    mentioned: set[str] = set()
    binders: list[Assign | Let | Repeat | Stack | Halting | Scan | Experts] = []
    for node in walk(definition):
        match node:
            case Name(parts=parts):
                mentioned.add(parts[0])
            case Halting(state=state):
                mentioned.add(state)
                binders.append(node)
            case Update(name=name):
                mentioned.add(name)
            case Missing():
                return
            case Assign() | Let() | Repeat() | Stack() | Scan() | Experts():
                binders.append(node)
    for static in definition.signature.statics:
        if static.name not in mentioned and not static.name.startswith("_"):
            yield static_mistakes.unused_static(static.span, static.name)
    for binder in binders:
        if isinstance(binder, Assign | Let):
            if binder.name not in mentioned and not binder.name.startswith("_"):
                yield mistakes.unused_name(binder.name_span, binder.name, binder.span)
        elif binder.target is None and not isinstance(binder, Experts) and _emits(binder.body):
            yield mistakes.unused_result(binder.span)
        elif binder.target is not None and binder.target not in mentioned:
            yield mistakes.unused_name(binder.target_span or binder.span, binder.target, None)


def _emits(body: Body | None) -> bool:
    """Returns whether the steps of a loop emit a value; inner loops have results of their own."""
    for statement in () if body is None else body.statements:
        if isinstance(statement, Emit) or (
            isinstance(statement, If) and (_emits(statement.then) or _emits(statement.otherwise))
        ):
            return True
    return False
