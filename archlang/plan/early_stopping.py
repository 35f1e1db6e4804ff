"""The setting `patience`, which ends a run early."""

from collections.abc import Mapping

from archlang.diagnostics import Report
from archlang.names.values import Bound
from archlang.plan import mistakes
from archlang.source import Span
from archlang.types import Dim

EVALUATIONS = 10
"""How often a run evaluates its selecting metric, unless `every` or `patience` says otherwise."""


def check_patience(statics: Mapping[str, Bound], span: Span, report: Report) -> None:
    """Warns of a patience that the evaluations of a run cannot exhaust before its end, if their number is known. `span`
    is the place of a setting without one."""
    steps, epochs, every, patience = (_number(statics.get(name)) for name in ("steps", "epochs", "every", "patience"))
    if not patience or not (steps or epochs):
        return
    if steps:
        evaluations = -(-steps // (every or max(steps // EVALUATIONS, 1)))
    elif every:
        return  # the number of batches of an epoch is not known
    else:
        evaluations = epochs
    # The first evaluation is the best so far, and the last one is at the end of the run.
    if patience > evaluations - 2:
        bound = statics["patience"]
        report(mistakes.endless_patience(bound.span or span, patience, evaluations, bool(steps)))


def _number(bound: Bound | None) -> int:
    value = None if bound is None else bound.value
    return value.constant or 0 if isinstance(value, Dim) else 0
