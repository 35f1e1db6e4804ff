"""Mixed recipes combine blocks of several papers on one page each, without Python, and they train."""

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

PAGES = sorted((Path(archlang.__file__).parent / "recipes" / "mixed").glob("*.arch"))
LINES_OF_A_PAGE = 60
FEW = {"task.train_size": "64", "task.valid_size": "8", "task.test_size": "8"}
SMALL_TASK = {
    "chunked_pointers": FEW,
    "halting_decoder": {"task.data": "generated", "task.cutoff": "40"},
    "ndr_halting": {"task.train_size": "40", "task.iid_size": "4", "task.valid_size": "8", "task.test_size": "8"},
    "ndr_panm": FEW,
    "tlb_geometric": {"task.train_size": "64", "task.test_size": "8"},
}


def name(path: Path) -> str:
    return path.stem


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_a_composition_fits_on_a_page_and_has_no_mistake(page: Path) -> None:
    source = read(page)
    assert len(source.text.splitlines()) <= LINES_OF_A_PAGE
    assert check(page) == ()
    assert format_program(parse(source)) == source.text


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_a_composition_needs_no_python(page: Path) -> None:
    assert not any(line.startswith("extern") for line in read(page).text.splitlines())


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=name)
def test_a_composition_trains_for_some_steps(page: Path, tmp_path: Path) -> None:
    small = {**SMALL_TASK[page.stem], "model.d": "16", "train.batch": "8", "train.steps": "3", "train.every": "3"}
    training.train(plan_recipe(page, sets=small), tmp_path / "run", device="cpu")
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    steps = [line for line in lines if "lr" in line]
    assert [line["step"] for line in steps] == [1, 2, 3]
    assert all(math.isfinite(line["loss"]) and 0 < line["gradient_norm"] < math.inf for line in steps)
    results = json.loads((tmp_path / "run" / "results.json").read_text())["splits"]
    assert all(math.isfinite(score["loss"]) for score in results.values())
