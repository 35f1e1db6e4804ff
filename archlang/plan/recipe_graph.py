"""The graph of a recipe's model, with the sizes of its task and checked against it."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from archlang.diagnostics import Diagnostic, Label, Report
from archlang.elaborate import mistakes as elaborate_mistakes
from archlang.elaborate.binding import Binding
from archlang.graph import operations
from archlang.graph.graph import Graph, Instance, Node
from archlang.graph.inline import inline
from archlang.graph.prune import without_losses
from archlang.names.resolve import Declaration
from archlang.names.values import Bound
from archlang.plan import mistakes
from archlang.plan.model_graphs import ModelGraphs
from archlang.plan.recipe import ResolvedRecipe
from archlang.plan.statics import model_sizes
from archlang.plan.task_fit import features_of_fields, find_misfit
from archlang.source import Span
from archlang.syntax.expression_text import expression_text
from archlang.syntax.tree import Extern, Setting

# The values of a point that are shown at a mistake.
_MOST_VALUES = 3


def recipe_graph(
    recipe: ResolvedRecipe,
    task: Binding | None,
    sizes: Mapping[str, int],
    statics: Mapping[str, Bound],
    model_graphs: ModelGraphs,
    point: Mapping[str, Setting] = MappingProxyType({}),
) -> Graph | None:
    """The graph of a recipe's model with the `sizes` of its task; `point` are the settings that are not those of the
    lines of the recipe. None, and a report, if the model has a mistake, does
    not fit the task, sees the future of a task that predicts it, or has no weights."""
    model, choice = recipe.declarations["model"], recipe.parts.choices.get("model")
    if model is None or choice is None:
        return None
    span, report = choice.value.span, _at_point(recipe, point, choice.value.span)
    ambient = model_sizes(sizes)
    if task is not None:
        ambient |= features_of_fields(task, model)
    # After a mistake in the task, its sizes are unknown.
    sizes_known = task is not None and len(sizes) == len(getattr(task.declaration.item, "gives", ()))
    graph, result, inputs = model_graphs.elaborate(model, statics, ambient, span, report, not sizes_known)
    if graph is None or result is None or task is None:
        return None if task is not None or graph is None or not graph.is_whole else graph
    if sizes_known and (names := graph.unknown_sizes):
        report(elaborate_mistakes.needs_task(span, model.name, names))
        return None
    misfit = find_misfit(task, model, inputs, result) if sizes_known else None
    if misfit is not None:
        name = task.declaration.item.name
        report(mistakes.model_misfits_task(span, model.name, name, misfit.problem, misfit.declared, misfit.expected))
        return None
    leak = _leak(task, graph, model, span, model_graphs) or _leak_of_targets(graph, model, span)
    if leak is not None:
        _at_point(recipe, point)(leak)
        return None
    if graph.is_whole and not model_graphs.may_have_weights(graph):
        report(mistakes.no_weights(span, recipe.name, model.name))
        return None
    return graph if graph.is_whole else None


def _at_point(recipe: ResolvedRecipe, point: Mapping[str, Setting], model: Span | None = None) -> Report:
    """Returns the report of a recipe's mistakes, which adds the values that the model has here to a mistake in a body,
    or, without settings of the point, `model`, the place of the model in the recipe."""
    settings = [setting for path, setting in point.items() if path.startswith("model.")]
    labels = [Label(each.value.span, f"with `{each.path.text} = {expression_text(each.value)}`") for each in settings]
    if model is not None and not labels:
        labels = [Label(model, f"in the recipe `{recipe.name}`")]

    def report(diagnostic: Diagnostic) -> None:
        places = [diagnostic.span, *(label.span for label in diagnostic.labels)]
        # A place within the value shows it already.
        missing = [label for label in labels if not any(map(label.span.contains, places))]
        recipe.report(replace(diagnostic, point=tuple(missing[:_MOST_VALUES])) if diagnostic.is_error else diagnostic)

    return report


def _leak(task: Binding, graph: Graph, model: Declaration, span: Span, model_graphs: ModelGraphs) -> Diagnostic | None:
    """The diagnostic of a model that reads later positions of a task that predicts them; None if it does not."""
    item = task.declaration.item
    assert isinstance(item, Extern)
    if not item.causal:
        return None
    # The model predicts the last field: the only one, or the target.
    origin = graph.region.inputs[-1].name
    leak = model_graphs.find_leak(graph, origin)
    if leak is None:
        return None
    culprit = leak.culprit
    name, instance = _node_name(culprit, graph), _not_causal(culprit, graph)
    path = [origin, name, *(_node_name(node, graph) for node in leak.carriers), "result"]
    labels = [Label(span, f"`{item.name}` predicts each position from earlier ones")]
    labels += [
        Label(node.span, "passed on here")
        for node in leak.carriers[:2]
        if node.span is not None and isinstance(node.operation, operations.Call | operations.Apply)
    ]
    return mistakes.sees_future(
        culprit.span or span,
        model.name,
        item.name,
        name,
        leak.reason,
        _without_repeats(path),
        labels,
        instance is not None,
        instance.span if instance and instance.span and instance.span.text.startswith(instance.block) else None,
        _has_one_length(culprit, graph),
    )


def _has_one_length(node: Node, graph: Graph) -> bool:
    """Whether the sequences that a node reads have the same length."""
    types = {inner.id: inner.types[0] for inner in graph.region.walk() if inner.types}
    for region in (graph.region, *(body for inner in graph.region.walk() for body in inner.regions)):
        types |= {value.id: value.type for value in region.inputs}
    return len({types[source].dims[0] for source in node.arguments if types[source].name == "seq"}) <= 1


def _not_causal(node: Node, graph: Graph) -> Instance | None:
    """Returns the instance of a node, if it has a static `causal`, which is false."""
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
