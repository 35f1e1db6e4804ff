"""The playground trains one recipe at a time, in processes that end with it."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from archlang.play import training
from archlang.play.mistakes import RequestError
from archlang.play.server import Server
from archlang.play.service import Service
from archlang.play.training import PlaygroundTrainer
from tests.cli.conftest import TINY

STEP = '{"step": %d, "loss": %f, "lr": 0.1, "gradient_norm": null, "mean_depth": null}\\n'
Stand = Callable[[str], None]


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Stand:
    """Sets a Python program that runs in place of each command; `command` is the command's first word."""
    monkeypatch.setattr(training, "_SECONDS", 0.01)

    def set_program(program: str) -> None:
        def start(run: Any, arguments: Sequence[str]) -> subprocess.Popen[str]:
            text = f"import os, sys, time\ncommand = {arguments[0]!r}\n{program}"
            return subprocess.Popen(
                [sys.executable, "-I", "-c", text], cwd=run.folder, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip

        monkeypatch.setattr(training._Run, "_command", start)

    return set_program


@pytest.fixture
def trainer() -> Iterator[PlaygroundTrainer]:
    with closing(PlaygroundTrainer()) as new_trainer:
        yield new_trainer


def until(trainer: PlaygroundTrainer, state: str) -> Mapping[str, Any]:
    """Returns the progress once the training is in a state."""
    while (progress := trainer.progress(0))["state"] != state:
        assert progress["state"] == "running", progress
        time.sleep(0.01)
    return progress


def test_the_curve_the_evaluations_and_the_inspection_are_those_of_the_run(
    trainer: PlaygroundTrainer, stand_in: Stand
) -> None:
    steps = "".join(STEP % (step, 1 / step) for step in (1, 2, 3))
    evaluations = '{"step": 1, "split": "test", "loss": 1.0, "accuracy": 0.1}\\n'
    evaluations += '{"step": 3, "split": "test", "loss": 0.5, "accuracy": 0.7}\\n'
    stand_in(
        "if command == 'train':\n"
        "    os.makedirs('run/checkpoints/step-00000003')\n"
        f"    open('run/metrics.jsonl', 'w').write('{steps}{evaluations}')\n"
        "else:\n"
        "    open('inspection.html', 'w').write('gates')\n"
    )
    trainer.start("the program", "r", 3)
    progress = until(trainer, "done")
    assert (progress["recipe"], progress["step"], progress["steps"]) == ("r", 3, 3)
    assert [step for step, _ in progress["curve"]] == [1, 2, 3]
    assert trainer.progress(2)["curve"] == [[3, pytest.approx(1 / 3, abs=1e-6)]]
    assert progress["evaluations"] == [{"step": 3, "split": "test", "metrics": {"accuracy": 0.7}}]
    assert trainer.inspection(progress["inspection"]) == b"gates"
    assert trainer.inspection("guessed") is None


def test_a_training_that_fails_says_why(trainer: PlaygroundTrainer, stand_in: Stand) -> None:
    stand_in("sys.exit('warning: x\\nerror: the file is missing\\n  help: fetch it')")
    trainer.start("", "r", 3)
    assert until(trainer, "failed")["message"] == "the file is missing\n  help: fetch it"


def test_one_recipe_is_trained_at_a_time_until_it_is_stopped(trainer: PlaygroundTrainer, stand_in: Stand) -> None:
    stand_in("time.sleep(600)")
    trainer.start("", "r", 3)
    with pytest.raises(RequestError, match="another recipe is being trained"):
        trainer.start("", "r", 3)
    trainer.stop()
    until(trainer, "stopped")
    trainer.start("", "r", 3)


def test_closing_ends_the_processes_and_removes_the_files(stand_in: Stand) -> None:
    stand_in("time.sleep(600)")
    trainer = PlaygroundTrainer()
    trainer.start("the program", "r", 3)
    assert trainer._run is not None
    (process,), folder = trainer._run._processes, trainer._run.folder
    assert (folder / "program.arch").read_text() == "the program"
    trainer.close()
    assert process.poll() is not None
    assert not folder.exists()
    with pytest.raises(RequestError, match="nothing has been trained"):
        trainer.progress(0)


class Noted(PlaygroundTrainer):
    """Notes what it should train."""

    def __init__(self) -> None:
        super().__init__()
        self.trained: list[tuple[str, str, int]] = []

    @property
    def is_started(self) -> bool:
        return bool(self.trained)

    def start(self, text: str, recipe: str, steps: int) -> None:
        self.trained.append((text, recipe, steps))

    def progress(self, after: int) -> Mapping[str, Any]:
        return {"after": after}

    def stop(self) -> None:
        self.trained.clear()


def test_the_page_trains_where_the_service_has_a_trainer() -> None:
    noted = Noted()
    service = Service("/nowhere", noted)
    assert service.answer({"method": "start"})["result"]["trains"] is True  # type: ignore[call-overload, index] # JSON
    request = {"method": "train", "text": "t", "recipe": "r", "steps": 300}
    assert service.answer(request) == {"result": {}}
    assert noted.trained == [("t", "r", 300)]
    assert service.answer({"method": "start"})["result"]["is_started"] is True  # type: ignore[call-overload, index] # JSON
    assert service.answer({"method": "progress", "after": 4}) == {"result": {"after": 4}}
    service.answer({"method": "stop"})
    for change in ({"steps": 0}, {"steps": 10**6}, {"recipe": "--help"}, {"beside": "papers/panm/table1"}):
        assert "error" in service.answer({**request, **change})
    assert noted.trained == []
    for steps in (0, -5, 1.5, None, 99_999):
        error = service.answer({**request, "steps": steps})["error"]
        assert error["remedy"] == "write a number from 1 to 10,000"  # type: ignore[call-overload, index] # JSON
    assert "error" in Service("/nowhere").answer(request)


def test_an_inspection_is_in_a_frame_that_reaches_nothing() -> None:
    from tests.play.test_server import request, running

    with running(Server(dict, framed=lambda name: b"page" if name == "known" else None)) as server:
        status, text, response = request(server, "GET", "/framed/known", "")
        assert (status, text) == (200, "page")
        assert response.headers["Content-Security-Policy"].startswith("sandbox allow-scripts; default-src 'none';")
        assert request(server, "GET", "/framed/guessed", "")[0] == 404


@pytest.mark.slow
def test_a_recipe_is_trained_and_inspected(trainer: PlaygroundTrainer) -> None:
    trainer.start(TINY + "}\n", "tiny", 20)
    progress = until(trainer, "done")
    assert progress["step"] == 20
    assert len(progress["curve"]) > 5
    assert {each["split"] for each in progress["evaluations"]} >= {"iid", "valid", "test"}
    page = trainer.inspection(progress["inspection"])
    assert page is not None
    assert b"Prediction" in page


@pytest.mark.slow
def test_the_mistake_of_a_recipe_that_cannot_be_trained_is_shown(trainer: PlaygroundTrainer, tmp_path: Path) -> None:
    trainer.start(TINY + "}\n", "other", 20)
    assert "other" in until(trainer, "failed")["message"]
