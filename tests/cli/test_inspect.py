"""`archlang inspect`, as a user types it."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from archlang.api.run import load_run
from archlang.api.saving import save
from tests.cli.conftest import Command
from tests.tiny_run import TASK

NDR = """
model tiny[d = 8](x: tokens[n]) -> logits[classes] {
    h = embed[d](x)
    repeat 3 { h <- copy_gate(sigmoid(linear[d](h)), norm(h + geometric_attention[heads = 2](h)), h) }
    return linear[classes](last(h))
}
recipe tiny {
    task  TASK
    model tiny
    train adamw[lr = 1e-2, batch = 8, steps = 2]
}
""".replace("TASK", TASK)


@pytest.fixture
def folder(tmp_path: Path, train_once: Callable[[str, str], Path]) -> Path:
    shutil.copytree(train_once(NDR, "run"), tmp_path, dirs_exist_ok=True)
    return tmp_path


def inspect(archlang: Command, *arguments: str) -> Any:
    return archlang("inspect", "run", "--device", "cpu", *arguments)


def trained(archlang: Command, folder: Path, program: str) -> None:
    (folder / "own.arch").write_text(program)
    result = archlang("train", "own.arch", "--device", "cpu", "--out", "own")
    assert result.code == 0, result.err


def test_an_item_of_a_split_becomes_a_page_in_the_run_folder(archlang: Command, folder: Path) -> None:
    result = inspect(archlang, "--split", "test", "--index", "7")
    assert result.code == 0
    assert "wrote run/inspect.html" in result.out
    page = (folder / "run" / "inspect.html").read_text()
    for title in ("Gate: copy_gate", "Attention: geometric_attention", "Change of the state h by step: repeat"):
        assert title in page
    assert "recipe.arch:4: copy_gate(" in page
    assert "default-src 'none'" in page
    assert not re.search("https?://|src=", page)


def test_a_saved_model_is_inspected_like_its_run(archlang: Command, folder: Path) -> None:
    save(load_run("run"), "saved")
    pages = [archlang("inspect", name, "--input", "10 a", "--json").out for name in ("run", "saved")]
    assert pages[0] == pages[1] != ""


def test_the_marks_of_every_item_are_added_to_a_typed_input(archlang: Command, folder: Path) -> None:
    inspection = json.loads(inspect(archlang, "--input", "10 a b", "--json").out)
    assert inspection["fields"]["x"] == ["[B]", "10", "a", "b", "[E]"]
    assert [answer["target"] for answer in inspection["answers"]] == [None]
    gates = next(panel for panel in inspection["panels"] if panel["unit"] == "gate")
    assert gates["frames"][0]["rows"] == ["step 1", "step 2", "step 3"]


def test_an_item_has_its_target_and_whether_it_is_right(archlang: Command, folder: Path) -> None:
    inspection = json.loads(inspect(archlang, "--split", "valid", "--index", "3", "--json").out)
    (answer,) = inspection["answers"]
    assert answer["right"] == (answer["predicted"] == answer["target"])
    assert 0 < answer["probability"] <= 1


def test_numbers_are_shown_beside_their_targets_in_every_command(archlang: Command, tmp_path: Path) -> None:
    task = "in_context_regression[inputs = 2, points = 2, test = [2], train_size = 8, valid_size = 2, test_size = 2]"
    model = "model line(x: seq[n, size]) -> seq[n, 1] { return linear[1](x) }"
    train = "train adamw[batch = 4, steps = 1, select = valid.squared_error]"
    trained(archlang, tmp_path, f"{model}\nrecipe line {{ task {task} model line {train} }}")
    shown = archlang("inspect", "own", "--split", "test", "--device", "cpu")
    assert shown.code == 0
    assert shown.out.count(", it is ") == 2
    assert "%" not in shown.out
    (tmp_path / "rows.jsonl").write_text('{"x": [[1, 2], [3, 0], [4, 5]]}\n')
    predicted = archlang("predict", "own", "--file", "rows.jsonl", "--device", "cpu")
    assert predicted.code == 0
    assert "probability" not in predicted.out
    typed = archlang("predict", "own", "--input", "[[1, 2], [3, 0], [4, 5]]", "--device", "cpu")
    assert typed.out == predicted.out
    inspected = archlang("inspect", "own", "--input", "[[1, 2], [3, 0], [4, 5]]", "--device", "cpu")
    assert inspected.code == 0, inspected.err
    answers = [line.rpartition(": ")[2] for line in inspected.out.splitlines() if not line.startswith("wrote")]
    assert " ".join(answers) in typed.out
    wrong = archlang("inspect", "own", "--input", "1 2 3", "--device", "cpu")
    assert (wrong.code, "write a row for each position, as [[0.5, 0.5], …]" in wrong.err) == (1, True)
    data = archlang("data", "show", task)
    assert data.code == 0
    assert re.search(r"answer\s+-?[\d.]+ · -?[\d.]+\n", data.out)
    assert "in_context_regression: regression, rows of numbers" in data.out
    assert "train: rows of x\n" in data.out
    assert "tokens" not in data.out
    report = archlang("report", "own")
    assert (report.code, "squared error" in report.out) == (0, True)


def test_the_same_input_gives_the_same_page(archlang: Command, folder: Path) -> None:
    pages = []
    for name in ("a.html", "b.html"):
        inspect(archlang, "--input", "10 a b", "-o", name)
        pages.append((folder / name).read_text())
    assert pages[0] == pages[1]


def test_png_writes_each_panel(archlang: Command, folder: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra `view` is not installed")
    assert inspect(archlang, "--split", "test", "--png", "panels").code == 0
    names = sorted(file.name for file in (folder / "panels").iterdir())
    assert names == [
        "01_gate_copy_gate.png",
        "02_attention_geometric_attention.png",
        "03_change_of_the_state_h_by_step_repeat.png",
    ]
    assert all((folder / "panels" / name).read_bytes().startswith(b"\x89PNG") for name in names)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--input", "10 a q"], "`q` is not a token of the task"),
        (["--input", " "], "the input has no tokens"),
        (["--input", "10 a", "--input", "10 b"], "the model reads 1 field, and 2 were given"),
        (["--split", "tset"], "the task `ctl` has no split `tset`"),
        (["--split", "test", "--index", "40"], "the split `test` has no item 40"),
        (["--input", "10 a", "--split", "test"], "--input and --split are both given"),
    ],
)
def test_a_wrong_input_is_an_error(archlang: Command, folder: Path, arguments: list[str], message: str) -> None:
    result = inspect(archlang, *arguments)
    assert result.code != 0
    assert message in result.err.replace("\n", " ")


def test_a_page_that_cannot_be_written_is_an_error(archlang: Command, folder: Path) -> None:
    (folder / "file").write_text("")
    result = inspect(archlang, "--split", "test", "-o", "file/page.html")
    assert result.code == 1
    assert "file/page.html cannot be written" in result.err.replace("\n", "")


def test_a_language_model_shows_each_scored_position(archlang: Command, folder: Path) -> None:
    trained(
        archlang, folder,
        """model m(x: tokens[n]) -> logits[n, vocab] {
            h = embed[8](x)
            stack 2 { h <- h + attention[heads = 2, causal = true](norm(h)) }
            return linear[vocab](h)
        }
        recipe r {
            task flipflop[
                length = 12, test_length = [16], test_ignore = [0.1], train_size = 8, iid_size = 4, valid_size = 4,
                test_size = 4]
            model m
            train adamw[steps = 1, batch = 4]
        }""",
    )  # fmt: skip
    inspection = json.loads(archlang("inspect", "own", "--split", "valid", "--device", "cpu", "--json").out)
    assert inspection["answers"]
    assert all(answer["place"].split()[1] == "r" for answer in inspection["answers"])
    attention = next(panel for panel in inspection["panels"] if panel["unit"] == "weight")
    assert [frame["label"] for frame in attention["frames"]] == ["layer 1", "layer 2"]


def test_a_model_decodes_the_answer_if_it_is_omitted(archlang: Command, folder: Path) -> None:
    trained(
        archlang, folder,
        """use archlang.models.seq2seq
        recipe r {
            task copy[train = 1..3, test = [4], train_size = 20, valid_size = 4, test_size = 4, eos = true]
            model seq2seq[d = 8, heads = 2, ff = 8, layers = 1]
            train adamw[steps = 1, batch = 4]
        }""",
    )  # fmt: skip
    result = archlang("inspect", "own", "--input", "3 1 2", "--device", "cpu", "--json")
    inspection = json.loads(result.out)
    assert inspection["fields"]["source"][1:-1] == ["3", "1", "2"]
    assert len(inspection["answers"]) == len(inspection["fields"]["target"])
    assert {panel["unit"] for panel in inspection["panels"]} >= {"weight"}


@pytest.mark.parametrize("halts", [False, True])
def test_the_answers_of_each_step_are_shown(archlang: Command, folder: Path, halts: bool) -> None:
    loop = "repeat 3 halting h by global_halt" if halts else "repeat 3 truncated 1"
    trained(
        archlang,
        folder,
        NDR.replace("repeat 3 {", f"y = {loop} {{").replace(
            ", h) }\n    return linear[classes](last(h))",
            ", h)\n        emit linear[classes](last(h))\n    }\n    return y",
        ),
    )
    result = archlang("inspect", "own", "--split", "test", "--device", "cpu")
    assert result.code == 0, result.err
    lines = [line for line in result.out.splitlines() if line.startswith("step ")]
    assert re.match(r"step 1: \S+, [01] of 1 right, loss \d\.\d{3}", lines[0])
    assert [("halts here" in line) for line in lines] == [halts] * 3
    assert "Prediction of each step" in (folder / "own" / "inspect.html").read_text()
    shown = json.loads(archlang("inspect", "own", "--split", "test", "--device", "cpu", "--json").out)
    assert shown["steps"][-1]["answers"] == shown["answers"]
    if halts:
        assert sum(step["halting"] for step in shown["steps"]) == pytest.approx(1, rel=1e-5)
    typed = archlang("inspect", "own", "--input", "10 a", "--device", "cpu").out
    assert re.search(r"^step 1: \S+", typed, re.MULTILINE)
    assert "loss" not in typed
