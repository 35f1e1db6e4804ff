"""Compares a measured result with the claim of a paper."""

from enum import Enum

from archlang.pages.reports.statistics import SeedStatistics
from archlang.plan.plan import PublishedResult

# Papers print results with this precision.
_ROUNDING = 0.005


class ClaimVerdict(Enum):
    """How a measured result relates to a claim."""

    REPRODUCED = "reproduced"
    BELOW = "below"
    ABOVE = "above"
    NOT_RUN = "not run"
    NO_GROUP = "no such group"

    @property
    def sign(self) -> str:
        return {"reproduced": "✓", "below": "↓", "above": "↑", "not run": "", "no such group": ""}[self.value]


def judge(claim: PublishedResult, statistics: SeedStatistics | None) -> ClaimVerdict:
    """Returns the verdict on a claim.

    A claim is reproduced if its distance to the mean is at most its deviation or rounding, or if it is in the 95 %
    interval of the mean. A claim about the median is compared with the median and its interval."""
    if statistics is None:
        return ClaimVerdict.NOT_RUN
    tolerance = max(claim.deviation or 0.0, _ROUNDING)
    measured = statistics.median if claim.median else statistics.mean
    interval = statistics.median_interval() if claim.median else statistics.interval
    low, high = interval or (measured, measured)
    if abs(measured - claim.value) <= tolerance + 1e-9 or low <= claim.value <= high:
        return ClaimVerdict.REPRODUCED
    return ClaimVerdict.BELOW if measured < claim.value else ClaimVerdict.ABOVE
