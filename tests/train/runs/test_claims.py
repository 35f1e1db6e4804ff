"""A claim finds its measurement; statistics over seeds have values computed by hand."""

import math
import statistics
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from archlang.plan.from_file import plan_recipe
from archlang.plan.plan import PublishedResult
from archlang.tasks.kit.metrics import Tally
from archlang.train.record.schemas import Results
from archlang.train.runs.claims import ClaimVerdict, SeedStatistics, judge, measured_claims, paired_test
from archlang.train.score import Score


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


# Four items: right, right, wrong, right.
TALLIES = {"accuracy": Tally(np.array([1, 1, 0, 1]), np.ones(4, dtype=np.int64))}
GROUPS = {"length": np.array([5, 5, 6, 6]), "ignore": np.array([10, 98, 10, 98])}
SPLIT = Score("test", 0.5, TALLIES, GROUPS, 4).result()
RESULTS = Results(best_step=1, breakdown="length", splits={"test": SPLIT})


@pytest.mark.parametrize(
    ("claim", "measured"),
    [
        ("test.accuracy = 1.00", "0.750"),
        ("test.accuracy[5] = 1.00", "1.000"),
        ("test.accuracy[7] = 1.00", "no such group"),
        ("test.accuracy[6] = 1.00 at test.ignore = 0.98", "1.000"),
        ("test.accuracy = 1.00 at test.ignore = 0.1", "0.500"),
        ("test.accuracy = 1.00 at task.order = forward", "0.750"),
        ("test.accuracy = 1.00 at task.order = backward", "not run"),
        ("test.accuracy = 1.00 at task.order = forward, test.length = 6", "0.500"),
        ("test.accuracy = 1.00 at model.steps = 2, task.train_size = 30", "0.750"),
        ("test.last_accuracy = 1.00", "not run"),
        ("test.last_accuracy[7] = 1.00", "not run"),
        ("valid.accuracy = 1.00", "not run"),
        ("valid.accuracy[5] = 1.00", "not run"),
        ("test.loss = 0.50", "0.500"),
    ],
)
def test_a_claim_finds_its_measurement_or_says_why_there_is_none(claim: str, measured: str, program: Path) -> None:
    text = program.read_text()
    program.write_text(text[: text.index("claim")] + f'claim {claim} from "nobody"\n}}\n')
    (comparison,) = measured_claims(plan_recipe(program), RESULTS)
    assert comparison.measured_text == measured


def test_a_claim_reads_as_the_recipe_writes_it(program: Path) -> None:
    of_split, of_group = measured_claims(plan_recipe(program), RESULTS)
    assert (of_split.metric, of_group.metric) == ("test.accuracy", "test.accuracy[5]")
    assert of_split.deviation == 0.02
