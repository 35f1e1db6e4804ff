"""Every case of every group runs, at sizes too small for timings."""

import pytest
import torch

from benchmarks import GROUPS
from benchmarks.measure import Group, Setting

# They start processes or train longer.
_SLOW = ("memory", "start-up", "passes", "dynamic halt", "adversarial files")


@pytest.mark.parametrize(
    "group",
    [pytest.param(group, id=group.name, marks=[pytest.mark.slow] if group.name in _SLOW else []) for group in GROUPS],
)
def test_every_case_runs_on_both_sides(group: Group) -> None:
    for case in group.cases(Setting(torch.device("cpu"), tiny=True)):
        sides = case.build()
        for call in sides:
            assert case.unit.read(call) > 0, case.name
