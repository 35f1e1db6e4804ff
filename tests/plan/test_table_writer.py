"""A scaling table has a row for each size of a recipe and a column for each budget."""

from pathlib import Path

import pytest

from archlang.errors import ProgramError
from archlang.plan.check import check_text
from archlang.plan.table_writer import RecipePage, scaling
from archlang.resolve.library import recipe_files

PROGRAM = """
## Unused.
block other(h: seq[n, d]) -> seq[n, d] { return h }

model m[d = 8, heads = 2](x: tokens[n]) -> logits[classes] {
    return linear[classes](last(attention[heads](embed[d](x))))
}

recipe base {
    task  ctl
    model m
    train adamw[lr = 1e-3, epochs = 3]
}

recipe r from base { model m[d = 16] }
"""


@pytest.fixture
def page(tmp_path: Path) -> RecipePage:
    (tmp_path / "page.arch").write_text(PROGRAM)
    return RecipePage(tmp_path / "page.arch", "r")


def test_a_path_without_values_has_half_once_and_twice_its_value(page: RecipePage) -> None:
    table = scaling(page, {"model.d": []}, [], None)
    assert [row.settings["model.d"] for row in table.rows] == ["8", "16", "32"]
    assert not check_text(table.text, page.file.program.source.path)


def test_rows_are_the_combinations_that_have_a_model(page: RecipePage) -> None:
    table = scaling(page, {"model.d": ["4", "8"], "model.heads": ["2", "8"]}, [], [1])
    assert [row.title for row in table.rows] == ["d = 4, heads = 2", "d = 8, heads = 2", "d = 8, heads = 8"]
    (left_out,) = table.left_out
    assert left_out.startswith("d = 4, heads = 8: `attention` requires")


def test_budgets_are_those_that_the_recipe_counts(page: RecipePage) -> None:
    table = scaling(page, {"model.d": []}, [1, 2], None)
    assert 'columns "valid.loss" valid.loss at train.epochs in [1, 2]' in table.text
    steps = scaling(RecipePage(recipe_files()["s3"], None), {"model.d": []}, [1, 2], None)
    assert 'columns "test.accuracy" test.accuracy at train.steps in [1, 2]' in steps.text


def test_the_program_has_what_the_recipe_names_and_no_more(page: RecipePage) -> None:
    text = scaling(page, {"model.d": []}, [], None).text
    assert "recipe base" in text
    assert "other" not in text


def test_an_unknown_path_is_a_mistake(page: RecipePage) -> None:
    with pytest.raises(ProgramError, match="unknown path `model.width`"):
        scaling(page, {"model.width": []}, [], None)
