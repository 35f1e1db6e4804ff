"""What the class of a task refuses, `check` refuses."""

from pathlib import Path

import pytest

from archlang.plan.check import check_text
from archlang.plan.from_file import plan_recipe
from archlang.resolve import library

VALUES = {
    "int": ("0", "16_777_216"),
    "float": ("inf", "0.5"),
    "bool": ("true", "false"),
    "symbol": ("other",),
    "range": ("0..0", "-5..3", "40..2", "1..16_777_216"),
    "list": ("[]", "[1]", "[word]", "[1..2, [1], true]", "[-1, inf]"),
    "file": ('"absent.tsv"',),
    "files": ('"absent.tsv"', "[]", '["absent.tsv", ""]', '["a.csv", 1]', "[word]"),
}


@pytest.mark.parametrize(
    "task",
    [
        "flipflop[test_length = [7]]",
        'file_language_model["corpus.pdf"]',
        'file_language_model["a.csv", test = "b.doc"]',
    ],
)
def test_a_static_that_the_class_of_a_task_refuses_is_reported(task: str) -> None:
    text = "model m(x: tokens[n]) -> logits[n, vocab] { return embed[4](x) |> linear[vocab] }"
    (diagnostic,) = check_text(text + f"recipe r {{ task {task} model m train adamw[steps = 1] }}")
    assert (diagnostic.code, diagnostic.span.text) == ("E0618", task)


@pytest.mark.parametrize("name", sorted(library.task_names()))
def test_a_mistake_in_any_static_has_a_remedy(name: str) -> None:
    item = library.task(name)
    assert item is not None
    for static in item.signature.statics:
        for value in VALUES.get(static.kind or "", ()):
            text = f"recipe r {{ task {name}[{static.name} = {value}] model m train adamw[steps = 1] }}"
            diagnostics = check_text(text)  # at least the missing model
            assert diagnostics
            assert all(diagnostic.remedy for diagnostic in diagnostics), text


MODEL = "model m(x: tokens[n]) -> logits[classes] { return linear[classes](last(embed[4](x))) }\n"


@pytest.mark.parametrize(
    ("task", "train", "claim", "split"),
    [
        ("ctl[valid_size = 0]", "", "", "valid"),
        ("ctl[valid_size = 0]", ", select = iid.accuracy", "", ""),
        ("ctl[test_size = 0]", "", "", ""),
        ("ctl[test_size = 0]", "", 'claim test.accuracy = 0.5 from "p"', "test"),
        ("sudoku[train_size = 0]", ", select = test.loss", "", "train"),
        ("ctl[test_size = 0]", "", 'claim test.accuracy = 0.5 at task.test_size = 10 from "p"', ""),
        # Here 0 is the published size.
        ("listops[train_size = 0, valid_size = 0]", "", "", ""),
    ],
)
def test_a_split_without_items_is_not_trained_on_chosen_by_or_claimed_about(
    task: str, train: str, claim: str, split: str
) -> None:
    model = (
        MODEL
        if "sudoku" not in task
        else "model m(x: tokens[n]) -> logits[n, classes] { return linear[classes](embed[4](x)) }\n"
    )
    text = f"{model}recipe r {{ task {task} model m train adamw[steps = 1{train}] {claim} }}"
    messages = [diagnostic.message for diagnostic in check_text(text) if diagnostic.code == "E0625"]
    assert messages == ([f"the split `{split}` of `{task.partition('[')[0]}` has no items"] if split else [])


@pytest.mark.parametrize("item", ["norm", "true", "mean", "some"])
def test_a_list_of_lengths_holds_numbers_only(item: str) -> None:
    text = (
        "model m(source: tokens[n], target: tokens[m]) -> logits[m, vocab] { return linear[vocab](embed[4](target)) }"
    )
    (mistake,) = check_text(f"{text}recipe r {{ task copy[test = [30, {item}]] model m train adamw[steps = 1] }}")
    assert mistake.code == "E0304"
    assert mistake.message.startswith("`copy` requires `test in 1..4_096`, but test = [30, ")


@pytest.mark.parametrize(
    ("metrics", "twice"),
    [
        ("mine.a, mine.b", []),
        ("mine.a, yours.a", ["a"]),
        ("mine.accuracy", ["accuracy"]),
        ("mine.loss, mine.exact_match", ["loss", "exact_match"]),
    ],
)
def test_a_metric_of_the_users_own_has_a_name_of_its_own(metrics: str, twice: list[str]) -> None:
    text = f"{MODEL}recipe r {{ task ctl model m train adamw[steps = 1, metrics = [{metrics}]] }}"
    diagnostics = check_text(text)
    assert [(diagnostic.code, diagnostic.message) for diagnostic in diagnostics] == [
        ("E0626", f"two metrics of a run have the name `{name}`") for name in twice
    ]


@pytest.mark.parametrize(
    ("task", "problems"),
    [
        ("word_problem[group = z5]", {"counting"}),
        ("word_problem[group = z60]", {"parity", "counting"}),
        ("word_problem[group = s3]", {"parity", "counting", "permutations"}),
        ("word_problem[group = a5]", {"parity", "counting", "permutations", "nonsolvable"}),
        ("automaton", set()),
    ],
)
def test_what_a_task_demands_follows_from_its_statics(tmp_path: Path, task: str, problems: set[str]) -> None:
    model = "model m(x: tokens[n]) -> logits[n, classes] { return linear[classes](embed[4](x)) }\n"
    (tmp_path / "m.arch").write_text(f"{model}recipe r {{ task {task} model m train adamw[steps = 1] }}")
    assert plan_recipe(tmp_path / "m.arch").problems == problems


@pytest.mark.parametrize(
    ("clause", "code", "message"),
    [
        ("demands evenness", "E0508", "unknown problem `evenness`"),
        ("demands parity when width > 2", "E0313", "`width`"),
        ("demands parity when width == 2", "E0313", "`width`"),
        ("demands parity when 2 == width", "E0313", "`width`"),
        ("demands parity when size", "E0303", "a condition takes `true` or `false`"),
    ],
)
def test_a_problem_that_cannot_be_is_reported(clause: str, code: str, message: str) -> None:
    gives = "gives vocab = 2, classes = 2"
    text = f'extern task own[size: int = 2](x: tokens[n]) -> logits[classes] {gives} {clause} python "own:Own"\n'
    (mistake,) = check_text(text)
    assert mistake.code == code, mistake.message
    assert message in mistake.message


def test_a_comment_and_the_layout_of_a_page_make_no_other_task(tmp_path: Path) -> None:
    page = "task t[k = 2](x: tokens[n]) -> logits[classes] with length_ranges gives vocab = k, classes = k {\n"
    recipe = f"}}\n{MODEL}recipe r {{ task t model m train adamw[steps = 1] }}\n"
    texts = (
        page + "    x = draw(k, length)\n    return sum(x) % k\n" + recipe,
        page + "    # a word\n    x = draw( k,length )   # of symbols\n\n    return sum(x)%k\n" + recipe,
        page + "    x = draw(k, length)\n    return (sum(x) + 1) % k\n" + recipe,
    )
    for name, text in zip("abc", texts, strict=True):
        (tmp_path / name).write_text(text)
    written, commented, other = (plan_recipe(tmp_path / name).task for name in "abc")
    assert written == commented != other
