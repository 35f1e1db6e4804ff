"""The graph of a recipe's model, with the sizes of its task and checked against it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from archlang.elaborate import mistakes as elaborate_mistakes
from archlang.elaborate.binding import TASK_SIZES, Binding, size_words
from archlang.errors import Diagnostic, Label, Report, Span
from archlang.graph import operations
from archlang.graph.causality import Leak
from archlang.graph.graph import Graph, Instance, Node
from archlang.graph.inline import inline
from archlang.graph.prune import without_losses
from archlang.plan import mistakes
from archlang.plan.model_graphs import elaborate_model
from archlang.plan.recipe import ResolvedRecipe
from archlang.plan.statics import model_sizes
from archlang.resolve.resolve import Declaration
from archlang.resolve.values import Bound
from archlang.syntax.printer import unparse
from archlang.syntax.tree import Expression, InputParameter, Name, Setting, TypeName
from archlang.types import Dim, Type

# The values of a point that are shown at a mistake.
_MOST_VALUES = 3


def recipe_graph(
    recipe: ResolvedRecipe,
    task: Binding | None,
    sizes: Mapping[str, int],
    statics: Mapping[str, Bound],
    point: Mapping[str, Setting] = MappingProxyType({}),
) -> Graph | None:
    """The graph of a recipe's model with the `sizes` of its task; `point` are the settings that are not those of the
    lines of the recipe. None, and a report, if the model has a mistake, does
    not fit the task, sees the future of a task that predicts it, or has no weights."""
    model, choice = recipe.declarations["model"], recipe.parts.choices.get("model")
    if model is None or choice is None:
        return None
    span, report = choice.value.span, report_at_point(recipe, point, choice.value.span)
    ambient = model_sizes(sizes)
    if task is not None:
        ambient |= features_of_fields(task, model)
    # After a mistake in the task, its sizes are unknown.
    sizes_known = task is not None and len(sizes) == len(getattr(task.declaration.item, "gives", ()))
    elaborated = elaborate_model(model, statics, ambient, span, report, not sizes_known)
    graph, result, inputs = elaborated.graph, elaborated.result, elaborated.inputs
    if graph is None or result is None or task is None:
        return None if task is not None or graph is None else graph
    if sizes_known and (names := graph.unknown_sizes):
        report(elaborate_mistakes.needs_task(span, model.name, names))
        return None
    misfit = find_misfit(task, model, inputs, result) if sizes_known else None
    if misfit is not None:
        problem, declared, expected = misfit
        report(mistakes.model_misfits_task(span, model.name, task.declaration.item.name, problem, declared, expected))
        return None
    future = elaborated.leak if getattr(task.declaration.item, "causal", False) else None
    leak = _sees_future(future, task, graph, model, span) or _leak_of_targets(graph, model, span)
    if leak is not None:
        report_at_point(recipe, point)(leak)
        return None
    if not elaborated.may_have_weights:
        report(mistakes.no_weights(span, recipe.name, model.name))
        return None
    return graph


def report_at_point(recipe: ResolvedRecipe, point: Mapping[str, Setting], model: Span | None = None) -> Report:
    """Returns the report of a recipe's mistakes, which adds the values that the model has here to a mistake in a body,
    or, without settings of the point, `model`, the place of the model in the recipe."""
    settings = [setting for path, setting in point.items() if path.startswith("model.")]
    labels = [Label(each.value.span, f"with `{each.path.text} = {unparse(each.value)}`") for each in settings]
    if model is not None and not labels:
        labels = [Label(model, f"in the recipe `{recipe.name}`")]

    def report(diagnostic: Diagnostic) -> None:
        places = [diagnostic.span, *(label.span for label in diagnostic.labels)]
        # A place within the value shows it already.
        missing = [label for label in labels if not any(map(label.span.contains, places))]
        recipe.report(replace(diagnostic, point=tuple(missing[:_MOST_VALUES])) if diagnostic.is_error else diagnostic)

    return report


def _sees_future(leak: Leak | None, task: Binding, graph: Graph, model: Declaration, span: Span) -> Diagnostic | None:
    """The diagnostic of a model that reads later positions of a task that predicts them; None if it does not."""
    if leak is None:
        return None
    item, culprit = task.declaration.item, leak.culprit
    name, instance = _node_name(culprit, graph), _not_causal(culprit, graph)
    path = [graph.region.inputs[-1].name, name, *(_node_name(node, graph) for node in leak.carriers), "result"]
    labels = [Label(span, f"`{item.name}` predicts each position from earlier ones")]
    return mistakes.sees_future(
        culprit.span or span,
        model.name,
        item.name,
        name,
        leak,
        _without_repeats(path),
        labels,
        instance is not None,
        instance.span if instance and instance.span and instance.span.text.startswith(instance.block) else None,
        _has_one_length(culprit, graph),
    )


def _has_one_length(node: Node, graph: Graph) -> bool:
    types = {inner.id: inner.types[0] for inner in graph.region.walk() if inner.types}
    for region in (graph.region, *(body for inner in graph.region.walk() for body in inner.regions)):
        types |= {value.id: value.type for value in region.inputs}
    return len({types[source].dims[0] for source in node.arguments if types[source].name == "seq"}) <= 1


def _not_causal(node: Node, graph: Graph) -> Instance | None:
    if not isinstance(node.operation, operations.Call | operations.Halting):
        return None
    instance = graph.instances[node.operation.instance]
    return instance if instance.statics.get("causal") is False else None


def _leak_of_targets(graph: Graph, model: Declaration, span: Span) -> Diagnostic | None:
    """The diagnostic of a model whose result depends on the targets; None if only its auxiliary losses do."""
    readers = {path for path, instance in graph.instances.items() if "targets" in instance.caveats}
    needed = readers.intersection(without_losses(inline(graph)).instances) if readers else ()
    for path in sorted(needed):
        return mistakes.reads_targets(graph.instances[path].span or span, model.name, graph.instances[path].block)
    return None


def _node_name(node: Node, graph: Graph) -> str:
    """A node as the program calls it: by its block, or by the name that `let` gives to it."""
    match node.operation:
        case operations.Call(instance=path) | operations.Halting(instance=path):
            block, name = graph.instances[path].block, path.split(".")[-1]
            return block if name.rstrip("0123456789") == f"{block}_" else name
        case operations.Apply(block=block):
            return block
    return node.name or node.operation.mnemonic


def _without_repeats(path: list[str]) -> list[str]:
    return [name for index, name in enumerate(path) if index == 0 or path[index - 1] != name]


# Whether the inputs and the result of a model fit the fields and the scored result of a task


def find_misfit(
    task: Binding, model: Declaration, inputs: Sequence[Type], result: Type
) -> tuple[str, Span, Span] | None:
    """Returns the first reason why a model with these types of inputs and result does not fit a task, with its place in
    each signature; None if it fits."""
    # `check_signature` reports a model with a static in place of a size of its task.
    if any(static.name in TASK_SIZES for static in model.item.signature.statics):
        return None
    item, signature = task.declaration.item, model.item.signature
    fields = item.signature.inputs
    written = ", ".join(f"`{field.name}`" for field in fields)
    if len(fields) != len(inputs):
        problem = f"the task has the fields {written}, and the model takes {len(inputs)}"
        return problem, _result_span(model), _result_span(task.declaration)
    lengths: dict[str, Dim] = {}
    names = [field.name for field in fields]
    for field, parameter, taken in zip(fields, signature.inputs, inputs, strict=True):
        if parameter.name != field.name and parameter.name in names:
            problem = (
                f"its fields are {written}, in this order, and the model takes `{parameter.name}` for `{field.name}`"
            )
            return problem, parameter.span, field.span
        problem = _field_problem(task, field, taken) or _length_problem(fields, field, taken, lengths)
        if problem:
            return problem, parameter.span, field.span
    problem = _result_problem(task, lengths, result)
    return (problem, _result_span(model), _result_span(task.declaration)) if problem else None


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
    for size in getattr(task.declaration.item, "gives", ()):
        if size.name == name:
            value = task.evaluator.value(size.value, "int")
            value = Dim.of(len(size_words(task, name))) if isinstance(value, tuple) else value
            return value if isinstance(value, Dim) else None
    return None


def _result_span(declaration: Declaration) -> Span:
    result = declaration.item.signature.result
    return declaration.item.name_span if result is None else result.span
