"""The graphs of the models of a file, shared by all points of recipes with equal statics and sizes of their model."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property

from archlang.elaborate import mistakes as elaborate_mistakes
from archlang.elaborate.binding import TASK_SIZES, Binding
from archlang.elaborate.elaborator import elaborate
from archlang.elaborate.static_arguments import evaluated, evaluator_of, parameter_kind, static_value
from archlang.errors import ProgramError, Report, ignore
from archlang.errors.effort import is_check, memoized
from archlang.errors.log import DiagnosticLog
from archlang.errors.source import Span, on_command_line
from archlang.graph import operations
from archlang.graph.causality import Leak, find_leak
from archlang.graph.graph import Graph
from archlang.graph.prune import normalize
from archlang.plan.overrides import parse_overrides
from archlang.plan.statics import model_sizes
from archlang.resolve import mistakes as name_mistakes
from archlang.resolve.resolve import Declaration, ResolvedFile
from archlang.resolve.values import BlockValue, Bound, InstanceValue, Unknown, Value, show
from archlang.syntax.tree import Definition, Name, walk
from archlang.types import Axis, Type
from archlang.types.statics import StaticValue, Symbol


@dataclass(frozen=True, eq=False)
class Elaborated:
    """The graph of a model, the type of its result and those of its inputs, as `elaborate` returns them."""

    graph: Graph | None
    result: Type | None
    inputs: tuple[Type, ...]

    @cached_property
    def leak(self) -> Leak | None:
        """The leak of the field that a causal model predicts: the only one, or the target, which is the last."""
        return None if self.graph is None else find_leak(self.graph, self.graph.region.inputs[-1].name)

    @cached_property
    def may_have_weights(self) -> bool:
        """Whether the results of the graph need weights, or blocks whose signatures do not say."""
        instances = {} if self.graph is None else normalize(self.graph).instances
        return any(not instance.pure and instance.costs.parameters != 0 for instance in instances.values())


def elaborate_model(
    model: Declaration,
    statics: Mapping[str, Bound],
    sizes: Mapping[str, Bound],
    span: Span,
    report: Report,
    may_be_unknown: bool,
) -> Elaborated:
    """Elaborates a model; one without mistakes once for equal texts, statics and `sizes`, which are those of the
    task."""
    bounds = {**sizes, **{f"model.{name}": bound for name, bound in statics.items()}}
    are_texts = all(_is_its_text(bound.value) for bound in bounds.values())
    return memoized(
        (_content(model), _texts(bounds), may_be_unknown, is_check()) if are_texts else None,
        lambda: Elaborated(*elaborate(model, statics, sizes, span, report, may_be_unknown=may_be_unknown)),
        is_graph=True,
    )


def _content(declaration: Declaration) -> Hashable:
    """What a block depends on, with the places that its graph has."""
    return declaration.file.content_of(declaration.item, with_places=True)


def _texts(bounds: Mapping[str, Bound]) -> frozenset[tuple[str, type, str, Hashable]]:
    """Returns what values depend on: their types and texts, and for blocks their definitions and statics."""
    return frozenset(
        (name, type(bound.value), show(bound.value), _block(bound.value)) for name, bound in bounds.items()
    )


def _block(value: Value) -> Hashable:
    return (_content(value.declaration), _texts(value.settled)) if isinstance(value, BlockValue) else None


def _is_its_text(value: Value) -> bool:
    """Whether values of one type with equal texts are equal. Blocks have definitions and statics, too."""
    if isinstance(value, tuple):
        return not any(isinstance(item, BlockValue) for item in value) and all(_is_its_text(item) for item in value)
    if isinstance(value, BlockValue):
        return all(_is_its_text(bound.value) for bound in value.settled.values())
    return not isinstance(value, InstanceValue | Unknown)


def have_same_weights(left: Graph, right: Graph) -> bool:
    """Whether two graphs of one model have weights of the same names, blocks and sizes."""
    left, right = normalize(left), normalize(right)
    return _weights(left) == _weights(right) and _copies(left) == _copies(right)


def _weights(graph: Graph) -> set[tuple[str, str, tuple[tuple[str, str], ...]]]:
    return {
        (path, instance.block, tuple(sorted((name, str(size)) for name, size in instance.features.items())))
        for path, instance in graph.instances.items()
        if not instance.pure
    }


def _copies(graph: Graph) -> dict[str, int]:
    stacks = (node.operation for node in graph.region.walk() if isinstance(node.operation, operations.OwnWeights))
    return {stack.path: stack.count for stack in stacks}


# Without a recipe


def model_graph(resolved: ResolvedFile, name: str | None, statics: Mapping[str, StaticValue]) -> Graph:
    """Elaborates the model of a file called `name`, or its first. `statics` are the model's own, and sizes that a task
    would give, such as `vocab` and `classes`.

    Raises:
        ProgramError: the file has mistakes, no such model, or the model has no such static."""
    report = DiagnosticLog()
    model = _find_model(resolved, name)
    _require_known(model, statics)
    sizes = {size: value for size in ("vocab", "classes") if isinstance(value := statics.get(size), int)}
    bound = {static: Bound(evaluated(value), None) for static, value in statics.items() if static not in sizes}
    for parameter in model.item.signature.statics:
        value = statics.get(parameter.name)
        if isinstance(value, Symbol) and parameter_kind(parameter, resolved) == "block":
            expression = parse_overrides({parameter.name: value.text})[parameter.name].value
            block = static_value(parameter, expression, evaluator_of(resolved, report), resolved, report)
            bound[parameter.name] = Bound(block, None)
    graph, _, _ = elaborate(model, bound, model_sizes(sizes), model.span, report)
    report.stop_at_errors()
    if graph is None:
        used = {node.text for node in walk(model.item) if isinstance(node, Name)}
        features = Binding(model, model.span, bound, ignore).named_sizes(Axis.FEATURE)
        missing = [size for size in (*TASK_SIZES, *features) if size in used and size not in statics]
        raise ProgramError([elaborate_mistakes.needs_task(model.span, model.name, missing)])
    return graph


def _find_model(resolved: ResolvedFile, name: str | None) -> Declaration:
    """The model called `name`, which may be a block, or the first model.

    Raises:
        ProgramError: there is none."""
    words = {key: each.item.word for key, each in resolved.own.items() if isinstance(each.item, Definition)}
    models, blocks = ([key for key in words if words[key] == word] for word in ("model", "block"))
    chosen = name or next(iter(models), None)
    if chosen is None:
        raise ProgramError([name_mistakes.no_model(Span(resolved.program.source, 0, 0), blocks)])
    if chosen not in words:
        raise ProgramError([name_mistakes.unknown_choice(on_command_line(chosen), chosen, models, blocks)])
    return resolved.own[chosen]


def _require_known(model: Declaration, statics: Mapping[str, StaticValue]) -> None:
    """Refuses names that are neither statics of a model nor sizes in its types.

    Raises:
        ProgramError: a name is unknown, or a size of a task is no integer."""
    signature, start = model.item.signature, model.span
    names = {*TASK_SIZES, *(parameter.name for parameter in signature.statics)}
    types = [*(parameter.type for parameter in signature.inputs), *filter(None, [signature.result])]
    names |= {node.text for written in types for node in walk(written) if isinstance(node, Name)}
    for unknown in sorted(statics.keys() - names):
        raise ProgramError([name_mistakes.unknown_static(start, unknown, model.name, names, start)])
    for size in TASK_SIZES:
        if size in statics and (isinstance(statics[size], bool) or not isinstance(statics[size], int)):
            raise ProgramError([name_mistakes.wrong_kind(start, size, "int", f"`{statics[size]}`", None)])
