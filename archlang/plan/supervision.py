"""The setting `supervise`, which needs a model that has a result in each step."""

from collections.abc import Mapping

from archlang.diagnostics import Report
from archlang.graph.graph import Graph
from archlang.graph.loop_layout import has_halting_positions
from archlang.graph.operations import Halting
from archlang.graph.prune import normalize
from archlang.graph.step_results import loop_of_results
from archlang.names.values import Bound
from archlang.plan import mistakes
from archlang.source import Span
from archlang.types.statics import Symbol

_SETTING = "supervise"
_LAST = Symbol("last")


def check_supervision(statics: Mapping[str, Bound], graph: Graph, model: str, span: Span, report: Report) -> None:
    """Reports a setting that scores the steps of a model without results of its steps, or without one halting
    probability for each result; `span` is the place of a setting without one."""
    bound = statics.get(_SETTING)
    if bound is None or bound.value == _LAST:
        return
    loop = loop_of_results(normalize(graph))
    if loop is None:
        report(mistakes.no_step_results(bound.span or span, model, str(bound.value)))
    elif isinstance(loop.operation, Halting):
        instance = graph.instances[loop.operation.instance]
        if instance.per_position and not has_halting_positions(loop, len(loop.types) - 1):
            report(mistakes.no_weight_of_step(bound.span or span, str(bound.value), instance.block, instance.span))
