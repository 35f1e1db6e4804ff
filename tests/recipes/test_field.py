"""The quick recipes of the field's architectures have no mistakes, need no Python, and train."""

import json
import math
from pathlib import Path

import pytest

import archlang
from archlang.plan.check import check
from archlang.plan.from_file import plan_recipe, recipe_names
from archlang.runs import training
from archlang.syntax import format_program, parse
from archlang.syntax.parser import read

PAGES = sorted((Path(archlang.__file__).parent / "recipes" / "field").glob("*.arch"))
# Settings that make a task small, where it has them.
FEW = {"task.train_size": "40", "task.iid_size": "4", "task.valid_size": "4", "task.test_size": "4"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_has_no_mistake_and_needs_no_python(page: Path) -> None:
    source = read(page)
    assert check(page) == ()
    assert format_program(parse(source)) == source.text
    assert "extern" not in source.text


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_recipe_of_a_page_trains(page: Path, tmp_path: Path) -> None:
    for recipe in recipe_names(page):
        settings = plan_recipe(page, recipe).settings
        small = {path: value for path, value in FEW.items() if path in settings}
        plan = plan_recipe(page, recipe, {**small, "train.batch": "4", "train.steps": "2", "train.every": "2"})
        training.train(plan, tmp_path / recipe, device="cpu")
        lines = [json.loads(line) for line in (tmp_path / recipe / "metrics.jsonl").read_text().splitlines()]
        assert all(math.isfinite(line["loss"]) for line in lines)
