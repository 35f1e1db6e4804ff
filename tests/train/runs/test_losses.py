"""A recipe weighs the auxiliary losses of its model, and a run records them."""

import json
from pathlib import Path

import pytest

from archlang.errors import ProgramError
from archlang.plan.check import check_text
from archlang.plan.from_file import plan_recipe
from archlang.reports.run_report import RunReport
from archlang.train.runs import evaluation, training
from tests.tiny_run import TASK

PROGRAM = """
model tiny[steps = 2](x: tokens[n]) -> logits[classes] {
    h = embed[8](x)
    repeat steps {
        g = sigmoid(linear[1](h))
        loss open = mean(g)
        h <- h + g * feedforward[8](norm(h))
    }
    loss size = sum_features(mean(h * h))
    return linear[classes](last(h))
}

recipe tiny {
    task  TASK
    model tiny
    train adamw[lr = 1e-2, batch = 8, steps = 20, every = 20, losses.open = 1]
}
""".replace("TASK", TASK)


def program(folder: Path, text: str = PROGRAM) -> Path:
    file = folder / "tiny.arch"
    file.write_text(text, encoding="utf-8")
    return file


def losses(folder: Path, name: str) -> list[float]:
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [line["losses"][name] for line in lines if "lr" in line]


def test_a_run_records_each_loss_and_a_weight_moves_it(tmp_path: Path) -> None:
    file, ends = program(tmp_path), {}
    for weight in ("0.0", "3"):
        run = tmp_path / f"run {weight}"
        sets = {"train.losses.open": weight, "train.losses.size": "0.0"}
        training.train(plan_recipe(file, sets=sets), run, device="cpu")
        ends[weight] = losses(run, "open")[-1]
        assert len(losses(run, "size")) == len(losses(run, "open")) > 1
        assert any(chart.title == "Auxiliary losses in training" for chart in RunReport.read(run).charts())
        evaluation.evaluate_run(run, device="cpu")
    assert ends["3"] < ends["0.0"] - 0.05


def test_a_run_keeps_the_weights_of_its_losses(tmp_path: Path) -> None:
    plan = plan_recipe(program(tmp_path))
    assert plan.settings["train.losses.open"] == 1.0
    assert "train.losses.size" not in plan.settings
    text = PROGRAM.replace("losses.open = 1]", "losses.open = 1]\n    vary train.losses.size in [0.5, 2]")
    assert plan_recipe(program(tmp_path, text)).settings["train.losses.size"] == 0.5
    assert check_text(text) == ()


@pytest.mark.parametrize("place", ["vary train.losses.opne in [0.1]", "search train.losses.opne in 0.1..0.2"])
def test_a_weight_of_no_loss_is_refused_wherever_it_is_set(place: str) -> None:
    (mistake,) = {
        (m.code, m.remedy) for m in check_text(PROGRAM.replace("losses.open = 1]", f"losses.open = 1]\n    {place}"))
    }
    assert mistake[0] == "E0617"
    assert "`open`" in mistake[1]


def test_a_weight_of_no_loss_on_the_command_line_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProgramError, match="no auxiliary loss `opne`"):
        plan_recipe(program(tmp_path), sets={"train.losses.opne": "1"})


def test_a_weight_that_is_set_twice_or_is_no_number_is_refused() -> None:
    twice = PROGRAM.replace("losses.open = 1", "losses.open = 1, losses.open = 2")
    assert [mistake.code for mistake in check_text(twice)] == ["E0306"]
    assert [mistake.code for mistake in check_text(PROGRAM.replace("open = 1]", "open = true]"))] == ["E0303"]
