"""The setting `sign_sgd`, which names instances of the model."""

from collections.abc import Mapping

from archlang.diagnostics import Report
from archlang.graph.graph import Graph
from archlang.graph.prune import normalize
from archlang.names.values import BlockValue, Bound
from archlang.plan import mistakes
from archlang.plan.plan import BoundExtern
from archlang.plan.trust import is_shipped
from archlang.source import Span


def check_sign_sgd(
    statics: Mapping[str, Bound], optimizer: BoundExtern, graph: Graph, model: str, span: Span, report: Report
) -> None:
    """Reports names of instances that a model does not have, and an optimizer of the user's own, which moves every
    weight; `span` is the place of a setting without one."""
    bound = statics.get("sign_sgd")
    if bound is None or not isinstance(bound.value, tuple) or not bound.value:
        return
    if not is_shipped(optimizer):
        report(mistakes.no_sign_sgd(bound.span or span, optimizer.name))
        return
    names = dict.fromkeys(name for path in normalize(graph).instances for name in path.split("."))
    for value in bound.value:
        name = value.declaration.name if isinstance(value, BlockValue) else str(value)
        if name not in names:
            report(mistakes.unknown_instance(bound.span or span, name, model, names))
