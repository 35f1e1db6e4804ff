"""Verdicts on claims."""

import pytest

from archlang.pages.reports.statistics import SeedStatistics
from archlang.pages.reports.verdict import ClaimVerdict, judge
from archlang.plan.plan import PublishedResult


def claim(value: float, deviation: float | None = None, median: bool = False) -> PublishedResult:
    return PublishedResult("test.accuracy", None, value, deviation, {}, "a paper", median)


@pytest.mark.parametrize(
    ("values", "published", "verdict"),
    [
        ([0.84, 0.86], claim(0.85), ClaimVerdict.REPRODUCED),
        ([0.80], claim(0.81, 0.02), ClaimVerdict.REPRODUCED),
        ([0.996], claim(1.0), ClaimVerdict.REPRODUCED),
        ([0.99], claim(1.0), ClaimVerdict.BELOW),
        ([0.5, 0.51, 0.49], claim(0.9, 0.05), ClaimVerdict.BELOW),
        ([0.99, 0.98], claim(0.9, 0.05), ClaimVerdict.ABOVE),
        ([0.5, 1.0, 1.0], claim(0.9), ClaimVerdict.REPRODUCED),
        ([], claim(0.9), ClaimVerdict.NOT_RUN),
        ([0.1, 1.0, 1.0, 1.0, 1.0], claim(1.0), ClaimVerdict.REPRODUCED),
        ([0.9, 0.9, 0.9, 0.9, 0.1], claim(0.74), ClaimVerdict.REPRODUCED),
        ([0.9, 0.9, 0.9, 0.9, 0.9], claim(0.74, median=True), ClaimVerdict.ABOVE),
        ([0.1, 0.1, 0.1, 0.1, 0.9], claim(0.26, median=True), ClaimVerdict.REPRODUCED),
        ([0.0, 0.0, 0.3, 0.3, 0.3], claim(0.3, median=True), ClaimVerdict.REPRODUCED),
    ],
)
def test_a_claim_is_reproduced_within_its_deviation_its_rounding_or_the_interval(
    values: list[float], published: PublishedResult, verdict: ClaimVerdict
) -> None:
    assert judge(published, SeedStatistics.of(values)) is verdict
