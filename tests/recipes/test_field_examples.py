"""Architectures of the field are pages of at most 30 lines, without Python, that train and can be inspected."""

import json
import math
from pathlib import Path

import pytest

import archlang
from archlang.plan.check import check
from archlang.plan.from_file import plan_recipe
from archlang.runs import training
from archlang.syntax import format_program, parse
from archlang.syntax.parser import read

PAGES = sorted((Path(__file__).parents[2] / "docs" / "examples" / "field").glob("*.arch"))
LINES_OF_A_PAGE = 30
FEW = {"task.train_size": "16", "task.valid_size": "2", "task.test_size": "2"}
SMALL_TASK = {
    "logical_inference": {"task.draws": "300"},
    "ctl": {"task.train_size": "40", "task.iid_size": "2", "task.valid_size": "2", "task.test_size": "2"},
    "flipflop": {**FEW, "task.iid_size": "2", "task.length": "32", "task.test_length": "[34]"},
}


def name(path: Path) -> str:
    return path.stem


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_an_architecture_fits_on_a_page_without_python_and_has_no_mistake(page: Path) -> None:
    source = read(page)
    lines = source.text.splitlines()
    assert len(lines) <= LINES_OF_A_PAGE
    assert lines[0].startswith("## ")
    assert "extern" not in source.text
    assert check(page) == ()
    assert format_program(parse(source)) == source.text


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_an_architecture_trains_for_some_steps_and_is_inspected(page: Path, tmp_path: Path) -> None:
    task = plan_recipe(page).task.name
    small = {**SMALL_TASK.get(task, FEW), "train.batch": "4", "train.steps": "2", "train.every": "2"}
    training.train(plan_recipe(page, sets=small), tmp_path / "run", device="cpu")
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    steps = [line for line in lines if "lr" in line]
    assert [line["step"] for line in steps] == [1, 2]
    assert all(math.isfinite(line["loss"]) for line in steps)
    run = archlang.load_run(tmp_path / "run")
    assert run.inspect(run.samples("train").select([0])).answers
