"""Fixtures for a run that takes a fraction of a second."""

import multiprocessing
from collections.abc import Callable
from pathlib import Path

import pytest
from torch import Tensor

from archlang.plan.from_file import plan_recipe
from archlang.train.record.checkpoint import Checkpoints
from archlang.train.runs import evaluation, training
from archlang.train.stop import Stop

# A task that is generated in a millisecond.
TASK = """ctl[
        symbols = 3, functions = 2, new_functions = 0, reserved = 0, balanced = true,
        train = 1..3, valid = 4..4, test = 5..6, train_size = 30, iid_size = 3, valid_size = 20, test_size = 40
    ]"""
TINY = """
model tiny[d = 8, steps = 2](x: tokens[n]) -> logits[classes] {
    h = embed[d](x)
    repeat steps halting h by token_halt {
        h <- h + dropout[0.1](feedforward[8](norm(h)))
    }
    return linear[classes](last(h))
}

recipe tiny {
    task  TASK
    model tiny
    train adamw[lr = 1e-2, clip = 1.0, batch = 8, steps = 40, every = 10, ponder = 0.01]
    claim test.accuracy = 1.00 ± 0.02 from "nobody"
    claim test.accuracy[5] = 0.50 from "nobody"
}
""".replace("TASK", TASK.replace("[", "[order = forward,", 1))

Train = Callable[..., evaluation.Result]


def latest_weights(run: Path) -> dict[str, Tensor]:
    """Returns the weights of the latest checkpoint of a run."""
    checkpoint = Checkpoints(run / "checkpoints").latest()
    assert checkpoint is not None
    return dict(checkpoint.weights)


class StopAfter(Stop):
    """A stop that is requested after `asks` checks: the loop checks before each step and each measurement."""

    def __init__(self, asks: int) -> None:
        self.asks = asks

    @property
    def requested(self) -> bool:
        self.asks -= 1
        return self.asks < 0

    @requested.setter
    def requested(self, value: bool) -> None:
        raise AssertionError


@pytest.fixture
def program(tmp_path: Path) -> Path:
    file = tmp_path / "tiny.arch"
    file.write_text(TINY)
    return file


@pytest.fixture
def train(program: Path) -> Train:
    """Trains the program into a folder: `train(folder, model__d="16")`."""

    def trained(folder: Path, **sets: str) -> evaluation.Result:
        settings = {name.replace("__", "."): value for name, value in sets.items()}
        return training.train(plan_recipe(program, sets=settings), folder, device="cpu")

    return trained


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an uninterrupted run of the program."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "tiny.arch").write_text(TINY)
    training.train(plan_recipe(folder / "tiny.arch"), folder / "run", device="cpu")
    return folder / "run"


@pytest.fixture
def forked_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers of tables are forked from a process that has imported torch once; they see the environment of the first.
    Starting one from nothing takes more than two seconds."""
    if "forkserver" in multiprocessing.get_all_start_methods():
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["archlang.train.runs.engines", "archlang.train.runs.training"])
        monkeypatch.setattr(multiprocessing, "get_context", lambda method: context)
