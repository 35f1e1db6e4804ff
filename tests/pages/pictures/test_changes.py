"""Changes between two architectures in words."""

from dataclasses import replace
from pathlib import Path

import archlang
from archlang.pages.pictures.changes import describe_changes
from archlang.plan.from_file import plan_recipe

NDR = Path(archlang.__file__).parent / "recipes" / "ndr.arch"


def test_a_changed_depth_names_both_numbers() -> None:
    before, after = plan_recipe(NDR).graph, plan_recipe(NDR, sets={"model.steps": "20"}).graph
    assert describe_changes(before, after) == ("depth 12 → 20",)


def test_truth_values_are_spelled_as_in_a_program() -> None:
    before = plan_recipe(NDR, "baseline").graph
    paths = {path: replace(each, statics={"causal": False}) for path, each in before.instances.items()}
    after = {path: replace(each, statics={"causal": True}) for path, each in before.instances.items()}
    changes = describe_changes(replace(before, instances=paths), replace(before, instances=after))
    assert any("causal false → true" in change for change in changes)


def test_an_architecture_has_no_changes_from_itself() -> None:
    graph = plan_recipe(NDR).graph
    assert not describe_changes(graph, graph)


def test_added_blocks_are_named_with_their_parameters() -> None:
    changes = describe_changes(plan_recipe(NDR, "baseline").graph, plan_recipe(NDR).graph)
    assert any(change.startswith("copy gate added") for change in changes)
    assert changes[-1].endswith("parameters")
