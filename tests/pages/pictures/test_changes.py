"""Differences."""

from __future__ import annotations

from pathlib import Path

import archlang
from archlang.pages.pictures.changes import differences
from archlang.plan.from_file import plan_recipe

NDR = Path(archlang.__file__).parent / "recipes" / "ndr.arch"


def test_depth_is_told_from_one_number_to_the_other() -> None:
    one, other = plan_recipe(NDR).graph, plan_recipe(NDR, sets={"model.steps": "20"}).graph
    assert differences(one, other) == ("depth 12 → 20",)


def test_an_architecture_does_not_differ_from_itself() -> None:
    graph = plan_recipe(NDR).graph
    assert not differences(graph, graph)


def test_blocks_that_come_are_named_with_their_parameters() -> None:
    found = differences(plan_recipe(NDR, "baseline").graph, plan_recipe(NDR).graph)
    assert any(text.startswith("copy gate added") for text in found)
    assert found[-1].endswith("parameters")
