"""The setting `schedule`, one of whose values moves a static of the optimizer."""

from collections.abc import Mapping

from archlang.diagnostics import Report
from archlang.names.values import Bound
from archlang.plan import mistakes
from archlang.plan.plan import BoundExtern
from archlang.plan.trust import is_shipped
from archlang.source import Span
from archlang.types.statics import Symbol

_MOVED = ("beta1", "beta2")


def check_schedule(statics: Mapping[str, Bound], optimizer: BoundExtern, span: Span, report: Report) -> None:
    """Reports the schedule that moves `beta1`, if an optimizer of the user's own has none; the `where` of the others
    lists their schedules. `span` is the place of a setting without one."""
    if is_shipped(optimizer):
        return
    schedule = statics.get("schedule")
    if schedule is not None and schedule.value == Symbol("onecycle") and not statics.keys() >= set(_MOVED):
        report(mistakes.no_first_beta(schedule.span or span, optimizer.name))
