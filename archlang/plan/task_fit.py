"""Whether a model takes what a task gives it, and gives what the task scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from archlang.elaborate.binding import Binding
from archlang.names.resolve import Declaration
from archlang.names.values import (
    Bound,
)
from archlang.source import Span
from archlang.syntax.printer import unparse
from archlang.syntax.tree import Expression, InputParameter, Name, TypeName
from archlang.types import Dim, Type


@dataclass(frozen=True)
class Misfit:
    """What keeps a model and a task apart: a sentence, and the place in either signature."""

    problem: str
    declared: Span
    wanted: Span


def find_misfit(task: Binding, model: Declaration, inputs: Sequence[Type], result: Type) -> Misfit | None:
    """The first thing by which a model with these types does not fit a task; None if it fits."""
    item, signature = task.declaration.item, model.item.signature
    fields = item.signature.inputs
    if len(fields) != len(inputs):
        listed = ", ".join(f"`{field.name}`" for field in fields)
        problem = f"the task has the fields {listed}, and the model takes {len(inputs)}"
        return Misfit(problem, _result_span(model), _result_span(task.declaration))
    lengths: dict[str, Dim] = {}
    for field, parameter, found in zip(fields, signature.inputs, inputs, strict=True):
        problem = _field_problem(task, field, found) or _length_problem(fields, field, found, lengths)
        if problem:
            return Misfit(problem, parameter.span, field.span)
    problem = _result_problem(task, lengths, result)
    return Misfit(problem, _result_span(model), _result_span(task.declaration)) if problem else None


def features_of_fields(task: Binding, model: Declaration) -> dict[str, Bound]:
    """The sizes of features that a model names in its inputs and leaves to the task: `k` of `priority: seq[n, k]`."""
    statics = {static.name for static in model.item.signature.statics}
    found: dict[str, Bound] = {}
    for field, parameter in zip(task.declaration.item.signature.inputs, model.item.signature.inputs, strict=False):
        if field.type.name != "seq" or parameter.type.name != "seq" or len(parameter.type.dimensions) != 2:
            continue
        size, given = parameter.type.dimensions[-1], _feature(task, field)
        if given is not None and isinstance(size, Name) and len(size.parts) == 1 and size.text not in statics:
            found.setdefault(size.text, Bound(given, parameter.span))
    return found


def _field_problem(task: Binding, field: InputParameter, found: Type) -> str:
    if field.type.name != found.name:
        return f"its field `{field.name}` is `{field.type.name}`, and the model takes `{found}`"
    given = _feature(task, field) if field.type.name == "seq" else None
    if given is not None and given != found.feature:
        return f"its field `{field.name}` has {given} features at each position, and the model takes `{found}`"
    if field.type.name == "tokens":
        # Only where both are known: a model that is not yet instantiated has symbols.
        given = _feature(task, field) or _given(task, "vocab")
        taken = None if found.feature is None else found.feature.constant
        if given is not None and given.constant is not None and taken not in (None, given.constant):
            return (
                f"its field `{field.name}` has a vocabulary of {given}, and the model takes one of {taken}: "
                f"write `{field.name}: tokens[…, words]` for a source with a vocabulary of its own"
            )
    return ""


def _length_problem(
    fields: Sequence[InputParameter], field: InputParameter, found: Type, lengths: dict[str, Dim]
) -> str:
    """Notes which length of the model each length of the task is; two of the task's must not be one of the model's."""
    for size, length in zip(field.type.dimensions, found.lengths, strict=False):
        if not isinstance(size, Name):
            continue
        if length.symbol is None:
            return f"its field `{field.name}` has any length, and the model takes the length {length} only"
        other = next((name for name, known in lengths.items() if known == length and name != size.text), None)
        if other is not None:
            owner = next(one.name for one in fields if other in [unparse(size) for size in one.type.dimensions])
            both = f"its fields `{owner}` and `{field.name}` differ in length"
            return f"{both}, and the model gives both the length `{length}`"
        lengths.setdefault(size.text, length)
    return ""


def _feature(task: Binding, field: InputParameter) -> Dim | None:
    return _size(task, field.type.dimensions[-1]) if len(field.type.dimensions) == 2 else None


def _result_problem(task: Binding, lengths: dict[str, Dim], result: Type) -> str:
    wanted = task.declaration.item.signature.result
    if not isinstance(wanted, TypeName):
        return ""
    sizes = list(_wanted(task, wanted, lengths))
    name = "vec" if len(sizes) == 1 else "seq"
    if result.name == name and all(
        size is None or size == found for size, found in zip(sizes, result.dims, strict=True)
    ):
        return ""
    shown = ", ".join(
        unparse(written) if size is None else str(size) for written, size in zip(wanted.dimensions, sizes, strict=True)
    )
    return f"the task scores `logits[{shown}]`, and the model gives `{result}`"


def _wanted(task: Binding, wanted: TypeName, lengths: dict[str, Dim]) -> Iterator[Dim | None]:
    for size in wanted.dimensions:
        known = lengths.get(size.text) if isinstance(size, Name) else None
        yield known if known is not None else _size(task, size)


def _size(task: Binding, written: Expression) -> Dim | None:
    """A size in a task's signature: one that it gives, or one that is made of its statics."""
    known = _given(task, written.text) if isinstance(written, Name) else None
    if known is not None:
        return known
    value = task.evaluator.value(written, "int")
    return value if isinstance(value, Dim) else None


def _given(task: Binding, name: str) -> Dim | None:
    for given in getattr(task.declaration.item, "gives", ()):
        if given.name == name:
            value = task.evaluator.value(given.value, "int")
            return value if isinstance(value, Dim) else None
    return None


def _result_span(declaration: Declaration) -> Span:
    result = declaration.item.signature.result
    return declaration.item.name_span if result is None else result.span
