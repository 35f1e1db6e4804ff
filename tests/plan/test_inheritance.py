"""A recipe takes from its base what it does not say."""

from pathlib import Path

import pytest

from archlang.errors import ProgramError
from archlang.plan.check import check
from archlang.plan.from_file import plan_recipe, plan_search

BASE = """
model small[d = 8, steps = 1](x: tokens[n]) -> logits[classes] {
    h = embed[d](x)
    repeat steps { h <- norm(h + feedforward[8](h)) }
    return h |> last |> linear[classes]
}

model plain[d = 4](x: tokens[n]) -> logits[classes] { return embed[d](x) |> last |> linear[classes] }

recipe base {
    task  ctl[order = backward]
    model small[16, steps = 2]
    train adamw[lr = 1e-3, steps = 3]
    test  model.steps = 4
    vary  seed in 1..3
    claim test.accuracy = 0.9 from "a paper"
}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "program.arch"


def written(file: Path, text: str) -> Path:
    file.write_text(BASE + text, encoding="utf-8")
    return file


def test_a_recipe_takes_every_line_but_the_claims_of_its_base(file: Path) -> None:
    base, derived = (plan_recipe(written(file, "recipe b from base {}"), name) for name in ("base", "b"))
    assert derived.settings == base.settings
    assert (derived.vary, derived.model) == (base.vary, base.model)
    assert derived.at_test is not derived.graph
    assert derived.claims == ()
    assert check(file) == ()


@pytest.mark.parametrize(
    ("line", "settings"),
    [
        ("model small[d = 12]", {"model.d": 12, "model.steps": 2}),
        ("model small[12]", {"model.d": 12, "model.steps": 2}),
        ("model small[steps = 3]", {"model.d": 16, "model.steps": 3}),
        ("train adamw[lr = 0.01]", {"train.lr": 0.01, "train.steps": 3}),
        ("train sgd[steps = 5]", {"train.lr": 1e-2, "train.steps": 5}),
        ("vary model.d in [12, 13]", {"model.d": 12, "model.steps": 2}),
    ],
)
def test_a_line_takes_the_statics_that_it_does_not_set_from_a_line_of_the_same_name(
    file: Path, line: str, settings: dict[str, object]
) -> None:
    plan = plan_recipe(written(file, f"recipe b from base {{ {line} }}"), "b")
    assert {path: plan.settings[path] for path in settings} == settings


@pytest.mark.parametrize(
    ("line", "seeds"),
    [
        ("vary model.d in [12, 13]", (1, 2, 3)),
        ("vary model.d in [12, 13], seed in [7]", (7,)),
        ("vary model.d in [12, 13]\n vary seed in 4..5", (4, 5)),
    ],
)
def test_seeds_are_those_of_the_base_unless_the_recipe_varies_them(
    file: Path, line: str, seeds: tuple[int, ...]
) -> None:
    recipes = f"recipe a from base {{ {line} }}\nrecipe b from a {{ train sgd[steps = 5] }}"
    plan = plan_recipe(written(file, recipes), "b")
    assert (plan.vary["model.d"], plan.vary["seed"]) == ((12, 13), seeds)


def test_a_static_that_a_line_sets_is_not_varied_or_sought_as_in_the_base(file: Path) -> None:
    varied = "recipe b from base { vary task.order in [backward, forward], seed in 1..2 }\n"
    searched = "recipe s from b { search train.lr in 1e-3..1e-1 log, model.d in [4, 8] }\n"
    program = written(file, varied + searched + "recipe c from s { task ctl[order = forward] train adamw[lr = 0.5] }")
    assert check(file) == ()
    plan = plan_recipe(program, "c")
    assert plan.vary == {"seed": (1, 2)}
    assert str(plan.settings["task.order"]) == "forward"
    assert [space.path for space in plan_search(program, "c").spaces] == ["model.d"]


def test_a_line_of_another_name_stands_alone(file: Path) -> None:
    text = "recipe b from base { model plain test model.d = 4 vary seed in 1..2 }"
    plan = plan_recipe(written(file, text), "b")
    assert plan.settings["model.d"] == 4
    assert plan.vary == {"seed": (1, 2)}


def test_a_base_may_have_a_base_and_stand_below(file: Path) -> None:
    text = "recipe c from b { train adamw[lr = 0.5] }\nrecipe b from base { train adamw[steps = 9] }"
    plan = plan_recipe(written(file, text), "c")
    assert (plan.settings["train.lr"], plan.settings["train.steps"]) == (0.5, 9)


def test_the_text_of_a_tuned_recipe_has_the_lines_of_its_base(file: Path) -> None:
    search = plan_search(written(file, "recipe b from base { search train.lr in 1e-4..1e-2 log }"), "b")
    text = search.text({"train.lr": 0.002})
    assert text.startswith("recipe b {\n    task  ctl[order = backward]\n    model small[16, steps = 2]\n")
    assert "train adamw[lr = 0.002, steps = 3]" in text


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("recipe b from bas {}", ["unknown recipe `bas`"]),
        ("recipe b from small {}", ["`small` is a model, and a recipe takes its lines from another recipe"]),
        ("recipe b from b {}", ["recipes are based on each other: b -> b"]),
        ("recipe b from c {}\nrecipe c from b {}", ["recipes are based on each other: b -> c -> b"]),
        (
            "recipe b from base { model plain }",
            ["the recipe `b` takes `model.steps` from its base, and its `model` has no such static"],
        ),
        ("recipe b from base { model small[1, 2, 3] }", ["`small` takes at most 2 statics"]),
    ],
)
def test_a_mistake_in_a_base_is_reported_once(file: Path, text: str, messages: list[str]) -> None:
    diagnostics = check(written(file, text))
    assert [diagnostic.message for diagnostic in diagnostics] == messages
    with pytest.raises(ProgramError):
        plan_recipe(file, "b")


def test_a_static_that_the_own_task_of_a_recipe_lacks_is_one_mistake_at_that_task(file: Path) -> None:
    text = """
recipe turned from base { vary task.order in [forward, backward] }
recipe other from turned { task parity }
table t {
    row "Turned" turned
    row "Other" other
    columns test.accuracy at task.order in [forward, backward]
}
"""
    (mistake,) = check(written(file, text))
    assert (mistake.code, mistake.span.text) == ("E0312", "parity")
    assert mistake.message == "the recipe `other` takes `task.order` from its base, and its `task` has no such static"


def test_a_task_that_refuses_what_a_recipe_takes_from_its_base_is_one_mistake(file: Path) -> None:
    text = """
model words(x: tokens[n]) -> logits[n, vocab] { return embed[4](x) |> linear[vocab] }
recipe first {
    task flipflop[test_length = [7]]
    model words
    train adamw[lr = 1e-3, steps = 3]
}
recipe second from first { task flipflop[train_size = 32] }
recipe third from second { train adamw[steps = 2] }
"""
    (mistake,) = check(written(file, text))
    assert (mistake.code, mistake.span.text) == ("E0618", "flipflop[test_length = [7]]")


def test_a_recipe_is_no_base_of_itself_to_choose_and_recipes_of_used_files_do_not_count(file: Path) -> None:
    model = BASE[: BASE.index("recipe base")]
    file.write_text(model + "recipe deep from one { task ctl }")
    (mistake,) = check(file)
    assert mistake.remedy == "write `recipe name { … }` in this file; recipes of used files do not count"


@pytest.mark.parametrize("word", ["task", "model", "train"])
def test_a_line_that_a_base_lacks_is_reported_once(file: Path, word: str) -> None:
    base = "".join(line for line in BASE.splitlines(keepends=True) if not line.startswith(f"    {word} "))
    base = base.replace("    test  model.steps = 4\n", "") if word == "model" else base
    file.write_text(f"{base}recipe b from base {{}}\nrecipe c from b {{ vary seed in 1..2 }}\n", encoding="utf-8")
    mistakes = [mistake for mistake in check(file) if mistake.code == "E0601"]
    assert [mistake.span.text for mistake in mistakes] == ["base"]
    with pytest.raises(ProgramError, match=f"the recipe `c` has no `{word}`"):
        plan_recipe(file, "c")


@pytest.mark.parametrize("header", ["recipe base", "recipe base from {", "recipe {", "recipebase {"])
def test_lines_of_a_base_whose_header_cannot_be_read_are_not_missing(file: Path, header: str) -> None:
    text = BASE.replace("recipe base {", header).replace("    task  ctl[order = backward]\n", "")
    file.write_text(f"{text}recipe b from base {{}}\n", encoding="utf-8")
    assert [mistake.span.text for mistake in check(file) if mistake.code == "E0601"] in ([], ["base"])


def test_a_half_written_line_of_a_base_is_not_missing_beside_one_of_the_recipe(file: Path) -> None:
    text = BASE.replace("task  ctl[order = backward]", "task  ctl[order =")
    file.write_text(f"{text}recipe b from base {{\n    vary seed in\n}}\n", encoding="utf-8")
    assert {mistake.code[:3] for mistake in check(file)} == {"E01"}
