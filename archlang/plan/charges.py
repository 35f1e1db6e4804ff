"""The weights of a model's charges, which the line `train` sets as `charges.NAME`."""

from collections.abc import Iterable, Mapping

from archlang.diagnostics import Report
from archlang.graph.graph import Graph
from archlang.graph.operations import CHARGES, Charge
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
    names = charge_names(graph)
    for path in paths:
        charge = path.text.removeprefix(f"train.{CHARGES}")
        if weight_parameter(path.text) is not None and charge not in names:
            report(mistakes.unknown_charge(path.span, charge, model, names))


def check_weights(statics: Mapping[str, Bound], graph: Graph, model: str, span: Span, report: Report) -> None:
    """Reports weights of charges that a model does not have; `span` is the place of a weight without one."""
    names = charge_names(graph)
    for name, bound in statics.items():
        charge = name.removeprefix(CHARGES)
        if is_weight(name) and charge not in names:
            report(mistakes.unknown_charge(bound.span or span, charge, model, names))
