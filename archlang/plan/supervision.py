"""The setting `supervise`, which needs a model that has a result in each step."""

from collections.abc import Mapping

from archlang.diagnostics import Report
from archlang.graph.graph import Graph
from archlang.graph.prune import normalize
from archlang.graph.step_results import loop_of_results
from archlang.names.values import Bound
from archlang.plan import mistakes
from archlang.source import Span
from archlang.types.statics import Symbol

_SETTING = "supervise"
_LAST = Symbol("last")


def check_supervision(statics: Mapping[str, Bound], graph: Graph, model: str, span: Span, report: Report) -> None:
    """Reports a setting that scores the steps of a model without results of its steps; `span` is the place of a setting
    without one."""
    bound = statics.get(_SETTING)
    if bound is not None and bound.value != _LAST and loop_of_results(normalize(graph)) is None:
        report(mistakes.no_step_results(bound.span or span, model, str(bound.value)))
