"""Tables name the runs of their cells, and their mistakes are reported before any run."""

from pathlib import Path

import pytest

from archlang.errors import ProgramError
from archlang.errors.edits import apply_edits
from archlang.plan.check import check
from archlang.plan.from_file import TablePlanner, plan_recipe, plan_table

MODEL = """
model small[d = 8, steps = 1](x: tokens[n]) -> logits[classes] {
    h = embed[d](x)
    repeat steps { h <- norm(h + feedforward[8](h)) }
    return h |> last |> linear[classes]
}

recipe small {
    task  ctl
    model small
    train adamw[lr = 1e-3, steps = 3]
    vary  task.order in [forward, backward], seed in 1..3
    claim test.accuracy = 0.9 ± 0.1 at task.order = forward, model.d = 16 from "a paper"
    claim test.accuracy[10] = 0.5 from "a paper"
}

recipe other {
    task  ctl
    model small[d = 16]
    train sgd[lr = 1e-3, steps = 3]
}
"""
TABLE = """
table results {
    row    "Small" small
    row    "Large" small at model.d = 16
    row    "Other" other
    row    "DNC" absent "there is no such block"
    column "Forward" test.accuracy at task.order = forward
    column "Ten" test.accuracy[10] at task.order = forward
    column "Backward" test.accuracy at task.order = backward
}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "program.arch"


def written(file: Path, text: str) -> Path:
    file.write_text(text, encoding="utf-8")
    return file


def codes(file: Path) -> list[str]:
    return [diagnostic.code for diagnostic in check(file)]


def test_a_cell_has_a_plan_for_each_seed_with_the_settings_of_its_row_and_column(file: Path) -> None:
    table = plan_table(written(file, MODEL + TABLE))
    cells = {(cell.row.title, cell.column.title): cell for cell in table.cells}
    large = cells["Large", "Backward"]
    assert [plan.seed for plan in large.plans] == [1, 2, 3]
    assert {plan.settings["seed"] for plan in large.plans} == {1, 2, 3}
    assert all(plan.settings["model.d"] == 16 for plan in large.plans)
    assert all(str(plan.settings["task.order"]) == "backward" for plan in large.plans)
    assert len(cells["Other", "Forward"].plans) == 1


def test_a_row_without_a_recipe_has_a_reason_and_no_plans(file: Path) -> None:
    table = plan_table(written(file, MODEL + TABLE))
    (row,) = (row for row in table.rows if row.recipe is None)
    assert (row.title, row.why) == ("DNC", "there is no such block")
    assert all(cell.plans == () for cell in table.cells if cell.row is row)


def test_cells_that_need_the_same_run_share_it_and_first_seeds_come_first(file: Path) -> None:
    table = plan_table(written(file, MODEL + TABLE))
    # Two rows with two orders and three seeds, and one row with two orders.
    assert len(table.plans) == 2 * 2 * 3 + 2
    assert [plan.seed for plan in table.plans] == [1] * 6 + [2] * 4 + [3] * 4


def test_a_setting_that_the_recipe_has_anyway_needs_no_run_of_its_own(file: Path) -> None:
    text = f"""{MODEL}recipe again from other {{ vary seed in [2, 2] }}
table t {{
    row    "Other" other
    row    "Again" again
    column "All" test.accuracy
    column "Three steps" test.accuracy at train.steps = 3, test.length = 9
    column "Four steps" test.accuracy at train.steps = 4
}}
"""
    table = plan_table(written(file, text))
    assert [(plan.recipe, plan.settings["train.steps"]) for plan in table.plans] == [
        ("other", 3), ("other", 4), ("again", 3), ("again", 4),
    ]  # fmt: skip


def test_a_cell_has_the_claim_of_its_statics_and_metric(file: Path) -> None:
    table = plan_table(written(file, MODEL + TABLE))
    claims = {(cell.row.title, cell.column.title): cell.claim.value for cell in table.cells if cell.claim}
    assert claims == {("Large", "Forward"): 0.9, ("Small", "Ten"): 0.5, ("Large", "Ten"): 0.5}


def test_settings_and_seeds_of_the_command_line_override_those_of_the_recipe(file: Path) -> None:
    table = plan_table(written(file, MODEL + TABLE), sets={"train.steps": "7"}, seeds=[5, 6])
    assert {plan.seed for plan in table.plans} == {5, 6}
    assert {plan.settings["train.steps"] for plan in table.plans} == {7}


def test_a_file_without_a_table_gives_a_row_for_each_point_and_a_column_for_each_claim(file: Path) -> None:
    table = plan_table(written(file, MODEL))
    assert [row.title for row in table.rows] == ["small, order = forward", "small, order = backward", "other"]
    assert [column.title for column in table.columns] == ["test.accuracy", "test.accuracy[10]"]


def test_a_table_without_claims_shows_the_first_metric_of_the_task(file: Path) -> None:
    model = "model line(x: seq[n, size]) -> seq[n, 1] { return linear[1](x) }\n"
    train = "train adamw[steps = 1, select = valid.squared_error]"
    table = plan_table(written(file, f"{model}recipe r {{ task in_context_regression model line {train} }}"))
    assert [column.metric for column in table.columns] == ["test.squared_error"]


@pytest.mark.parametrize(
    ("splits", "metric"),
    [
        ('valid = "b.txt"', "valid.bits_per_byte"),
        ('valid = "b.txt", stream = 9', "valid.bits_per_byte"),
        ("valid_share = 0.1", "valid.bits_per_byte"),
        ('valid = "b.txt", test = "c.txt"', "test.bits_per_byte"),
        ("length = 9", "test.bits_per_byte"),
    ],
)
def test_a_table_without_claims_shows_valid_where_a_users_files_name_no_test(
    file: Path, splits: str, metric: str
) -> None:
    for name in "abc":
        file.with_name(f"{name}.txt").write_text("text")
    model = "model lm(x: tokens[n]) -> logits[n, vocab] { return linear[vocab](embed[4](x)) }\n"
    recipe = f'recipe r {{ task text[path = "a.txt", {splits}] model lm train adamw[steps = 1] }}'
    table = plan_table(written(file, model + recipe))
    assert [column.metric for column in table.columns] == [metric]


def test_the_name_of_a_group_is_a_word_also_if_a_block_has_it(file: Path) -> None:
    text = 'table t {\n row "a" small\n columns "c" test.accuracy at test.length in [first, later]\n}\n'
    file.write_text(MODEL + text)
    with pytest.raises(ProgramError, match="has no items of `length` first"):
        plan_table(file, "t")


def test_a_group_of_a_split_is_no_static_of_the_recipe(file: Path) -> None:
    text = 'table t {\n row "a" small\n column "c" test.accuracy at test.length = 9, model.d = 4\n}\n'
    (cell,) = plan_table(written(file, MODEL + text)).cells
    assert dict(cell.column.groups) == {"length": 9}
    assert cell.plans[0].settings["model.d"] == 4


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ('row "a" smal\n column "c" test.accuracy', "E0604"),
        ('row "a" small', "E0610"),
        ('column "c" test.accuracy', "E0610"),
        ('row "a" small\n row "a" other\n column "c" test.accuracy', "E0611"),
        ('row "a" small\n column "c" accuracy', "E0605"),
        ('row "a" small\n column "c" tst.accuracy at test.length = 9', "E0605"),
        ('row "a" small at model.dd = 3\n column "c" test.accuracy', "E0312"),
        ('row "a" small\n column "c" test.accuracy at model.d = wide', "E0313"),
        ('row "a" small at model.d = 8\n column "c" test.accuracy at model.d = 4', "E0616"),
        ('row "a" small at seed = 1\n column "c" test.accuracy at seed = 2', "E0616"),
        ('row "a" small at task.order = forward\n column "c" test.accuracy at task.order = backward', "E0616"),
        ('row "a" small\n column "c" test.loss[5]', "E0605"),
        ('row "a" small\n column "c" small.test.accuracy', "E0616"),
        ('row "a" at model.d = 3\n column "c" test.accuracy', "E0616"),
        ('row "a"\n column "c" test.accuracy', "E0616"),
        ('row "a"\n column "c" smal.test.accuracy', "E0604"),
        ('row "a"\n column "c" small.tst.accuracy', "E0605"),
        ('row "a" at model.dd = 3\n column "c" small.test.accuracy', "E0312"),
        ('row "a" at model.d = 3\n column "c" small.test.accuracy at model.d = 4', "E0616"),
        ('row "a" best of model.d\n column "c" small.test.accuracy', "E0633"),
        ('row "a" small best of task.order by tst.accuracy\n column "c" test.accuracy', "E0605"),
        ('row "a" small\n column "c" run.speed', "E0605"),
        ('row "a" small\n column "c" run.seconds[5]', "E0605"),
        ('row "a" small\n column "c" run.flops[0]', "E0312"),
        ('row "a" small\n column "c" run.flops[-1]', "E0312"),
        ('row "a" small\n column "c" test.loss at test.length = 5', "E0605"),
    ],
)
def test_a_mistake_in_a_table_is_reported_before_any_run(file: Path, body: str, code: str) -> None:
    assert codes(written(file, f"{MODEL}table t {{\n {body}\n}}\n")) == [code]


def test_independent_mistakes_of_a_table_are_reported_in_one_run(file: Path) -> None:
    body = """
table results {
    row    "Small" smal
    row    "Large" small at model.dd = 16
    row    "Larger" small at model.d = 6.4
    row    "Larger" small
    column "Three" test.accuracy.x
    column "Forward" test.accuracy at task.ordr = forward
    column "Backward" test.accuracy at task.order = sideways
}
table second {
    row    "Small" small
    column "Unknown" test.accuracyy
}
"""
    expected = ["E0303", "E0304", "E0312", "E0312", "E0604", "E0604", "E0605", "E0611"]
    assert sorted(codes(written(file, MODEL + body))) == expected


def test_a_contradiction_names_the_row_and_the_column(file: Path) -> None:
    text = 'table t {\n row "eight" small at model.d = 8\n column "four" test.accuracy at model.d = 4\n}\n'
    (diagnostic,) = check(written(file, MODEL + text))
    assert diagnostic.message == "the row “eight” and the column “four” set `model.d` to different values"
    assert diagnostic.span.text == "model.d = 4"
    assert [label.span.text for label in diagnostic.labels] == ["model.d = 8"]
    with pytest.raises(ProgramError, match="eight"):
        plan_table(file)


@pytest.mark.parametrize("value", ["4", "2 * 2"])
def test_a_row_and_a_column_may_set_a_static_to_equal_values(file: Path, value: str) -> None:
    text = f'table t {{\n row "a" small at model.d = 4\n column "c" test.accuracy at model.d = {value}\n}}\n'
    assert codes(written(file, MODEL + text)) == []
    (cell,) = plan_table(file).cells
    assert cell.plans[0].settings["model.d"] == 4


def test_a_cell_without_a_sound_plan_is_reported_before_any_run(file: Path) -> None:
    text = 'table t {\n row "a" small at model.steps = -1\n column "c" test.accuracy\n}\n'
    assert codes(written(file, MODEL + text))


@pytest.mark.parametrize(
    ("place", "path", "remedy"),
    [
        ("row", "seeds", "did you mean `seed`?"),
        ("row", "sed", "did you mean `seed`?"),
        ("row", "d", "did you mean `model.d`?"),
        ("row", "steps", "did you mean `model.steps` or `train.steps`?"),
        ("row", "modl.d", "did you mean `model.d`?"),
        ("row", "model.stesp", "did you mean `model.steps`?"),
        ("row", "model.width", "write a static of `model`: `model.d`, `model.steps`"),
        ("row", "modl.width", "write `seed`, or `task.`, `model.` or `train.` and the name of a static"),
        ("row", "foo", "write `seed`, or `task.`, `model.` or `train.` and the name of a static"),
        ("row", "test.length", "move it to the columns"),
        ("column", "seeds", "did you mean `seed`?"),
        ("column", "d", "did you mean `model.d`?"),
        ("column", "modl.d", "did you mean `model.d`?"),
        ("column", "length", "did you mean `test.length`?"),
        ("column", "test.lenght", "did you mean `test.length`?"),
        ("column", "valid.words", "write one of its groups, such as `test.length`"),
        ("column", "foo", "write one of its groups, such as `test.length`"),
    ],
)
def test_an_unknown_setting_of_a_row_or_column_has_the_likeliest_remedy(
    file: Path, place: str, path: str, remedy: str
) -> None:
    parts = {"row": 'row "a" small', "column": 'column "b" test.accuracy'}
    parts[place] += f" at {path} = 9"
    (mistake,) = check(written(file, f"{MODEL}table t {{\n {parts['row']}\n {parts['column']}\n}}\n"))
    assert (mistake.code, mistake.span.text, mistake.remedy) == ("E0312", path, remedy)


def test_an_unknown_table_is_reported_with_the_known_ones(file: Path) -> None:
    with pytest.raises(ProgramError) as raised:
        plan_table(written(file, MODEL + TABLE), "result")
    (mistake,) = raised.value.diagnostics
    assert (mistake.code, mistake.span.text, mistake.remedy) == ("E0612", "result", "did you mean `results`?")
    assert (mistake.message, str(mistake.span)) == (f"unknown table `result` in `{file}`", "<command line>:1:1")


# Claims of rows

CLAIMED = """
table results from "a paper, Table 2" {
    row    "Small" small claims 0.7 ± 0.1, 0.6, -
    row    "Other" other claims median 0.5, 0.4, 0.3 from "another paper"
    row    "Prior work" claims 0.9, 0.8, -
    row    "DNC" absent "there is no such block" claims 0.1, -, -
    columns test.accuracy at task.order in [forward, backward]
    column "Ten" test.accuracy[10] at model.steps = 2
}
"""


def test_a_row_claims_a_number_for_each_column(file: Path) -> None:
    table = plan_table(written(file, MODEL + CLAIMED))
    assert [column.title for column in table.columns] == ["forward", "backward", "Ten"]
    texts = {(cell.row.title, cell.column.title): cell.claim and cell.claim.text for cell in table.cells}
    assert texts == {
        ("Small", "forward"): "0.7 ± 0.1", ("Small", "backward"): "0.6", ("Small", "Ten"): None,
        ("Other", "forward"): "median 0.5", ("Other", "backward"): "median 0.4", ("Other", "Ten"): "median 0.3",
        ("Prior work", "forward"): "0.9", ("Prior work", "backward"): "0.8", ("Prior work", "Ten"): None,
        ("DNC", "forward"): "0.1", ("DNC", "backward"): None, ("DNC", "Ten"): None,
    }  # fmt: skip
    origins = {cell.row.title: cell.claim.origin for cell in table.cells if cell.claim}
    assert origins["Small"] == "a paper, Table 2"
    assert origins["Other"] == "another paper"


SHARED = """
table shared from "P" {
    row    "Default"
    row    "Wide" at model.d = 16 claims 0.7, 0.6
    row    "Prior work" claims 0.5, -
    column "Forward" small.test.accuracy at task.order = forward
    column "Other" other.valid.accuracy
}
"""


def test_a_row_without_a_recipe_runs_those_of_the_columns(file: Path) -> None:
    table = plan_table(written(file, MODEL + SHARED), "shared")
    plans = {(cell.row.title, cell.column.title): cell.plans for cell in table.cells}
    runs = {cell: {(plan.recipe, plan.settings["model.d"]) for plan in each} for cell, each in plans.items()}
    assert runs == {
        ("Default", "Forward"): {("small", 8)}, ("Default", "Other"): {("other", 16)},
        ("Wide", "Forward"): {("small", 16)}, ("Wide", "Other"): {("other", 16)},
        ("Prior work", "Forward"): set(), ("Prior work", "Other"): set(),
    }  # fmt: skip
    assert [cell.column.metric for cell in table.cells[:2]] == ["test.accuracy", "valid.accuracy"]
    assert [cell.claim and cell.claim.value for cell in table.cells] == [None, None, 0.7, 0.6, 0.5, None]
    assert [claim.value for claim in plan_recipe(file, "other").claims] == [0.6]


UNCLAIMED = """
table results from "P, Table 1" {
    row    "Eight" small at model.d = 8 claims 0.7
    row    "Again" small at model.d = 8, task.order = forward
    row    "Best" small best of model.d
    column "Forward" test.accuracy at task.order = forward
}
table second from "P, Table 2" {
    row    "Other" other
    row    "Eight" small at model.d = 8
    row    "Large" small at model.d = 16
    column "Forward" test.accuracy at task.order = forward
}
"""


@pytest.mark.parametrize("name", ["results", "second"])
def test_a_row_without_claims_has_only_those_of_its_recipe(file: Path, name: str) -> None:
    text = MODEL.replace("seed in 1..3", "model.d in [8, 4], seed in 1..3") + UNCLAIMED
    claims = [cell.claim and cell.claim.value for cell in plan_table(written(file, text), name).cells]
    assert claims == ([0.7, None, None] if name == "results" else [None, None, 0.9])


def test_a_claim_of_a_row_is_one_of_its_recipe_at_the_point_of_the_cell(file: Path) -> None:
    claims = plan_recipe(written(file, MODEL + CLAIMED), "small").claims
    ours = [(claim.value, {path: str(value) for path, value in claim.at.items()}) for claim in claims[2:]]
    assert ours == [(0.7, {"task.order": "forward"}), (0.6, {"task.order": "backward"})]
    (_, _, ten) = plan_recipe(file, "other").claims
    assert (ten.metric, ten.index, ten.at["model.steps"]) == ("test.accuracy", 10, 2)


def test_a_claim_of_a_row_names_the_first_value_of_what_neither_row_nor_column_sets(file: Path) -> None:
    text = 'table t from "p" {\n row "a" small claims 0.7\n column "c" test.accuracy\n}\n'
    claim = plan_recipe(written(file, MODEL + text), "small").claims[-1]
    assert {path: str(value) for path, value in claim.at.items()} == {"task.order": "forward"}


def test_a_cell_of_the_best_has_the_plans_and_the_best_claim_of_every_value(file: Path) -> None:
    text = MODEL.replace("seed in 1..3", "model.d in [8, 16], seed in 1..3") + TABLE.replace(
        '"Small" small', '"Small" small best of model.d'
    )
    table = plan_table(written(file, text))
    cell = table.cells[0]
    assert [option.title for option in cell.options] == ["d = 8", "d = 16"]
    assert [(plan.settings["model.d"], plan.seed) for plan in cell.plans] == [
        (d, seed) for seed in (1, 2, 3) for d in (8, 16)
    ]
    assert cell.claim is not None
    assert cell.claim.value == 0.9
    assert codes(file) == []
    fixed = plan_table(file, None, {"model.d": "16"}).cells[0]
    assert not fixed.options
    assert [(plan.settings["model.d"], plan.seed) for plan in fixed.plans] == [(16, seed) for seed in (1, 2, 3)]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ('row "a" small claims 1, 2\n column "c" test.accuracy', "E0632"),
        ('row "a" small claims 1\n columns test.accuracy at task.order in [forward, backward]', "E0632"),
        ('row "a" small claims wide\n column "c" test.accuracy', "E0606"),
        ('row "a" small claims 0.5 ± -0.1\n column "c" test.accuracy', "E0606"),
        ('row "a" small best of model.d\n column "c" test.accuracy', "E0633"),
        ('row "a" small best of task.order\n column "c" test.accuracy at task.order = forward', "E0633"),
        ('row "a" small\n column "c" test.accuracy best of model.d', "E0633"),
        ('row "a" small\n columns test.accuracy at task.order in []', "E0310"),
        ('row "a" small\n columns test.accuracy at model.d in 1..20_000', "E0615"),
        ('row "a" small\n columns test.accuracy at task.orde in [forward]', "E0312"),
        ('row "a" small\n columns test.accuracy at task.order in [forward, forward]', "E0611"),
    ],
)
def test_a_mistake_in_claims_columns_or_the_best_is_reported_before_any_run(file: Path, body: str, code: str) -> None:
    assert codes(written(file, f"{MODEL}table t {{\n {body}\n}}\n")) == [code]
    with pytest.raises(ProgramError, match=code):
        plan_table(file)


@pytest.mark.parametrize(
    ("columns", "code", "place", "beginning"),
    [
        ("", "E0610", "t", "the table `t` has no column"),
        ("columns test.accuracy at task.order in []", "E0310", "[]", "no values to vary"),
    ],
)
def test_a_column_that_is_missing_is_one_mistake_however_many_rows_claim_numbers(
    file: Path, columns: str, code: str, place: str, beginning: str
) -> None:
    rows = 'row "a" small claims 1, 1\n row "b" claims 1, -\n row "c" small'
    (mistake,) = check(written(file, f"{MODEL}table t {{\n {rows}\n {columns}\n}}\n"))
    assert (mistake.code, mistake.span.text) == (code, place)
    assert mistake.message.startswith(beginning)
    with pytest.raises(ProgramError, match=code):
        plan_table(file)


@pytest.mark.parametrize("claims", ["0.5 ± -0.1", "wide"])
def test_a_mistake_in_the_claims_of_a_row_is_answered_as_a_row_is_written(file: Path, claims: str) -> None:
    (mistake,) = check(written(file, f'{MODEL}table t {{ row "a" small claims {claims} column "c" test.accuracy }}'))
    expected = "write `claims 0.84 ± 0.01, …`, a number for each column, and `-` for a cell without one"
    assert (mistake.code, mistake.remedy) == ("E0606", expected)


AVERAGED = """
table lengths {
    row    "Small" small best of model.d
    row    "Other" other
    columns test.accuracy at test.length in [9, 10], task.order = forward
}
"""
AVERAGES = """
table averages from "p" {
    row    "Small" claims 0.4
    row    "Other" claims 0.3
    row    "Prior work" claims 0.2
    column "Both" average of lengths
}
"""


def test_an_average_has_the_cells_of_the_row_of_the_same_title(file: Path) -> None:
    varied = MODEL.replace("seed in 1..3", "model.d in [8, 16], seed in 1..3")
    table = plan_table(written(file, varied + AVERAGED + AVERAGES), "averages")
    small, other, prior = table.cells
    assert [cell.column.title for cell in small.averaged] == ["9", "10"]
    assert len(small.plans) == 2 * 3
    assert len(other.plans) == 1
    assert (prior.plans, prior.averaged, prior.is_published_only) == ((), (), True)
    assert [cell.claim and cell.claim.value for cell in table.cells] == [0.4, 0.3, 0.2]
    assert codes(file) == []


def test_an_average_may_be_of_a_table_of_a_used_file(file: Path) -> None:
    written(file, MODEL + AVERAGED.replace(" best of model.d", ""))
    user = file.with_name("user.arch")
    user.write_text('use "./program.arch" as p\n' + AVERAGES.replace("of lengths", "of p.lengths"))
    table = plan_table(user, seeds=[7])
    assert {plan.seed for plan in table.plans} == {7}
    assert [len(cell.averaged) for cell in table.cells] == [2, 2, 0]
    assert codes(user) == []


def test_an_average_may_be_of_the_columns_with_some_settings(file: Path) -> None:
    tables = AVERAGED.replace(" best of model.d", "") + AVERAGES.replace("of lengths", "of lengths at test.length = 10")
    small, other, prior = plan_table(written(file, MODEL + tables), "averages").cells
    assert [[cell.column.title for cell in row.averaged] for row in (small, other, prior)] == [["10"], ["10"], []]
    assert codes(file) == []


def test_an_average_of_no_column_is_reported(file: Path) -> None:
    tables = AVERAGED.replace(" best of model.d", "") + AVERAGES.replace("of lengths", "of lengths at test.length = 11")
    assert codes(written(file, MODEL + tables)) == ["E0635"]


@pytest.mark.parametrize(
    ("columns", "code"), [("", "E0610"), ('columns "T" test.accuracy at task.order in []', "E0310")]
)
def test_an_average_of_a_table_without_columns_is_reported_once(file: Path, columns: str, code: str) -> None:
    tables = f'table first {{\n    row "A" other\n    {columns}\n}}\n'
    tables += 'table second {\n    row "A" other\n    column "B" average of first\n}\n'
    assert codes(written(file, MODEL + tables)) == [code]
    with pytest.raises(ProgramError) as caught:
        plan_table(file, "second")
    assert [mistake.code for mistake in caught.value.diagnostics] == [code]


def averaging(file: Path, averages: str) -> list[str]:
    """Returns the messages and remedies about a table of averages."""
    written(file, MODEL + AVERAGED.replace(" best of model.d", "") + averages)
    return [f"{mistake.code} {mistake.message}; {mistake.remedy}" for mistake in check(file)]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ('"Smal" claims 0.4', ["E0636 `lengths` has no row “Smal”; did you mean `Small`?"]),
        ('"Large" small', ["E0636 `lengths` has no row “Large”; its rows are `Other`, `Small`"]),
        ('"Other work" claims 0.4', []),
    ],
)
def test_an_average_of_no_row_is_reported(file: Path, row: str, expected: list[str]) -> None:
    assert averaging(file, AVERAGES.replace('"Small" claims 0.4', row)) == expected


@pytest.mark.parametrize(
    ("row", "word", "place"),
    [
        ('"Small" small best of task.order', "best of", "task.order"),
        ('"Small" small at model.d = 16', "at", "model.d = 16"),
        ('"Small" small at model.d = 16, seed = 2', "at", "model.d = 16, seed = 2"),
    ],
)
def test_a_row_of_averages_alone_has_no_settings(file: Path, row: str, word: str, place: str) -> None:
    (message,) = averaging(file, AVERAGES.replace('"Small"', row))
    assert message.startswith(f"E0636 `{word}` has no effect in a row whose columns are averages; ")
    (mistake,) = check(file)
    assert mistake.span.text == place
    with pytest.raises(ProgramError, match="E0636"):
        plan_table(file, "averages")
    file.write_text(apply_edits(file.read_text(encoding="utf-8"), mistake.edits), encoding="utf-8")
    assert check(file) == ()


@pytest.mark.parametrize(
    ("averages", "tables"),
    [
        ('table a { row "Small" small column "A" average of a }', "a"),
        (
            'table a { row "Small" small column "A" average of b }\n'
            'table b { row "Small" small column "B" average of a }',
            "ba",
        ),
        (
            'table a { row "Small" small column "A" average of b }\n'
            'table b { row "Small" small column "B" average of lengths }',
            "b",
        ),
    ],
)
def test_a_table_of_averages_is_not_averaged(file: Path, averages: str, tables: str) -> None:
    remedy = "contains averages, which are not averaged again; name a table whose columns are metrics"
    assert averaging(file, averages) == [f"E0634 the table `{table}` {remedy}" for table in tables]


def test_an_average_of_an_unknown_table_is_reported(file: Path) -> None:
    assert codes(
        written(file, MODEL + AVERAGED.replace(" best of model.d", "") + AVERAGES.replace("of lengths", "of length"))
    ) == ["E0612"]


def test_an_unknown_table_is_compared_with_those_that_cannot_be_parsed(file: Path) -> None:
    averages = AVERAGES.replace("of lengths", "of length")
    broken = AVERAGED.replace(" best of model.d", "").replace("column ", "colmn ", 1)
    found = check(written(file, MODEL + broken + averages))
    assert [mistake.remedy for mistake in found if mistake.code == "E0612"] == ["did you mean `lengths`?"]


@pytest.mark.parametrize(
    ("setting", "average", "expected"),
    [
        ("task.ordr = forward", "task.order = forward", [("E0312", "did you mean `task.order`?")]),
        ("task.order = forwrd", "task.order = forward", [("E0304", "did you mean `forward`?")]),
        ("task.order = forward", "task.ordr = forward", [("E0635", "did you mean `task.order`?")]),
    ],
)
def test_a_misspelt_setting_of_an_average_or_of_its_table_is_one_mistake(
    file: Path, setting: str, average: str, expected: list[tuple[str, str]]
) -> None:
    lines = f'table t {{ row "a" small column "b" test.accuracy at {setting} }}\n'
    averages = f'table a {{ row "a" small column "c" average of t at {average} }}\n'
    found = check(written(file, MODEL + lines + averages))
    assert [(mistake.code, mistake.remedy) for mistake in found] == expected


def test_the_tables_of_several_files_are_those_of_each(file: Path) -> None:
    written(file, MODEL + TABLE + AVERAGED.replace(" best of model.d", ""))
    user = file.with_name("user.arch")
    user.write_text('use "./program.arch" as p\n' + AVERAGES.replace("of lengths", "of p.lengths"))
    planner = TablePlanner({}, [7], ())
    tables = [(path, name) for path in (file, user) for name in planner.names(path)]
    assert tables == [(file, "results"), (file, "lengths"), (user, "averages")]
    for path, name in tables:
        alone = plan_table(path, name, seeds=[7])
        assert [[plan.settings for plan in cell.plans] for cell in planner.plan(path, name).cells] == [
            [plan.settings for plan in cell.plans] for cell in alone.cells
        ]


def test_the_errors_of_a_table_are_not_those_of_the_next(file: Path) -> None:
    wrong = TABLE.replace("table results", "table wrong").replace("small at model.d = 16", "small at model.e = 16")
    planner = TablePlanner({}, (), ())
    written(file, MODEL + wrong + TABLE)
    with pytest.raises(ProgramError):
        planner.plan(file, "wrong")
    assert planner.plan(file, "results").name == "results"
