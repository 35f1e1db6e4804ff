"""Whether what was measured is what a paper claims."""

from __future__ import annotations

from enum import Enum

from archlang.pages.reports.statistics import Summary
from archlang.plan.plan import PublishedResult

# A claim is printed with so many digits, and is not known more exactly.
_ROUNDING = 0.005


class Verdict(Enum):
    """What a table says beside a claim."""

    REPRODUCED = "reproduced"
    BELOW = "below"
    ABOVE = "above"
    NOT_RUN = "not run"


def judge(claim: PublishedResult, summary: Summary | None) -> Verdict:
    """A claim is reproduced if the mean lies within its deviation (or its rounding, where that is more), or if it lies
    within the 95 % interval of the mean."""
    if summary is None:
        return Verdict.NOT_RUN
    within = max(claim.deviation or 0.0, _ROUNDING)
    low, high = summary.interval or (summary.mean, summary.mean)
    if abs(summary.mean - claim.value) <= within + 1e-9 or low <= claim.value <= high:
        return Verdict.REPRODUCED
    return Verdict.BELOW if summary.mean < claim.value else Verdict.ABOVE
