"""Whether the inputs and the result of a model fit the fields and the scored result of a task."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from archlang.elaborate.binding import TASK_SIZES, Binding
from archlang.names.resolve import Declaration
from archlang.names.values import Bound
from archlang.source import Span
from archlang.syntax.printer import unparse
from archlang.syntax.tree import Expression, InputParameter, Name, TypeName
from archlang.types import Dim, Type


@dataclass(frozen=True)
class Misfit:
    """Why a model does not fit a task, with the place in each signature."""

    problem: str
    declared: Span
    expected: Span


def find_misfit(task: Binding, model: Declaration, inputs: Sequence[Type], result: Type) -> Misfit | None:
    """Returns the first reason why a model with these types of inputs and result does not fit a task; None if it
    fits. A model with a static in place of a size of its task has another mistake."""
    if any(static.name in TASK_SIZES for static in model.item.signature.statics):
        return None
    item, signature = task.declaration.item, model.item.signature
    fields = item.signature.inputs
    written = ", ".join(f"`{field.name}`" for field in fields)
    if len(fields) != len(inputs):
        problem = f"the task has the fields {written}, and the model takes {len(inputs)}"
        return Misfit(problem, _result_span(model), _result_span(task.declaration))
    lengths: dict[str, Dim] = {}
    names = [field.name for field in fields]
    for field, parameter, taken in zip(fields, signature.inputs, inputs, strict=True):
        if parameter.name != field.name and parameter.name in names:
            problem = (
                f"its fields are {written}, in this order, and the model takes `{parameter.name}` for `{field.name}`"
            )
            return Misfit(problem, parameter.span, field.span)
        problem = _field_problem(task, field, taken) or _length_problem(fields, field, taken, lengths)
        if problem:
            return Misfit(problem, parameter.span, field.span)
    problem = _result_problem(task, lengths, result)
    return Misfit(problem, _result_span(model), _result_span(task.declaration)) if problem else None


def features_of_fields(task: Binding, model: Declaration) -> dict[str, Bound]:
    """Returns the feature sizes that a model names in its inputs and that its task fixes, such as `k` of
    `priority: seq[n, k]`."""
    statics = {static.name for static in model.item.signature.statics}
    features: dict[str, Bound] = {}
    for field, parameter in zip(task.declaration.item.signature.inputs, model.item.signature.inputs, strict=False):
        if field.type.name != "seq" or parameter.type.name != "seq" or len(parameter.type.dimensions) != 2:
            continue
        size, feature = parameter.type.dimensions[-1], _feature(task, field)
        if feature is not None and isinstance(size, Name) and len(size.parts) == 1 and size.text not in statics:
            features.setdefault(size.text, Bound(feature, parameter.span))
    return features


def _field_problem(task: Binding, field: InputParameter, taken: Type) -> str:
    """Why a field does not fit an input of type `taken`; empty if it fits."""
    if field.type.name != taken.name:
        return f"its field `{field.name}` is `{field.type.name}`, and the model takes `{taken}`"
    feature = _feature(task, field) if field.type.name == "seq" else None
    if feature is not None and feature != taken.feature:
        return f"its field `{field.name}` has {feature} features at each position, and the model takes `{taken}`"
    if field.type.name == "tokens":
        # Only if both are known: a model without its task has symbols.
        vocabulary = _feature(task, field) or _task_size(task, "vocab")
        taken_size = None if taken.feature is None else taken.feature.constant
        if vocabulary is not None and vocabulary.constant is not None and taken_size not in (None, vocabulary.constant):
            return (
                f"its field `{field.name}` has a vocabulary of {vocabulary}, and the model takes one of {taken_size}: "
                f"write `{field.name}: tokens[…, words]` for a source with a vocabulary of its own"
            )
    return ""


def _length_problem(
    fields: Sequence[InputParameter], field: InputParameter, taken: Type, lengths: dict[str, Dim]
) -> str:
    """Why the lengths of a field do not fit an input of type `taken`; empty if they fit. Adds them to `lengths`, which
    maps lengths of the task to lengths of the model; no two may map to the same."""
    for size, length in zip(field.type.dimensions, taken.lengths, strict=False):
        if not isinstance(size, Name):
            continue
        if length.symbol is None:
            return f"its field `{field.name}` has any length, and the model takes the length {length} only"
        equal = next(
            (name for name, model_length in lengths.items() if model_length == length and name != size.text), None
        )
        if equal is not None:
            owner = next(earlier.name for earlier in fields if equal in map(unparse, earlier.type.dimensions))
            both = f"its fields `{owner}` and `{field.name}` differ in length"
            return f"{both}, and the model gives both the length `{length}`"
        lengths.setdefault(size.text, length)
    return ""


def _feature(task: Binding, field: InputParameter) -> Dim | None:
    return _size(task, field.type.dimensions[-1]) if len(field.type.dimensions) == 2 else None


def _result_problem(task: Binding, lengths: dict[str, Dim], result: Type) -> str:
    """Why a result does not fit what the task scores; empty if it fits."""
    scored = task.declaration.item.signature.result
    if not isinstance(scored, TypeName):
        return ""
    sizes = list(_scored_sizes(task, scored, lengths))
    last = scored.dimensions[-1] if scored.dimensions else None
    if isinstance(last, Name) and last.text in lengths:
        fits = result.name == "map" and result.lengths == tuple(sizes) and result.feature == Dim.of(1)
    else:
        fits = (result.name, len(result.dims)) in (("vec", 1), ("seq", 2)) and len(sizes) == len(result.dims)
        fits &= all(size is None or size == actual for size, actual in zip(sizes, result.dims, strict=False))
    if fits:
        return ""
    dimensions = zip(scored.dimensions, sizes, strict=True)
    shown = ", ".join(unparse(written) if size is None else str(size) for written, size in dimensions)
    scored_type = f"{scored.name}[{shown}]" if shown else scored.name
    return f"the task scores `{scored_type}`, and the model gives `{result}`"


def _scored_sizes(task: Binding, scored: TypeName, lengths: dict[str, Dim]) -> Iterator[Dim | None]:
    """The sizes of the scored type, lengths as the model has them; None for an unknown size."""
    for size in scored.dimensions:
        length = lengths.get(size.text) if isinstance(size, Name) else None
        yield length if length is not None else _size(task, size)


def _size(task: Binding, written: Expression) -> Dim | None:
    """A size in a task's signature: one of its `gives`, or an expression of its statics."""
    size = _task_size(task, written.text) if isinstance(written, Name) else None
    if size is not None:
        return size
    value = task.evaluator.value(written, "int")
    return value if isinstance(value, Dim) else None


def _task_size(task: Binding, name: str) -> Dim | None:
    """A size of a task's `gives`; None if it gives no size of this name."""
    for size in getattr(task.declaration.item, "gives", ()):
        if size.name == name:
            value = task.evaluator.value(size.value, "int")
            return value if isinstance(value, Dim) else None
    return None


def _result_span(declaration: Declaration) -> Span:
    result = declaration.item.signature.result
    return declaration.item.name_span if result is None else result.span
