"""Recipes and tables name splits and metrics that their task has."""

import pytest

from archlang.errors import Diagnostic
from archlang.errors.edits import apply_edits
from archlang.plan.check import check_text
from archlang.plan.measures import FRACTIONS
from archlang.tasks.kit.metrics import LOWER_IS_BETTER, MEANINGS

MODEL = "model small(x: tokens[n]) -> logits[classes] { return embed[4](x) |> last |> linear[classes] }\n"
PAIR = """model pair(source: tokens[n], target: tokens[m]) -> logits[m, vocab] {
    return embed[4](target) |> lstm[4] |> linear[vocab]
}
"""
TABLE = 'table t { row "Small" r column "Test" %s column "Valid" valid.accuracy }'


def recipe(train: str = "", rest: str = "", task: str = "ctl") -> str:
    return f"recipe r {{ task {task} model small train adamw[steps = 1{train}] {rest} }}\n"


def only(text: str) -> Diagnostic:
    (diagnostic,) = check_text(MODEL + text)
    return diagnostic


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        (recipe(", select = vlid.accuracy"), "vlid.accuracy", "no split `vlid`, by which"),
        (recipe(", select = valid.beauty"), "valid.beauty", "no metric `beauty`"),
        (recipe(rest='claim iid.acuracy = 1.0 from "p"'), "iid.acuracy", "no metric `acuracy`"),
        (recipe(rest='claim dev.accuracy = 1.0 from "p"'), "dev.accuracy", "no split `dev`"),
        (recipe() + TABLE % "tests.accuracy", "tests.accuracy", "no split `tests`"),
        (recipe() + TABLE % "test.f1", "test.f1", "no metric `f1`"),
        (recipe() + TABLE % "train.loss", "train.loss", "not measured on the split `train`"),
        (recipe(rest='claim train.accuracy = 1.0 from "p"'), "train.accuracy", "not measured on the split `train`"),
    ],
)
def test_a_metric_that_no_run_measures_is_reported(text: str, place: str, message: str) -> None:
    diagnostic = only(text)
    assert (diagnostic.code, diagnostic.span.text) == ("E0605", place)
    assert message in diagnostic.message


def test_an_unmeasured_split_is_answered_with_the_measured_ones() -> None:
    train, unknown = (only(recipe() + TABLE % f"{split}.loss") for split in ("train", "dev"))
    assert train.label == "the measured splits are `iid`, `test`, `valid`"
    assert unknown.label == "its splits are `iid`, `test`, `valid`"
    assert not check_text(MODEL + recipe(", select = train.loss"))


def test_a_task_without_the_default_selecting_split_needs_another_one() -> None:
    (diagnostic,) = check_text(PAIR + "recipe r { task scan model pair train adamw[steps = 1] }")
    assert (diagnostic.code, diagnostic.span.text) == ("E0605", "adamw[steps = 1]")
    assert diagnostic.remedy == "set `select = test.accuracy` in `train`"
    assert not check_text(PAIR + "recipe r { task scan model pair train adamw[steps = 1, select = test.accuracy] }")


def test_a_task_without_accuracy_needs_another_selecting_metric() -> None:
    model = "model line(x: seq[n, size]) -> seq[n, 1] { return linear[1](x) }\n"
    task = "recipe r { task in_context_regression model line train adamw[steps = 1%s] }"
    (diagnostic,) = check_text(model + task % "")
    assert (diagnostic.code, diagnostic.span.text) == ("E0605", "adamw[steps = 1]")
    assert "has no metric `accuracy`, by which `train.select` chooses the weights" in diagnostic.message
    assert diagnostic.remedy == "set `select = valid.squared_error` in `train`"
    assert not check_text(model + task % ", select = valid.squared_error")


def test_a_metric_of_the_end_of_a_run_is_claimed_but_does_not_select() -> None:
    claim = 'claim test.exact_match = 1.0 from "p"'
    assert not check_text(f"{PAIR} recipe r {{ task copy model pair train adamw[steps = 1] {claim} }}")
    train = "adamw[steps = 1, select = valid.exact_match]"
    (diagnostic,) = check_text(f"{PAIR} recipe r {{ task copy model pair train {train} {claim} }}")
    assert "only at the end of a run" in diagnostic.message


def test_a_metric_of_the_users_own_selects() -> None:
    assert not check_text(MODEL + recipe(", metrics = [mine.margin], select = valid.margin"))


def test_the_splits_of_a_users_file_are_not_read() -> None:
    assert not check_text(MODEL + recipe(task='file[path = "absent.tsv"]'))


@pytest.mark.parametrize(
    "text",
    [
        recipe(rest='claim test.accuracy = 1.0 at seed = 1, seed = 2 from "p"'),
        recipe() + 'table t { row "Small" r at seed = 1, seed = 2 column "Test" test.accuracy }',
        recipe() + 'table t { row "Small" r column "Test" test.accuracy at seed = 1, seed = 2 }',
    ],
    ids=["claim", "row", "column"],
)
def test_a_static_that_is_set_twice_is_reported(text: str) -> None:
    diagnostic = only(text)
    assert (diagnostic.code, diagnostic.message) == ("E0306", "`seed` is set twice")


@pytest.mark.parametrize(
    "lines",
    [
        "vary seed in 1..3, seed in 1..2, train.lr in [1e-3, 1e-2]",
        "vary seed in 1..3 vary seed in 1..2",
        "search train.lr in 1e-4..1e-2 log, train.lr in [1e-3, 1e-2]",
        "test task.length = 3, task.length = 4",
        'claim test.accuracy = 1.0 at seed = 1, seed = 2 from "p"',
    ],
)
def test_the_edit_deletes_a_second_value_with_its_path(lines: str) -> None:
    text = MODEL + recipe(rest=lines)
    (mistake,) = [each for each in check_text(text) if each.code == "E0306"]
    codes = {each.code for each in check_text(text)} - {"E0306"}
    assert {each.code for each in check_text(apply_edits(text, mistake.edits))} == codes


SIZED = """model small(x: tokens[n]) -> logits[classes] {
    h = embed[4](x)
    loss size = mean(linear[1](h))
    return h |> last |> linear[classes]
}
"""


def test_a_claim_at_the_weight_of_an_unknown_loss_is_reported() -> None:
    (diagnostic,) = check_text(SIZED + recipe(rest='claim test.accuracy = 1.0 at train.losses.sise = 0.1 from "p"'))
    assert (diagnostic.code, diagnostic.remedy) == ("E0617", "did you mean `size`?")


def test_the_weight_of_halting_is_named_where_a_halting_model_has_no_such_loss() -> None:
    model = """model small(x: tokens[n]) -> logits[classes] {
    h = embed[4](x)
    repeat 2 halting h by global_halt { h <- norm(h) }
    return h |> last |> linear[classes]
}
"""
    weighted = recipe(", losses.halting = 0.1")
    (diagnostic,) = check_text(model + weighted)
    assert diagnostic.code == "E0617"
    assert "halting loops is `ponder`" in (diagnostic.remedy or "")


def test_a_claim_at_a_group_that_its_metric_does_not_have_is_reported() -> None:
    diagnostic = only(recipe(rest='claim test.accuracy = 1.0 at test.lenght = 9 from "p"'))
    assert (diagnostic.code, diagnostic.span.text) == ("E0312", "test.lenght")
    assert not check_text(MODEL + recipe(rest='claim test.accuracy = 1.0 at test.length = 9 from "p"'))


@pytest.mark.parametrize("setting", ["label_smoothing = 0.1", "other_class_weight = 0.1", "loss = stablemax"])
def test_a_setting_of_the_loss_without_meaning_for_numbers_is_reported(setting: str) -> None:
    numbers = (
        "model line(x: seq[n, size]) -> seq[n, 1] { return linear[1](x) }\n"
        f"recipe r {{ task in_context_regression model line train adamw[steps = 1, select = valid.loss, {setting}] }}"
    )
    (diagnostic,) = check_text(numbers)
    assert (diagnostic.code, diagnostic.span.text) == ("E0622", setting.partition(" = ")[2])
    assert not check_text(MODEL + recipe(f", {setting}"))


@pytest.mark.parametrize(
    ("text", "place", "label"),
    [
        (recipe() + TABLE % "test.accuracy[60]", "60", "the values of `length` are 9, 10"),
        (recipe() + TABLE % "valid.accuracy[9]", "9", "the values of `length` are 6 to 8"),
        (recipe() + TABLE % "test.accuracy[6..8]", "6..8", "not an integer"),
        (recipe() + TABLE % "test.accuracy[six]", "six", "not an integer"),
        (recipe() + TABLE % "test.accuracy at test.length = 8", "8", "the values of `length` are 9, 10"),
        (recipe(rest='claim test.accuracy[60] = 1.0 from "p"'), "60", "the values of `length` are 9, 10"),
        (recipe(rest='claim test.accuracy[six] = 1.0 from "p"'), "six", "not an integer"),
        (
            recipe(task="parity") + TABLE % "test.accuracy[6000]",
            "6000",
            "the values of `length` are 41, 50, 100, 150, …, 500",
        ),
    ],
)
def test_a_group_that_the_split_of_the_task_cannot_have_is_reported(text: str, place: str, label: str) -> None:
    diagnostic = only(text)
    assert (diagnostic.code, diagnostic.span.text, diagnostic.label) == ("E0312", place, label)


def test_a_share_is_reported_as_it_is_written() -> None:
    model = "model small(x: tokens[n]) -> logits[n, vocab] { return embed[4](x) |> lstm[4] |> linear[vocab] }\n"
    table = TABLE % "test.accuracy at test.ignore = 0.5"
    (diagnostic,) = check_text(model + recipe(task="flipflop") + table)
    assert (diagnostic.span.text, diagnostic.label) == ("0.5", "the values of `ignore` are 0.1, 0.8, 0.98")


@pytest.mark.parametrize(
    "text",
    [
        recipe() + TABLE % "test.accuracy[10]",
        recipe(rest='claim test.accuracy[12] = 1.0 at task.test = 11..12 from "p"'),
        recipe(rest='vary task.test in [9..10, 11..12] claim test.accuracy[12] = 1.0 from "p"'),
        recipe(task="listops[source = original]") + TABLE % "test.accuracy[900]",
    ],
)
def test_a_group_that_a_point_of_the_recipe_has_is_no_mistake(text: str) -> None:
    assert not check_text(MODEL + text)


@pytest.mark.parametrize(
    ("numbers", "corrected"),
    [("84 ± 1", "0.84 ± 0.01"), ("50", "0.50"), ("99.5 ± 0.5", "0.995 ± 0.005"), ("0.5 ± 10", "0.5 ± 0.10")],
)
def test_a_claim_in_per_cent_is_corrected(numbers: str, corrected: str) -> None:
    for text in (
        recipe(rest=f'claim test.accuracy = {numbers} from "p"'),
        recipe() + f'table t from "p" {{ row "Small" r claims {numbers} column "Test" test.accuracy }}',
    ):
        diagnostic = only(text)
        assert (diagnostic.code, diagnostic.span.text) == ("E0606", numbers)
        assert diagnostic.message == "`test.accuracy` is a fraction, from 0 to 1"
        assert apply_edits(MODEL + text, diagnostic.edits) == MODEL + text.replace(numbers, corrected)


@pytest.mark.parametrize(("number", "expected"), [("1.05", []), ("84", ["E0606"])])
def test_a_row_of_prior_work_may_have_ratios_but_no_per_cent(number: str, expected: list[str]) -> None:
    text = recipe() + f'table t from "p" {{ row "Prior" claims {number} column "Test" test.accuracy }}'
    assert [diagnostic.code for diagnostic in check_text(MODEL + text)] == expected


def test_a_negative_accuracy_is_no_claim() -> None:
    row = 'table t from "p" {{ row "Small" r claims {} column "Test" test.{} }}'
    for text in (recipe(rest='claim test.accuracy = -0.5 from "p"'), recipe() + row.format(-0.5, "accuracy")):
        diagnostic = only(text)
        assert (diagnostic.code, diagnostic.span.text) == ("E0606", "-0.5")
        assert diagnostic.message == "`test.accuracy` is a fraction, from 0 to 1"
    assert not check_text(MODEL + recipe() + row.format(-0.5, "loss"))


def test_a_percent_sign_leads_to_a_fraction() -> None:
    text = recipe() + 'table t from "p" { row "Small" r claims 50% column "Test" test.accuracy }'
    (diagnostic,) = check_text(MODEL + text)
    assert diagnostic.remedy == "write a fraction: `0.50`"
    assert not check_text(apply_edits(MODEL + text, diagnostic.edits))


def test_a_claim_of_a_metric_that_is_no_fraction_may_be_any_number() -> None:
    assert not check_text(MODEL + recipe(rest='claim test.loss = 2.5 ± 1.5 from "p"'))
    assert frozenset(MEANINGS) - LOWER_IS_BETTER == FRACTIONS


@pytest.mark.parametrize("name", ["beauty", "accuracy", "vlid.beauty"])
def test_an_example_of_a_metric_is_one_of_the_task(name: str) -> None:
    diagnostic = only(recipe(f", select = {name}"))
    assert diagnostic.remedy in ("set `select = valid.accuracy` in `train`", "did you mean `valid`?")
