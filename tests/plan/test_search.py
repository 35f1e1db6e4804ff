"""Search spaces are checked before anything runs, and the best point is written as a recipe."""

from pathlib import Path

import pytest

from archlang.errors import ProgramError
from archlang.plan.check import check, check_text
from archlang.plan.from_file import plan_recipe, plan_search
from archlang.plan.search import SearchSpace

MODEL = """
model small[d = 8, heads = 2](x: tokens[n]) -> logits[classes] {
    return embed[d](x) |> attention[heads] |> last |> linear[classes]
}
"""


def recipe(search: str) -> str:
    return f"""{MODEL}
recipe small {{
    task  ctl
    model small[8]
    train adamw[lr = 1e-3, steps = 3]
    vary  model.heads in [1, 2], seed in 1..2
    {search}
}}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "program.arch"


def written(file: Path, text: str) -> Path:
    file.write_text(text, encoding="utf-8")
    return file


def test_lists_and_ranges_become_spaces(file: Path) -> None:
    text = "search model.d in 8..64, train.lr in 1e-4..1e-2 log, task.order in [forward, backward]"
    assert plan_search(written(file, recipe(text))).spaces == (
        SearchSpace("model.d", low=8, high=64, integers=True),
        SearchSpace("train.lr", low=1e-4, high=1e-2, log=True),
        SearchSpace("task.order", choices=("forward", "backward")),
    )


def test_blocks_are_chosen_as_other_values(file: Path) -> None:
    model = MODEL.replace("heads = 2", "mix: block = norm").replace("attention[heads]", "mix")
    text = f"{model}\n{recipe('search model.mix in [norm, attention[2], linear[8]]').replace(MODEL, '')}"
    search = plan_search(written(file, text.replace("    vary  model.heads in [1, 2], seed in 1..2\n", "")))
    (space,) = search.spaces
    assert space.choices == ("norm", "attention[2]", "linear[8]")
    assert all(search.plan({"model.mix": choice}) is not None for choice in space.choices)


def test_a_point_has_a_plan_unless_its_values_contradict_each_other(file: Path) -> None:
    search = plan_search(written(file, recipe("search model.d in 8..64, model.heads in [1, 2, 4]")))
    plan = search.plan({"model.d": 12, "model.heads": "4"})
    assert plan is not None
    assert (plan.settings["model.d"], plan.settings["model.heads"]) == (12, 4)
    assert search.plan({"model.d": 9, "model.heads": "4"}) is None


def test_the_best_point_is_written_as_a_recipe_that_checks(file: Path) -> None:
    search = plan_search(written(file, recipe("search model.d in 8..64, train.lr in 1e-4..1e-2 log")))
    text = search.text({"model.d": 16, "train.lr": 0.0012345678})
    assert "model small[16]" in text
    assert "lr = 0.00123457" in text
    assert "search" not in text
    plan = plan_recipe(written(file, MODEL + text))
    assert plan.settings["model.d"] == 16
    assert "model.heads" in plan.vary


def test_a_static_with_a_chosen_value_is_not_varied(file: Path) -> None:
    search = plan_search(written(file, recipe("search model.heads in [1, 2, 4]")))
    assert "vary  seed in 1..2" in search.text({"model.heads": "4"})


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("search model.width in 1..4", "E0312"),
        ("search train.lr in 1e-2..1e-4", "E0613"),
        ("search train.lr in 0.0..1e-2 log", "E0613"),
        ("search train.lr in 1e-3", "E0613"),
        ("search task.order in forward..backward", "E0613"),
        ("search model.heads in [1, 3]", "E0306"),
    ],
)
def test_an_invalid_search_space_is_reported_before_it_runs(file: Path, text: str, code: str) -> None:
    codes = [diagnostic.code for diagnostic in check(written(file, recipe(text)))]
    assert codes
    if code != "E0306":
        assert code in codes


def test_a_recipe_without_a_search_is_refused(file: Path) -> None:
    with pytest.raises(ProgramError) as raised:
        plan_search(written(file, recipe("")))
    assert raised.value.diagnostics[0].code == "E0614"


def test_a_search_over_a_model_with_a_mistake_reports_the_mistake_only() -> None:
    text = """model small[d = 8](4: tokens[n]) -> logits[classes] {
    return embed[d](x) |> last |> linear[classes]
}

recipe found {
    task   ctl
    model  small
    train  adamw[lr = 1e-3, batch = 4, steps = 10]
    search model.d in [8, 16]
}
"""
    assert {mistake.code for mistake in check_text(text)} == {"E0101"}


def test_the_best_recipe_has_the_settings_that_its_trials_ran_with(file: Path) -> None:
    sets = {"train.steps": "7", "task.order": "backward", "seed": "5", "model.heads": "2"}
    search = plan_search(written(file, recipe("search model.d in 8..64")), sets=sets)
    written(file, MODEL + search.text({"model.d": 16}))
    ran, printed = search.plan({"model.d": 16}), plan_recipe(file)
    assert ran is not None
    assert printed.settings == ran.settings
    assert "vary" not in search.text({"model.d": 16}).replace("vary  seed in [5]", "")
