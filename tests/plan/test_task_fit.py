"""A model fits a task if it takes the task's fields and returns the type that the task scores."""

from pathlib import Path

import pytest

from archlang.errors import Diagnostic
from archlang.plan.check import check_text
from archlang.plan.from_file import plan_recipe
from archlang.types import Dim, Type

SORTER = """
model sorter[d = 8](source: tokens[n], id: seq[n, {k}], target: tokens[m]) -> logits[m, vocab] {{
    read = mean(embed[d](source) + linear[d](id))
    return linear[vocab](embed[d](target) + linear[d](target |> embed[d]))
}}
"""


def recipe(task: str, model: str) -> str:
    # `scan` has no validation split, and regression no accuracy.
    other = {"scan": ", select = test.accuracy", "in_context_regression": ", select = valid.squared_error"}
    select = other.get(task.partition("[")[0], "")
    return f"recipe r {{ task {task} model {model} train adamw[steps = 10{select}] }}"


def only(text: str) -> Diagnostic:
    (diagnostic,) = [diagnostic for diagnostic in check_text(text) if diagnostic.is_error]
    return diagnostic


@pytest.mark.parametrize(("ids", "features"), [(3, "3"), (3, "k"), (8, "8")])
def test_a_side_input_with_its_features_fits(tmp_path: Path, ids: int, features: str) -> None:
    file = tmp_path / "sorter.arch"
    file.write_text(SORTER.format(k=features) + recipe(f"id_sort[id_size = {ids}]", "sorter"))
    types = [str(value.type) for value in plan_recipe(file).graph.region.inputs]
    assert types == ["tokens[n, 12]", f"seq[n, {ids}]", "tokens[m, 12]"]


ONE = "model m[d = 8]({}) -> {} {{ return {} }}"
PAIRS = 'extern block pairs(q: seq[n, d], k: seq[m, e]) -> map[n, m] python "x:Y"\n'
PAIR = """
model m[d = 8]({source}, target: tokens[m]) -> logits[m, vocab] {{
    return linear[vocab](embed[d](target) + linear[d](embed[d](target)))
}}
"""
MISFITS = {
    "a side input of another width": (
        SORTER.format(k=4), "id_sort[id_size = 3]",
        "its field `id` has 3 features at each position, and the model takes `seq[n, 4]`",
        ["id: seq[n, 4]", "id: seq[n, id_size]"],
    ),
    "tokens where the task has numbers": (
        SORTER.replace("seq[n, {k}]", "tokens[n]").replace("linear[d](id)", "embed[d](id)").format(), "id_sort",
        "its field `id` is `seq`, and the model takes `tokens[n, 12]`",
        ["id: tokens[n]", "id: seq[n, id_size]"],
    ),
    "two lengths as one": (
        ONE.format(
            "source: tokens[n], target: tokens[n]", "logits[n, vocab]",
            "linear[vocab](embed[d](source) + embed[d](target))",
        ), "copy",
        "its fields `source` and `target` differ in length, and the model gives both the length `n`",
        ["target: tokens[n]", "target: tokens[m]"],
    ),
    "other features than the task scores": (
        ONE.format("x: tokens[n]", "logits[n, 3]", "linear[3](embed[d](x))"), "dyck[pairs = 2]",
        "the task scores `logits[n, 4]`, and the model gives `seq[n, 3]`",
        ["logits[n, 3]", "logits[n, vocab]"],
    ),
    "a result for the sample": (
        ONE.format("x: tokens[n]", "logits[classes]", "linear[classes](last(embed[d](x)))"), "bucket_sort",
        "the task scores `logits[n, 5]`, and the model gives `vec[5]`",
        ["logits[classes]", "logits[n, classes]"],
    ),
    "too few inputs": (
        PAIR.format(source="source: tokens[n]"), "priority_sort",
        "the task has the fields `source`, `priority`, `target`, and the model takes 2",
        ["logits[m, vocab]", "logits[m, vocab]"],
    ),
    "a vocabulary of the source": (
        PAIR.format(source="source: tokens[n]"), "scan[joint = false]",
        "its field `source` has a vocabulary of 15, and the model takes one of 7",
        ["source: tokens[n]", "source: tokens[n, words]"],
    ),
    "classes where the answers are positions": (
        ONE.format("x: tokens[n]", "logits[n, vocab]", "linear[vocab](embed[d](x))"), "argsort",
        "the task scores `logits[n, n]`, and the model gives `seq[n, 64]`",
        ["logits[n, vocab]", "logits[n, n]"],
    ),
    "positions where the answers are classes": (
        PAIRS + ONE.format("x: tokens[n]", "logits[n, n]", "pairs(embed[d](x), embed[d](x))"), "bucket_sort",
        "the task scores `logits[n, 5]`, and the model gives `map[n, n]`",
        ["logits[n, n]", "logits[n, classes]"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("model", "task", "message", "places"), MISFITS.values(), ids=MISFITS)
def test_a_model_that_does_not_fit_its_task_points_at_both(
    model: str, task: str, message: str, places: list[str]
) -> None:
    diagnostic = only(model + recipe(task, "sorter" if "sorter" in model else "m"))
    assert diagnostic.code == "E0416"
    assert message in diagnostic.message
    assert [label.span.text for label in diagnostic.labels] == places


@pytest.mark.parametrize("task", ["copy", "dyck", "mqar"])
def test_a_model_that_reads_the_answer_is_refused(task: str) -> None:
    fields = "source: tokens[n], target: tokens[m]" if task == "copy" else "target: tokens[m]"
    diagnostic = only(
        f"model m[d = 8]({fields}) -> logits[m, vocab] {{"
        " h = embed[d](target)\n return linear[vocab](h + attention[2](h)) }" + recipe(task, "m")
    )
    assert diagnostic.code == "E0501"
    assert f"`{task}` asks it to predict" in diagnostic.message


@pytest.mark.parametrize("task", ["scan[joint = false]", "scan[joint = true]", "copy"])
def test_a_model_that_leaves_the_words_to_the_task_fits_all(tmp_path: Path, task: str) -> None:
    file = tmp_path / "pair.arch"
    file.write_text(PAIR.format(source="source: tokens[n, words]") + recipe(task, "m"))
    assert plan_recipe(file).model == "m"


def test_a_score_for_each_pair_fits_a_task_whose_answers_are_positions(tmp_path: Path) -> None:
    file = tmp_path / "pointer.arch"
    model = "model m[d = 8](x: tokens[t]) -> logits[t, t] { return pairs(embed[d](x), embed[d](x)) }"
    file.write_text(PAIRS + model + recipe("argsort", "m"))
    graph = plan_recipe(file).graph
    assert {value.type for value in graph.region.nodes if value.id in graph.region.results} == {
        Type("map", (Dim.of("t"), Dim.of("t"), Dim.of(1)))
    }


def test_numbers_of_positions_fit_a_task_of_regression_and_one_number_does_not() -> None:
    settings = "model m(x: seq[n, size]) -> {result} {{ return {value} }}"
    task = recipe("in_context_regression", "m")
    assert not check_text(settings.format(result="seq[n, 1]", value="linear[1](x)") + task)
    diagnostic = only(settings.format(result="vec[1]", value="mean(linear[1](x))") + task)
    assert "the task scores `seq[n, 1]`, and the model gives `vec[1]`" in diagnostic.message


@pytest.mark.parametrize("scored", ["classes", "logits", "prob", "logits[n, 2, classes]", "logits[classes]", "prob[n]"])
def test_a_scored_type_with_other_dimensions_than_the_result_does_not_fit(scored: str) -> None:
    task = f'extern task own(x: tokens[n]) -> {scored}\n    gives vocab = 8, classes = 2\n    python "own:Own"\n'
    model = "model m(x: tokens[n]) -> logits[n, classes] { return embed[4](x) |> linear[classes] }\n"
    diagnostic = only(task + model + recipe("own", "m"))
    shown = scored.replace("classes]", "2]")
    assert f"the task scores `{shown}`, and the model gives `seq[n, 2]`" in diagnostic.message


@pytest.mark.parametrize(
    ("first", "second", "fits"), [("a", "b", True), ("source", "y", True), ("target", "source", False)]
)
def test_an_input_with_the_name_of_another_field_does_not_fit(first: str, second: str, fits: bool) -> None:
    model = f"model m[d = 8]({first}: tokens[n], {second}: tokens[m]) -> logits[m, vocab] {{ "
    text = f"{model}return linear[vocab](embed[d]({second}) + mean(embed[d]({first}))) }}" + recipe("copy", "m")
    if fits:
        assert check_text(text) == ()
    else:
        assert "in this order, and the model takes `target` for `source`" in only(text).message
