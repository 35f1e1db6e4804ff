"""`archlang diff` compares the models that options choose."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from archlang.cli.app import app
from archlang.diagnostics import ProgramError

NDR = str(Path(__file__).parent.parent.parent / "recipes" / "ndr.arch")


def printed(*options: str) -> str:
    result = CliRunner().invoke(app, ["diff", NDR, NDR, *options])
    assert result.exit_code == 0
    return result.output


def test_the_models_of_the_first_recipes_are_compared() -> None:
    assert printed().strip() == "nothing changed"


def test_two_models_of_one_file_are_compared() -> None:
    assert "copy gate removed" in printed("--model", "transformer")
    assert "copy gate added" in printed("--model-before", "transformer")
    assert printed("--model-before", "transformer", "--model", "transformer").strip() == "nothing changed"


def test_a_recipe_chooses_the_second_model() -> None:
    assert "copy gate removed" in printed("--recipe", "baseline")


@pytest.mark.parametrize("option", ["--model", "--model-before"])
def test_an_unknown_model_is_a_mistake(option: str) -> None:
    result = CliRunner().invoke(app, ["diff", NDR, NDR, option, "nope"])
    assert isinstance(result.exception, ProgramError)
    assert "the models are `ndr`, `transformer`" in result.exception.diagnostics[0].remedy
