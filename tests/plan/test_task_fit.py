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


def places(diagnostic: Diagnostic) -> list[str]:
    return [label.span.text for label in diagnostic.labels]


@pytest.mark.parametrize(("ids", "features"), [(3, "3"), (3, "k"), (8, "8")])
def test_a_side_input_with_its_features_fits(tmp_path: Path, ids: int, features: str) -> None:
    file = tmp_path / "sorter.arch"
    file.write_text(SORTER.format(k=features) + recipe(f"id_sort[id_size = {ids}]", "sorter"))
    types = [str(value.type) for value in plan_recipe(file).graph.region.inputs]
    assert types == ["tokens[n, 12]", f"seq[n, {ids}]", "tokens[m, 12]"]


def test_a_side_input_of_another_width_points_at_both() -> None:
    diagnostic = only(SORTER.format(k=4) + recipe("id_sort[id_size = 3]", "sorter"))
    assert diagnostic.code == "E0416"
    assert "its field `id` has 3 features at each position, and the model takes `seq[n, 4]`" in diagnostic.message
    assert places(diagnostic) == ["id: seq[n, 4]", "id: seq[n, id_size]"]


def test_tokens_where_the_task_has_numbers_point_at_both() -> None:
    diagnostic = only(
        "model m[d = 8](source: tokens[n], id: tokens[n], target: tokens[m]) -> logits[m, vocab] {"
        " return linear[vocab](embed[d](target)) }" + recipe("id_sort", "m")
    )
    assert "its field `id` is `seq`, and the model takes `tokens[n, 12]`" in diagnostic.message
    assert places(diagnostic) == ["id: tokens[n]", "id: seq[n, id_size]"]


def test_two_lengths_of_a_task_are_not_one_length_of_the_model() -> None:
    diagnostic = only(
        "model m[d = 8](source: tokens[n], target: tokens[n]) -> logits[n, vocab] {"
        " return linear[vocab](embed[d](source) + embed[d](target)) }" + recipe("copy", "m")
    )
    assert (
        "its fields `source` and `target` differ in length, and the model gives both the length `n`"
        in diagnostic.message
    )
    assert places(diagnostic) == ["target: tokens[n]", "target: tokens[m]"]


def test_the_result_has_as_many_features_as_the_task_scores() -> None:
    diagnostic = only(
        "model m[d = 8](x: tokens[n]) -> logits[n, 3] { return linear[3](embed[d](x)) }"
        + recipe("dyck[pairs = 2]", "m")
    )
    assert "the task scores `logits[n, 4]`, and the model gives `seq[n, 3]`" in diagnostic.message
    assert places(diagnostic) == ["logits[n, 3]", "logits[n, vocab]"]


def test_a_result_for_the_sample_does_not_fit_a_task_that_scores_each_position() -> None:
    diagnostic = only(
        "model m[d = 8](x: tokens[n]) -> logits[classes] { return linear[classes](last(embed[d](x))) }"
        + recipe("bucket_sort", "m")
    )
    assert "the task scores `logits[n, 5]`, and the model gives `vec[5]`" in diagnostic.message


def test_a_model_with_too_few_inputs_is_refused_with_the_fields_of_the_task() -> None:
    diagnostic = only(
        "model m[d = 8](source: tokens[n], target: tokens[m]) -> logits[m, vocab] {"
        " return linear[vocab](embed[d](target)) }" + recipe("priority_sort", "m")
    )
    assert "the task has the fields `source`, `priority`, `target`, and the model takes 2" in diagnostic.message


@pytest.mark.parametrize("task", ["copy", "dyck", "mqar"])
def test_a_model_that_reads_the_answer_is_refused(task: str) -> None:
    fields = "source: tokens[n], target: tokens[m]" if task == "copy" else "target: tokens[m]"
    diagnostic = only(
        f"model m[d = 8]({fields}) -> logits[m, vocab] {{"
        " h = embed[d](target)\n return linear[vocab](h + attention[2](h)) }" + recipe(task, "m")
    )
    assert diagnostic.code == "E0501"
    assert f"`{task}` asks it to predict" in diagnostic.message


PAIR = """
model m[d = 8]({source}, target: tokens[m]) -> logits[m, vocab] {{
    return linear[vocab](embed[d](target) + linear[d](embed[d](target)))
}}
"""


def test_a_source_with_its_own_vocabulary_needs_a_model_that_takes_it() -> None:
    diagnostic = only(PAIR.format(source="source: tokens[n]") + recipe("scan[joint = false]", "m"))
    assert "its field `source` has a vocabulary of 15, and the model takes one of 7" in diagnostic.message
    assert places(diagnostic) == ["source: tokens[n]", "source: tokens[n, words]"]


@pytest.mark.parametrize("task", ["scan[joint = false]", "scan[joint = true]", "copy"])
def test_a_model_that_leaves_the_words_to_the_task_fits_all(tmp_path: Path, task: str) -> None:
    file = tmp_path / "pair.arch"
    file.write_text(PAIR.format(source="source: tokens[n, words]") + recipe(task, "m"))
    assert plan_recipe(file).model == "m"


PAIRS = 'extern block pairs(q: seq[n, d], k: seq[m, e]) -> map[n, m] python "x:Y"\n'


def test_a_score_for_each_pair_fits_a_task_whose_answers_are_positions(tmp_path: Path) -> None:
    file = tmp_path / "pointer.arch"
    model = "model m[d = 8](x: tokens[t]) -> logits[t, t] { return pairs(embed[d](x), embed[d](x)) }"
    file.write_text(PAIRS + model + recipe("argsort", "m"))
    graph = plan_recipe(file).graph
    assert {value.type for value in graph.region.nodes if value.id in graph.region.results} == {
        Type("map", (Dim.of("t"), Dim.of("t"), Dim.of(1)))
    }


def test_scores_of_classes_do_not_fit_a_task_whose_answers_are_positions() -> None:
    diagnostic = only(
        "model m[d = 8](x: tokens[n]) -> logits[n, vocab] { return linear[vocab](embed[d](x)) }"
        + recipe("argsort", "m")
    )
    assert "the task scores `logits[n, n]`, and the model gives `seq[n, 64]`" in diagnostic.message


def test_numbers_of_positions_fit_a_task_of_regression_and_one_number_does_not() -> None:
    settings = "model m(x: seq[n, size]) -> {result} {{ return {value} }}"
    task = recipe("in_context_regression", "m")
    assert not check_text(settings.format(result="seq[n, 1]", value="linear[1](x)") + task)
    diagnostic = only(settings.format(result="vec[1]", value="mean(linear[1](x))") + task)
    assert "the task scores `seq[n, 1]`, and the model gives `vec[1]`" in diagnostic.message


def test_scores_of_positions_do_not_fit_a_task_of_classes() -> None:
    diagnostic = only(
        PAIRS
        + "model m[d = 8](x: tokens[n]) -> logits[n, n] { return pairs(embed[d](x), embed[d](x)) }"
        + recipe("bucket_sort", "m")
    )
    assert "the task scores `logits[n, 5]`, and the model gives `map[n, n]`" in diagnostic.message


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
