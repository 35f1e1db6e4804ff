"""The weights of a model's charges, which the line `train` sets as `charges.NAME`."""

from collections.abc import Iterable, Mapping

from archlang.diagnostics import Report
from archlang.graph.graph import Graph
from archlang.graph.operations import CHARGES, Charge, Halting
from archlang.names.values import Bound
from archlang.plan import mistakes
from archlang.source import Span
from archlang.syntax.tree import Name, StaticParameter


def weight_parameter(path: str) -> StaticParameter | None:
    """Returns the static of a path such as `train.charges.balance`; None for a path of another form."""
    name = path.removeprefix("train.")
    if name == path or not is_weight(name):
        return None
    return StaticParameter(name=name, kind="float", span=None)  # type: ignore[arg-type]  # no program declares it


def is_weight(name: str) -> bool:
    """Whether a static of the line `train` has the name of a charge's weight."""
    return name.startswith(CHARGES) and name.removeprefix(CHARGES).isidentifier()


def charge_names(graph: Graph) -> tuple[str, ...]:
    """Returns the names of the charges of a model, in order of first appearance."""
    charges = (node.operation.name for node in graph.region.walk() if isinstance(node.operation, Charge))
    return tuple(dict.fromkeys(charges))


def check_claimed(paths: Iterable[Name], graph: Graph, model: str, report: Report) -> None:
    """Reports paths of claims that name the weight of a charge that a model does not have."""
    for path in paths:
        if weight_parameter(path.text) is not None:
            require_charge(path.text.removeprefix(f"train.{CHARGES}"), path.span, graph, model, report)


def check_weights(statics: Mapping[str, Bound], graph: Graph, model: str, span: Span, report: Report) -> None:
    """Reports weights of charges that a model does not have; `span` is the place of a weight without one."""
    for name, bound in statics.items():
        if is_weight(name):
            require_charge(name.removeprefix(CHARGES), bound.span or span, graph, model, report)


def require_charge(charge: str, span: Span, graph: Graph, model: str, report: Report) -> None:
    """Reports a charge that a model does not have."""
    names = charge_names(graph)
    if charge not in names:
        halts = any(isinstance(node.operation, Halting) for node in graph.region.walk())
        report(mistakes.unknown_charge(span, charge, model, names, halts))
