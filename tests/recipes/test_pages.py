"""Pages of architectures of the field, and mixed recipes, are short, have no mistake, need no Python, and train."""

import json
import math
from pathlib import Path

import pytest

import archlang
from archlang.plan.check import check
from archlang.plan.from_file import plan_recipe, recipe_names
from archlang.syntax import format_program, parse
from archlang.syntax.parser import read
from archlang.train.runs import training
from tests.sampling import one_in

RECIPES = Path(archlang.__file__).parent / "recipes"
FIELD, MIXED, LANGUAGE = (sorted((RECIPES / folder).glob("*.arch")) for folder in ("field", "mixed", "language"))
EXAMPLES = sorted((Path(__file__).parents[2] / "docs" / "examples" / "field").glob("*.arch"))
# The largest number of lines of a page; a page of `field` has as many as it needs.
LINES = {**dict.fromkeys(EXAMPLES, 30), **dict.fromkeys((*MIXED, *LANGUAGE), 60), **dict.fromkeys(FIELD, 1_000)}
A_FEW = json.dumps(str(RECIPES.parent / "blocks" / "a*.arch"))
# Settings that make a task small, where it has them.
FEW = {"task.train_size": "40", "task.iid_size": "4", "task.valid_size": "4", "task.test_size": "4"}
SMALL_TASK = {
    "logical_inference": {"task.draws": "300"},
    "flipflop": {"task.length": "32", "task.test_length": "[34]"},
    "scan": {"task.data": "generated", "task.cutoff": "40"},
    # A text that the reader writes first.
    "text": {"task.path": A_FEW},
    "text_masked": {"task.path": A_FEW, "task.length": "64", "task.copies": "1"},
    "text_seq2seq": {"task.path": A_FEW, "task.length": "32", "task.valid_share": "0.02", "task.test_share": "0.02"},
}
# Statics that make a model of a paper's size small, by their page.
SMALL_MODEL = {
    "gpt2_124m": {
        "model.d": "24", "model.layers": "2", "task.length": "128", "task.by": "bytes", "task.words": "300",
        "task.valid_share": "0.2",
    }
}  # fmt: skip
SHORT = {"train.batch": "4", "train.micro": "0", "train.steps": "2", "train.every": "2"}


def name(path: Path) -> str:
    return f"{path.parent.parent.name}-{path.stem}"


@pytest.mark.parametrize("page", LINES, ids=name)
def test_a_page_is_short_has_no_mistake_and_needs_no_python(page: Path) -> None:
    source = read(page)
    assert len(source.text.splitlines()) <= LINES[page]
    assert source.text.startswith("## ") or page not in EXAMPLES
    assert not any(line.startswith("extern") for line in source.text.splitlines())
    assert check(page) == ()
    assert format_program(parse(source)) == source.text


def small(page: Path, recipe: str) -> dict[str, str]:
    plan = plan_recipe(page, recipe)
    settings = {**FEW, **SMALL_TASK.get(plan.task.name, {}), **SMALL_MODEL.get(page.stem, {})}
    return {path: value for path, value in settings.items() if path in plan.settings} | SHORT


TRAINED = [
    *one_in(2, [*EXAMPLES, *LANGUAGE]),
    *(pytest.param(page, marks=pytest.mark.slow) for page in (*FIELD, *MIXED)),
]


@pytest.mark.parametrize("page", TRAINED, ids=name)
def test_every_recipe_of_a_page_trains_and_is_inspected(page: Path, tmp_path: Path) -> None:
    for recipe in recipe_names(page):
        outcome = training.train(plan_recipe(page, recipe, small(page, recipe)), tmp_path / recipe, device="cpu")
        assert None not in [split.loss for split in outcome.splits.values()]
        lines = [json.loads(line) for line in (tmp_path / recipe / "metrics.jsonl").read_text().splitlines()]
        steps = [line for line in lines if "lr" in line]
        assert [line["step"] for line in steps] == [1, 2]
        assert all(math.isfinite(line["loss"]) and 0 < line.get("gradient_norm", 1) < math.inf for line in steps)
        run = archlang.load_run(tmp_path / recipe)
        assert run.inspect(run.samples("train").select([0])).answers
