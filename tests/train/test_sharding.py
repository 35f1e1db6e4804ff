"""Processes that divide the weights train the model of one process, and what cannot be divided is refused by name."""

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._C._distributed_c10d import HashStore

from archlang.compile import build
from archlang.plan.from_file import plan_recipe
from archlang.tasks.kit.make_task import make_task
from archlang.train.data import DeviceSplit
from archlang.train.record.checkpoint import Checkpoints
from archlang.train.record.divided import is_divided
from archlang.train.score import add_written, evaluate
from archlang.train.sharding import shard
from tests.train.test_several_processes import ARCHLANG, run, train_here

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not torch.distributed.is_available(), reason="the processes need gloo"
)

# A table with two uses, experts in a stack in a loop, a stack in a halting loop, more steps at test, and answers that
# are written.
PROGRAM = """
block mixture[f: block = feedforward[8], experts = 3, k = 2](h: seq[n, d]) -> seq[n, d] {
    p = softmax(linear[experts](h))
    chosen = top_k[k](p)
    y = experts v in h by p * chosen { emit f(v) }
    return y
}

model small[d = 8, steps = 3](source: tokens[n], target: tokens[m]) -> logits[m, vocab] {
    let e = embed[d]
    h = norm(e(target) + attention[1](e(target), e(source)))
    repeat 2 { stack 2 { h <- norm(h + attention[1, causal = true](h) + mixture(h)) } }
    repeat steps halting h by global_halt[causal = true] { stack 2 { h <- norm(h + attention[1, causal = true](h)) } }
    return unembed[e](h)
}

recipe small {
    task  copy[train = 1..9, test = [12], eos = true, train_size = 31, iid_size = 4, valid_size = 4, test_size = 4]
    model small
    train adamw[lr = 0.01, batch = 15, micro = 4, steps = 6, every = 3, clip = 1.0, ponder = 0.5, ema = 0.9]
    test  model.steps = 4
}
"""
SHARDED_2, SHARDED_3 = ("--devices", "2", "--shard"), ("--devices", "3", "--shard")


def train(folder: Path, *options: str) -> None:
    run([*ARCHLANG, "train", "small.arch", "--out", "run", "--device", "cpu", *options], folder)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of one process."""
    folder = tmp_path_factory.mktemp("alone")
    (folder / "small.arch").write_text(PROGRAM)
    train_here(folder)
    return folder


def assert_same_checkpoints(left: Path, right: Path) -> None:
    """Compares the weights, the moments, and the weights that are trained where the others are their average."""
    checkpoints = [Checkpoints(folder / "run" / "checkpoints") for folder in (left, right)]
    assert checkpoints[0].steps() == checkpoints[1].steps() == [3, 6]
    for step in (3, 6):
        one, other = (each.read(step) for each in checkpoints)
        assert one.state.trained is not None
        assert other.state.trained is not None
        values = [{**each.weights} for each in (one, other)] + [{**one.state.trained}, {**other.state.trained}]
        moments = [each.state.optimizer["state"] for each in (one, other)]
        flat = [{f"{index} {name}": each[index][name] for index in each for name in each[index]} for each in moments]
        torch.testing.assert_close(values[0], values[1], rtol=0, atol=1e-6)
        torch.testing.assert_close(values[2], values[3], rtol=0, atol=1e-6)
        torch.testing.assert_close(flat[0], flat[1], rtol=0, atol=1e-6)


def splits_of(folder: Path) -> list[dict[str, Any]]:  # Any: as JSON is
    return [*json.loads((folder / "run" / "results.json").read_text())["splits"].values()]


def test_two_processes_that_divide_the_weights_train_those_of_one(alone: Path, tmp_path: Path) -> None:
    shutil.copy(alone / "small.arch", tmp_path)
    train(tmp_path, *SHARDED_2, "--remat", "2")
    assert_same_checkpoints(alone, tmp_path)
    folders = [tmp_path / "run" / "checkpoints" / f"step-0000000{step}" for step in (3, 6)]
    rows = [sorted(file.name for file in folder.glob("rows-*")) for folder in folders]
    # The selected weights are in one file, the others where the processes have written them.
    assert [] in rows
    assert ["rows-1-of-2.safetensors", "rows-2-of-2.safetensors"] in rows
    # One process has a batch of each split, and the other one keeps step.
    for one, two in zip(splits_of(alone), splits_of(tmp_path), strict=True):
        assert one["loss"] == pytest.approx(two["loss"], rel=1e-4)
        assert one["metrics"].keys() >= {"exact_match", "oracle_match"}
        assert one["metrics"] == pytest.approx(two["metrics"])
    for name in ("run.json", "graph.txt", "data.json"):
        assert (tmp_path / "run" / name).read_bytes() == (alone / "run" / name).read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "second"),
    [(SHARDED_2, ()), ((), SHARDED_3), (SHARDED_2, SHARDED_3), (SHARDED_3, ("--devices", "2"))],
    ids=lambda options: " ".join(options) or "alone",
)
def test_another_number_of_processes_resumes(
    first: tuple[str, ...], second: tuple[str, ...], alone: Path, tmp_path: Path
) -> None:
    shutil.copy(alone / "small.arch", tmp_path)
    train(tmp_path, *first)
    (tmp_path / "run" / "results.json").unlink()
    shutil.rmtree(tmp_path / "run" / "checkpoints" / "step-00000006")
    train(tmp_path, *second)
    assert_same_checkpoints(alone, tmp_path)


@pytest.fixture
def group() -> Iterator[None]:
    torch.distributed.init_process_group("gloo", rank=0, world_size=1, store=HashStore())
    yield
    torch.distributed.destroy_process_group()


@pytest.mark.usefixtures("group")
def test_an_evaluation_gathers_one_step_of_a_stack_at_a_time(tmp_path: Path) -> None:
    (tmp_path / "small.arch").write_text(PROGRAM)
    plan = plan_recipe(tmp_path / "small.arch")
    task = make_task(plan.task.name, plan.task.python, plan.task.statics, plan.plugins)
    module, split, cpu = build(plan.graph), task.generate("valid", 0), torch.device("cpu")
    shard(module, cpu)
    steps = [part for part in module.modules() if hasattr(part, "unshard") and part is not module]
    counts = list[int]()

    def count(*_: object) -> None:
        counts.append(sum(not is_divided(next(step.parameters())) for step in steps))

    for step in steps:
        step.register_forward_hook(count)
    score = evaluate(module, DeviceSplit(split, cpu), split, "valid", task)
    assert max(counts) < len(steps)
    assert all(map(is_divided, module.parameters()))
    counts.clear()
    add_written(score, module, split, task, cpu)
    assert max(counts) == len(steps)
    assert all(map(is_divided, module.parameters()))
