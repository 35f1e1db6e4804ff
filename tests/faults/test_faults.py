"""Whatever fails, a training is equal to an undisturbed one in the end, and nothing outside of its folder changes."""

import random
from collections.abc import Iterator

import pytest

from tests.faults import hostile_folders, kills, system_calls
from tests.faults.judging import FAULT, Bench, Trial
from tests.faults.shim import why_not
from tests.faults.suite import PARTS, judge
from tests.faults.workshop import workshop

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not() or "faults are possible")


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with workshop() as shop:
        yield Bench.of(shop)


def faults(trials: Iterator[Trial], bench: Bench) -> list[str]:
    """Returns the trials whose outcome is a fault, with the reasons."""
    verdicts = [(trial, judge(trial, bench)) for trial in trials]
    assert verdicts
    return [f"{trial.group}: {trial.name}: {verdict.reason}" for trial, verdict in verdicts if verdict.outcome == FAULT]


def test_a_training_survives_a_full_disk_and_kills_at_some_calls(bench: Bench) -> None:
    assert faults(system_calls.sample(bench), bench) == []


def test_a_training_survives_kills_at_random_moments(bench: Bench) -> None:
    assert faults(kills.sample(), bench) == []


def test_planted_links_and_damaged_files_harm_nothing_outside(bench: Bench) -> None:
    trials = [trial for trial in hostile_folders.trials(bench) if "train" not in trial.name]
    assert faults(iter(random.Random(0).sample(trials, 1)), bench) == []


@pytest.mark.faults
@pytest.mark.parametrize("part", PARTS)
def test_no_case_is_a_fault(part: str, bench: Bench) -> None:
    assert faults(PARTS[part](bench), bench) == []
