"""A page in a program is a task like any other, in its run too."""

import json
from pathlib import Path

import numpy as np
import pytest

from archlang.errors import ProgramError
from archlang.plan.from_file import plan_recipe
from archlang.tasks.kit.make_task import make_task
from archlang.tasks.kit.mistakes import TaskError
from archlang.tasks.kit.pages import page_class
from archlang.tasks.kit.split import digest
from archlang.train.record.mistakes import RunError
from archlang.train.runs.evaluation import evaluate_run
from archlang.train.runs.training import train

PROGRAM = """
## The larger of two digits.
task larger[base = 10](x: tokens[n]) -> logits[classes] with length_ranges
    gives vocab = [0..base - 1, ">"], classes = base {
    a = draw(base)
    b = draw(base)
    x = append(a, fill(">", length), b)
    return max(a, b)
}

model reader[d = 8](x: tokens[n]) -> logits[classes] {
    return embed[d](x) |> mean |> linear[classes]
}

recipe trial {
    task  larger[base = 7, train = 1..4, test = 5..6, train_size = 60, valid_size = 20, test_size = 20]
    model reader
    train adamw[lr = 1e-2, batch = 20, steps = 4]
}
"""


def test_a_run_keeps_the_page_and_is_evaluated_without_its_program(tmp_path: Path) -> None:
    program, folder = tmp_path / "mine.arch", tmp_path / "run"
    program.write_text(PROGRAM)
    train(plan_recipe(program), folder, device="cpu")
    program.unlink()
    record = json.loads((folder / "run.json").read_text())
    assert record["task"]["python"].startswith("task larger[base = 10]")
    assert record["task"]["statics"]["base"] == 7
    measured = json.loads((folder / "results.json").read_text())["splits"]["test"]
    assert evaluate_run(folder, splits=["test"]).splits["test"].metrics == pytest.approx(measured["metrics"])
    record["task"]["python"] = record["task"]["python"].replace("max(a, b)", "max(a, c)")
    (folder / "run.json").write_text(json.dumps(record))
    with pytest.raises(RunError, match="unknown value `c`"):
        evaluate_run(folder)


def test_items_are_those_of_the_definition_and_the_same_for_a_seed(tmp_path: Path) -> None:
    (tmp_path / "mine.arch").write_text(PROGRAM)
    bound = plan_recipe(tmp_path / "mine.arch").task
    task = make_task(bound.name, bound.python, bound.statics)
    items = task.generate("test", 3)
    x = items.inputs["x"]
    for index in range(len(items)):
        first, *between, last = x[index].tolist()
        assert between == [7] * len(between)
        assert len(between) in (5, 6)
        assert items.targets[index] == max(first, last)
    assert digest(items) == digest(task.generate("test", 3)) != digest(task.generate("test", 4))


def test_a_page_whose_splits_share_items_is_not_trained(tmp_path: Path) -> None:
    (tmp_path / "mine.arch").write_text(PROGRAM.replace('fill(">", length)', 'fill(">", length % 3)'))
    with pytest.raises(TaskError, match="of the 20 items of test of larger are in train too"):
        train(plan_recipe(tmp_path / "mine.arch"), tmp_path / "run", device="cpu")
    (tmp_path / "mine.arch").write_text(PROGRAM.replace("    a =", "    length <- length - length + 7\n    a ="))
    with pytest.raises(ProgramError, match="`length`: train has items of length 7, and test of 7"):
        plan_recipe(tmp_path / "mine.arch")


def test_another_page_of_the_same_name_has_another_version(tmp_path: Path) -> None:
    text = PROGRAM[PROGRAM.index("task") : PROGRAM.index("\nmodel")].strip()
    versions = {page_class("larger", each)().version for each in (text, text.replace("max", "min"))}  # type: ignore[misc]
    assert len(versions) == 2
    assert page_class("parity")().version == 2  # type: ignore[misc] # it is a page


@pytest.mark.parametrize(
    "text", ["task", "task a", "task a(x: tokens[n]) -> logits[classes] { return 1 }", "task x {} {}"]
)
def test_a_damaged_page_is_an_error(text: str) -> None:
    with pytest.raises(TaskError, match="the page of the task `a` cannot be read"):
        make_task("a", f"{text} ", {})


def test_statics_may_have_any_name(tmp_path: Path) -> None:
    (tmp_path / "mine.arch").write_text(PROGRAM.replace("base", "items"))
    bound = plan_recipe(tmp_path / "mine.arch").task
    items = make_task(bound.name, bound.python, bound.statics).generate("valid", 0)
    assert isinstance(items.targets, np.ndarray)
    assert items.targets.max() <= 6
