"""`measure` calls both sides equally often, omits cases that are too large or too slow, and frees memory afterwards."""

import gc
import weakref

import pytest
import torch
from torch import nn

from benchmarks.measure import BATCHES, MIB, Case, Sides, measure


def test_both_sides_are_called_equally_often_and_the_ratio_is_ours_over_theirs() -> None:
    called: list[str] = []
    sides = Sides(lambda: called.append("ours"), lambda: called.append("theirs"))
    result = measure(Case("case", "another", lambda: sides), seconds=0.0, least=6)
    assert called.count("ours") == called.count("theirs") == 2 + 6
    assert called[4:8] == ["ours", "theirs", "theirs", "ours"]
    assert len(result.ours) == len(result.theirs) == 6
    assert result.spread[0] <= result.ratio <= result.spread[1]


@pytest.mark.slow
def test_the_unit_of_a_case_determines_the_meaning_of_results() -> None:
    memory = measure(Case("memory", "another", lambda: Sides(lambda: 6.0, lambda: 4.0), MIB), seconds=0.0, least=5)
    assert memory.ratio == pytest.approx(1.5)
    assert len(memory.ours) == 2, "memory needs few rounds"
    rates = measure(Case("data", "another", lambda: Sides(lambda: 6, lambda: 4), BATCHES), seconds=0.0, least=1)
    assert rates.ours[0] > 0


def test_a_case_that_would_need_too_much_memory_is_not_built() -> None:
    def build() -> Sides:
        raise AssertionError("it is built")

    result = measure(Case("large", "another", build, memory=9.2), seconds=0.0)
    assert result.left_out == "would need about 9 GiB"


def test_a_call_that_takes_too_long_ends_its_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.measure.LONGEST", 0.0)
    result = measure(Case("slow", "another", lambda: Sides(lambda: None, lambda: None)), seconds=0.0)
    assert result.left_out == "a call takes 0 s"


@pytest.mark.slow
def test_modules_are_freed_before_the_next_case() -> None:
    built: list[weakref.ref[nn.Module]] = []

    def build() -> Sides:
        module = nn.Linear(3, 3)
        built.append(weakref.ref(module))
        return Sides(lambda: module(torch.ones(3)), lambda: None)

    result = measure(Case("module", "another", build), seconds=0.0, least=1)
    gc.collect()
    assert result.ours
    assert built[0]() is None
