"""The graph of a model without a recipe, from its name and its statics."""

from collections.abc import Mapping

from archlang.diagnostics import ProgramError
from archlang.diagnostics.log import DiagnosticLog
from archlang.elaborate import mistakes as elaborate_mistakes
from archlang.elaborate.binding import TASK_SIZES
from archlang.elaborate.elaborator import elaborate
from archlang.elaborate.static_arguments import evaluated, parameter_kind
from archlang.graph.graph import Graph
from archlang.names import mistakes as name_mistakes
from archlang.names import static_mistakes
from archlang.names.resolve import Declaration, ResolvedFile
from archlang.names.values import BlockValue, Bound
from archlang.plan.statics import model_sizes
from archlang.source import Span, on_command_line
from archlang.syntax.tree import Definition, Name
from archlang.syntax.walk import walk
from archlang.types.statics import StaticValue, Symbol


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
            block = resolved.find(value.text)
            if block is not None:
                bound[parameter.name] = Bound(BlockValue(block), None)
    graph, _, _ = elaborate(model, bound, model_sizes(sizes), model.span, report)
    report.stop_at_errors()
    if graph is None:
        raise ProgramError([elaborate_mistakes.needs_task(model.span, model.name, ("vocab", "classes"))])
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
        raise ProgramError([static_mistakes.unknown_static(start, unknown, model.name, names, start)])
    for size in TASK_SIZES:
        if size in statics and (isinstance(statics[size], bool) or not isinstance(statics[size], int)):
            raise ProgramError([static_mistakes.wrong_kind(start, size, "int", f"`{statics[size]}`", None)])
