"""Statistics over seeds against values computed by hand."""

import math
import statistics
from itertools import product

import pytest

from archlang.plan.plan import PublishedResult
from archlang.reports.claims import ClaimVerdict, SeedStatistics, judge, paired_test


def test_mean_median_and_deviation_are_those_of_the_sample() -> None:
    values = [0.9, 1.0, 0.5, 0.8]
    result = SeedStatistics.of(values)
    assert result is not None
    assert result.mean == pytest.approx(statistics.mean(values))
    assert result.median == pytest.approx(statistics.median(values))
    assert result.deviation == pytest.approx(statistics.stdev(values))
    assert result.seeds == 4


def test_no_finite_value_has_no_statistics() -> None:
    assert SeedStatistics.of([]) is None
    assert SeedStatistics.of([math.nan]) is None


def test_the_interval_contains_the_mean_and_is_deterministic() -> None:
    values = [0.2, 0.4, 0.9, 0.95, 1.0]
    first, second = SeedStatistics.of(values), SeedStatistics.of(values)
    assert first == second
    assert first is not None
    assert first.interval is not None
    low, high = first.interval
    assert min(values) <= low < first.mean < high <= max(values)


def test_a_bootstrap_of_two_values_has_the_quantiles_of_their_resamples() -> None:
    # Means of two draws of 0 and 1: a quarter of them 0, a quarter 1, so the outer fortieths are 0 and 1.
    result = SeedStatistics.of([0.0, 1.0])
    assert result is not None
    assert result.interval == (0.0, 1.0)


def test_solved_counts_the_seeds_that_reach_the_threshold() -> None:
    result = SeedStatistics.of([0.99, 0.98, 1.0])
    assert result is not None
    assert result.solved() == 2
    assert result.solved(0.985) == 2
    assert result.solved(0.9) == 3


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


@pytest.mark.parametrize("pairs", [[(0.9, 0.1), (0.8, 0.3), (0.5, 0.7)], [(1.0, 1.0)], [(0.3, 0.1), (0.1, 0.3)]])
def test_the_paired_test_counts_every_combination_of_signs(pairs: list[tuple[float, float]]) -> None:
    differences = [left - right for left, right in pairs]
    sums = [
        sum(sign * difference for sign, difference in zip(signs, differences, strict=True))
        for signs in product((1, -1), repeat=len(pairs))
    ]
    expected = sum(abs(total) >= abs(sum(differences)) - 1e-12 for total in sums) / len(sums)
    left, right = zip(*pairs, strict=True)
    assert paired_test(left, right) == pytest.approx(expected)
    assert paired_test([0.5 + 0.01 * i for i in range(20)], [0.5] * 20) < 0.01
