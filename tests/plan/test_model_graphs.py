"""Recipes with equal statics and sizes of their model share its graph."""

from pathlib import Path
from typing import Any

import pytest

from archlang.elaborate.elaborator import elaborate
from archlang.errors import ProgramError
from archlang.errors.effort import forget
from archlang.errors.log import DiagnosticLog
from archlang.graph.graph import Graph
from archlang.plan.check import check_text
from archlang.plan.model_graphs import model_graph
from archlang.plan.planner import Planner, joined_recipe
from archlang.resolve.resolve import Declaration, load_file
from archlang.types.statics import Symbol

MODEL = """
block twice[rate: float = 0.1](h: seq[n, d]) -> seq[n, d] {
    return dropout[rate](h)
}

model m[d = 8, layer: block = twice](x: tokens[n]) -> logits[classes] {
    return embed[d](x) |> layer |> mean |> linear[classes]
}
"""
RECIPE = """
recipe {name} {{
    task  ctl
    model {model}
    train adamw[steps = {steps}]
}}
"""


def graphs(tmp_path: Path, *models: str) -> list[Graph]:
    """Returns the graphs of recipes of one file, each of which names a model and trains for another number of steps."""
    file, report = tmp_path / "m.arch", DiagnosticLog()
    recipes = [RECIPE.format(name=f"r{i}", model=model, steps=i + 1) for i, model in enumerate(models)]
    file.write_text(MODEL + "".join(recipes))
    resolved = load_file(file)
    planners = [Planner(joined_recipe(recipe, resolved, report)) for recipe in resolved.recipes.values()]
    plans = [planner.plan({}) for planner in planners]
    report.stop_at_errors()
    return [plan.graph for plan in plans if plan is not None]


def test_recipes_with_equal_statics_share_a_graph(tmp_path: Path) -> None:
    first, second, third = graphs(tmp_path, "m[16]", "m[d = 8 + 8]", "m")
    assert first is second
    assert third != first


def test_blocks_with_other_statics_have_other_graphs(tmp_path: Path) -> None:
    first, second = graphs(tmp_path, "m[layer = twice[0.1]]", "m[layer = twice[0.2]]")
    assert first != second


def test_a_model_without_a_recipe_takes_a_block_with_statics(tmp_path: Path) -> None:
    (of_recipe,) = graphs(tmp_path, "m[layer = twice[0.5]]")
    sizes = {"vocab": 21, "classes": 8}
    file = load_file(tmp_path / "m.arch")
    assert str(model_graph(file, "m", {"layer": Symbol("twice[0.5]"), **sizes})) == str(of_recipe)
    for text, code in {"twce[0.5]": "E0202", "twice[0.5": "E0103", "3": "E0303"}.items():
        with pytest.raises(ProgramError) as error:
            model_graph(file, "m", {"layer": Symbol(text), **sizes})
        assert [diagnostic.code for diagnostic in error.value.diagnostics] == [code]


def test_blocks_with_equal_statics_share_a_graph(tmp_path: Path) -> None:
    first, second, library, other = graphs(
        tmp_path,
        "m[layer = twice[0.2]]",
        "m[layer = twice[rate = 0.1 + 0.1]]",
        "m[layer = dropout[0.2]]",
        "m[layer = relu]",
    )
    assert first is second
    assert library != first
    assert other != library


def test_a_block_without_a_recipe_names_the_sizes_that_it_lacks(tmp_path: Path) -> None:
    file = tmp_path / "b.arch"
    loop = "y = scan v in h carry m { m <- m\n emit sum(head_columns[2](v) * m) }"
    file.write_text(f"block b(h: seq[n, d]) -> seq[n, d] {{ m = constant[d / 2, 2]()\n {loop}\n return y }}\n")
    with pytest.raises(ProgramError, match="`b` needs `d`, which only a task or a static sets"):
        model_graph(load_file(file), "b", {})


def test_a_change_of_a_recipe_elaborates_no_model_again(monkeypatch: pytest.MonkeyPatch) -> None:
    elaborated = []

    def record(declaration: Declaration, *arguments: Any, **named: Any) -> Any:  # Any: those of `elaborate`
        elaborated.append(declaration.name)
        return elaborate(declaration, *arguments, **named)

    monkeypatch.setattr("archlang.plan.model_graphs.elaborate", record)
    forget()
    for start, steps, models in (("", 1, ["m"]), ("", 2, ["m"]), ("\n", 3, ["m", "m"])):
        assert check_text(start + MODEL + RECIPE.format(name="r", model="m", steps=steps)) == ()
        assert elaborated == models  # a model at another place is elaborated again, because graphs have places
