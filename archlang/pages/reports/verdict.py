"""Compares a measured result with the claim of a paper."""

from __future__ import annotations

from enum import Enum

from archlang.pages.reports.statistics import Summary
from archlang.plan.plan import PublishedResult

# Papers print results with this precision.
_ROUNDING = 0.005


class Verdict(Enum):
    """How a measured result relates to a claim."""

    REPRODUCED = "reproduced"
    BELOW = "below"
    ABOVE = "above"
    NOT_RUN = "not run"


def judge(claim: PublishedResult, summary: Summary | None) -> Verdict:
    """Returns the verdict on a claim.

    A claim is reproduced if its distance to the mean is at most its deviation or rounding, or if it is in the 95 %
    interval of the mean."""
    if summary is None:
        return Verdict.NOT_RUN
    tolerance = max(claim.deviation or 0.0, _ROUNDING)
    low, high = summary.interval or (summary.mean, summary.mean)
    if abs(summary.mean - claim.value) <= tolerance + 1e-9 or low <= claim.value <= high:
        return Verdict.REPRODUCED
    return Verdict.BELOW if summary.mean < claim.value else Verdict.ABOVE
