"""The gradients of micro-batches add up to the gradients of the batch; running out of memory halves micro-batches."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from archlang.plan.from_file import plan_recipe
from archlang.record.mistakes import RunError
from archlang.runs import training
from archlang.train import loss
from archlang.train.step import MemoryWarning
from tests.tiny_run import StopAfter

QUIETLY = pytest.mark.filterwarnings("ignore::archlang.train.step.MemoryWarning")

# Items have different numbers of scored positions, and a halting loop adds its ponder.
PROGRAM = """
model small[d = 8](x: tokens[n]) -> logits[n, vocab] {
    h = embed[d](x)
    repeat 3 halting h by global_halt[causal = true] { h <- norm(h + attention[1, causal = true](h)) }
    return linear[vocab](h)
}

recipe small {
    task  flipflop[length = 16, train_size = 64, iid_size = 8, valid_size = 8, test_length = [16], test_size = 8]
    model small
    train sgd[lr = 0.5, batch = 16, steps = 6, every = 3, ponder = 0.5]
}
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "small.arch"
    path.write_text(PROGRAM)
    return path


def losses(folder: Path) -> list[float]:
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [line["loss"] for line in lines if "split" not in line]


def train(program: Path, folder: Path, **sets: str) -> list[float]:
    settings = {name.replace("__", "."): value for name, value in sets.items()}
    training.train(plan_recipe(program, sets=settings), folder, device="cpu")
    return losses(folder)


@pytest.mark.parametrize("micro", ["1", "5", "8"])
def test_micro_batches_train_as_the_batch_does(program: Path, tmp_path: Path, micro: str) -> None:
    full = train(program, tmp_path / "full")
    parts = train(program, tmp_path / "parts", train__micro=micro)
    torch.testing.assert_close(parts, full, rtol=1e-5, atol=1e-6)


def short_of_memory(monkeypatch: pytest.MonkeyPatch, most: int) -> list[int]:
    """Makes larger batches than `most` samples run out of memory. Returns the sizes that were tried."""
    tried: list[int] = []
    forward = loss.forward

    def narrow(module: Any, batch: Any) -> Any:
        tried.append(len(batch.items))
        if len(batch.items) > most:
            raise torch.OutOfMemoryError("no room")
        return forward(module, batch)

    monkeypatch.setattr(loss, "forward", narrow)
    return tried


def test_a_lack_of_memory_halves_micro_batches_and_does_not_change_the_curve(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = train(program, tmp_path / "full")
    tried = short_of_memory(monkeypatch, most=5)
    with pytest.warns(MemoryWarning) as warned:
        parts = train(program, tmp_path / "parts")
    assert "continuing with 8" in str(warned[0].message)
    assert "continuing with 4" in str(warned[1].message)
    assert tried[:4] == [16, 8, 4, 4]
    assert set(tried[4:]) == {4}
    torch.testing.assert_close(parts, full, rtol=1e-5, atol=1e-6)


@QUIETLY
def test_a_resumed_run_keeps_its_micro_batches(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "run"
    plan = plan_recipe(program)
    tried = short_of_memory(monkeypatch, most=8)
    assert training.train(plan, folder, device="cpu", stop=StopAfter(3)).stopped
    tried.clear()
    training.train(plan, folder, device="cpu")
    assert set(tried) == {8}


@QUIETLY
def test_a_single_sample_that_does_not_fit_ends_the_run_with_an_error(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short_of_memory(monkeypatch, most=0)
    with pytest.raises(RunError, match="memory"):
        train(program, tmp_path / "run")
