"""The settings `supervise` and `halt`, which need a model that has a result in each step, and a charge."""

from collections.abc import Mapping

from archlang.diagnostics import Report
from archlang.graph.graph import NUMBER, Graph
from archlang.graph.loop_layout import has_halting_positions
from archlang.graph.operations import Halting, Repeat
from archlang.graph.prune import normalize
from archlang.graph.step_results import loop_of_results
from archlang.names.values import Bound
from archlang.plan import mistakes
from archlang.plan.charges import require_charge
from archlang.source import Span
from archlang.types.statics import Symbol

_SETTING = "supervise"
_HALT = "halt"
_CARRIED, _NONE = Symbol("carried"), Symbol("none")
_BY_STEP = (Symbol("mean"), Symbol("every"), _CARRIED)


def check_supervision(statics: Mapping[str, Bound], graph: Graph, model: str, span: Span, report: Report) -> None:
    """Reports a setting that scores the steps of a model without results of its steps, or without one halting
    probability for each result; one that carries the states of another loop than a `repeat` with a fixed number of
    steps; and a charge for halting that the model does not have. `span` is the place of a setting without one."""
    supervise, halt = statics.get(_SETTING), statics.get(_HALT)
    if supervise is not None and supervise.value in _BY_STEP:
        _check_loop(supervise, graph, model, supervise.span or span, report)
    is_carried = supervise is not None and supervise.value == _CARRIED  # else `where` reports `halt`
    if not is_carried or halt is None or halt.value in (None, _NONE):
        return
    require_charge(str(halt.value), halt.span or span, graph, model, report)


def _check_loop(supervise: Bound, graph: Graph, model: str, span: Span, report: Report) -> None:
    loop = loop_of_results(normalize(graph))
    if loop is None:
        report(mistakes.no_step_results(span, model, str(supervise.value)))
    elif supervise.value == _CARRIED:
        if not isinstance(loop.operation, Repeat) or loop.operation.drawn:
            report(mistakes.not_carried(span, model))
        elif NUMBER in loop.types:
            report(mistakes.carried_number(span, model))
    elif isinstance(loop.operation, Halting):
        instance = graph.instances[loop.operation.instance]
        if instance.per_position and not has_halting_positions(loop, len(loop.types) - 1):
            report(mistakes.no_weight_of_step(span, str(supervise.value), instance.block, instance.span))
