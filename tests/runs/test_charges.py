"""A recipe weighs the charges of its model, and a run records them."""

import json
from pathlib import Path

import pytest

from archlang.diagnostics import ProgramError
from archlang.pages.reports.run_report import RunReport
from archlang.plan.check import check_text
from archlang.plan.from_file import plan_recipe
from archlang.runs import evaluation, training

PROGRAM = """
model tiny[steps = 2](x: tokens[n]) -> logits[classes] {
    h = embed[8](x)
    repeat steps {
        g = sigmoid(linear[1](h))
        charge open = mean(g)
        h <- h + g * feedforward[8](norm(h))
    }
    charge size = sum_features(mean(h * h))
    return linear[classes](last(h))
}

recipe tiny {
    task  ctl[
        order = forward, symbols = 3, functions = 2, new_functions = 0, reserved = 0, balanced = true,
        train = 1..3, valid = 4..4, test = 5..6, train_size = 30, iid_size = 3, valid_size = 20, test_size = 40
    ]
    model tiny
    train adamw[lr = 1e-2, batch = 8, steps = 20, every = 20, charges.open = 1]
}
"""


def program(folder: Path, text: str = PROGRAM) -> Path:
    file = folder / "tiny.arch"
    file.write_text(text, encoding="utf-8")
    return file


def charges(folder: Path, name: str) -> list[float]:
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [line["charges"][name] for line in lines if "lr" in line]


def test_a_run_records_each_charge_and_a_weight_moves_it(tmp_path: Path) -> None:
    file, ends = program(tmp_path), {}
    for weight in ("0.0", "3"):
        run = tmp_path / f"run {weight}"
        sets = {"train.charges.open": weight, "train.charges.size": "0.0"}
        training.train(plan_recipe(file, sets=sets), run, device="cpu")
        ends[weight] = charges(run, "open")[-1]
        assert len(charges(run, "size")) == len(charges(run, "open")) > 1
        assert any(chart.title == "Charges in training" for chart in RunReport.read(run).charts())
        evaluation.evaluate_run(run, device="cpu")
    assert ends["3"] < ends["0.0"] - 0.05


def test_a_run_keeps_the_weights_of_its_charges(tmp_path: Path) -> None:
    plan = plan_recipe(program(tmp_path))
    assert plan.settings["train.charges.open"] == 1.0
    assert "train.charges.size" not in plan.settings
    text = PROGRAM.replace("charges.open = 1]", "charges.open = 1]\n    vary train.charges.size in [0.5, 2]")
    assert plan_recipe(program(tmp_path, text)).settings["train.charges.size"] == 0.5
    assert check_text(text) == ()


@pytest.mark.parametrize("place", ["vary train.charges.opne in [0.1]", "search train.charges.opne in 0.1..0.2"])
def test_a_weight_of_no_charge_is_refused_wherever_it_is_set(place: str) -> None:
    (mistake,) = {
        (m.code, m.remedy) for m in check_text(PROGRAM.replace("charges.open = 1]", f"charges.open = 1]\n    {place}"))
    }
    assert mistake[0] == "E0617"
    assert "`open`" in mistake[1]


def test_a_weight_of_no_charge_on_the_command_line_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match="no charge `opne`"):
        plan_recipe(program(tmp_path), sets={"train.charges.opne": "1"})


def test_a_weight_that_is_set_twice_or_is_no_number_is_refused() -> None:
    twice = PROGRAM.replace("charges.open = 1", "charges.open = 1, charges.open = 2")
    assert [mistake.code for mistake in check_text(twice)] == ["E0306"]
    assert [mistake.code for mistake in check_text(PROGRAM.replace("open = 1]", "open = true]"))] == ["E0303"]
