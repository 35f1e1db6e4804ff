"""The estimated time of training steps."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch

from archlang.backend.measured_costs import peak_in_training
from archlang.compile import build
from archlang.plan.from_file import plan_recipe
from archlang.plan.plan import Plan
from archlang.tasks.kit.pages import PageTask
from archlang.tasks.kit.split import Split
from archlang.train.memory import training_memory
from archlang.train.runs import cost as costs
from archlang.train.runs.cost import RunCost, estimate_cost, matrix_speed, measured_activations, seconds_per_step
from archlang.train.runs.points import Point

PROGRAM = """
model small[d = 8](x: tokens[n]) -> logits[classes] {
    return embed[d](x) |> linear[d] |> last |> linear[classes]
}

recipe small {
    task  parity[train = 10..10, test = 11..12, train_size = 64]
    model small
    train adamw[lr = 1e-3, batch = 8, steps = 100]
}
"""


@dataclass
class Trained:
    """The batches that were trained, instead of training them."""

    batches: list[Any]  # Any: statics of several kinds

    def __call__(self, plan: Plan, folder: Path, *, watcher: Any, stop: Any, **_: object) -> None:
        self.batches.append(plan.train.statics["batch"])
        for step in count(1):
            if stop.requested:
                return
            watcher.step(step, 100, 1.0, 1.0, 8.0, None)


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> Trained:
    """Trains nothing; a step takes three seconds."""
    seconds: Iterator[float] = count(0.0, 3.0)
    trained = Trained([])
    monkeypatch.setattr(costs, "train", trained)
    monkeypatch.setattr("archlang.train.runs.cost.time.perf_counter", lambda: next(seconds))
    return trained


def point_of(tmp_path: Path) -> Point:
    program = tmp_path / "small.arch"
    program.write_text(PROGRAM)
    return Point("small", plan_recipe(program), tmp_path / "run", "cpu")


def test_a_batch_of_few_flops_is_timed_whole(trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(costs, "matrix_speed", lambda device: 100.0)
    assert seconds_per_step(point_of(tmp_path), RunCost(steps=100, flops=9_000.0)) == 3.0
    assert trained.batches == [8]


def test_a_batch_that_takes_long_is_timed_in_part(
    trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    point = point_of(tmp_path)
    cost = estimate_cost(point.plan)
    monkeypatch.setattr(costs, "matrix_speed", lambda device: cost.flops / cost.steps / 4)
    # All samples have the same length: a fourth of the batch has a fourth of the FLOPs.
    assert seconds_per_step(point, cost) == pytest.approx(12.0)
    assert trained.batches == [2]


def test_the_memory_of_many_samples_follows_from_that_of_few(tmp_path: Path) -> None:
    plan = point_of(tmp_path).plan
    measure = measured_activations(plan, 64)
    direct = peak_in_training(partial(build, plan.graph), 64, 40, torch.float32, 0)
    assert direct is not None
    assert measure(40) == pytest.approx(direct, rel=1e-3)
    assert training_memory(plan, 64, measure=measure).activations == measure(8) != training_memory(plan, 64).activations
    counted = training_memory(plan, 64, measure=lambda samples: None)
    assert counted == replace(training_memory(plan, 64), is_counted=True)
    assert "activations as the page is written" in str(counted)


def test_samples_are_measured_without_padding_where_that_takes_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    peaks: dict[tuple[int, bool], int | None] = {(16, True): None, (8, True): 900, (16, False): 1600, (8, False): 800}
    monkeypatch.setattr(costs, "peak_in_training", lambda *facts, is_padded: peaks[facts[2], is_padded])
    plan = point_of(tmp_path).plan
    assert measured_activations(plan, 64)(40) == 4000
    # Sixteen samples hold less where larger maps are computed again: more of them hold as much in proportion.
    peaks |= {(16, False): 600}
    assert measured_activations(plan, 64)(40) == 1500
    peaks |= {(16, False): None}
    assert measured_activations(plan, 64)(40) is None


def test_the_speed_of_matrix_products_is_measured() -> None:
    assert matrix_speed("cpu") > 1e6


def test_timing_makes_no_data_of_tests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generated_splits = []
    generate = PageTask.generate

    def noted(task: PageTask, split: str, seed: int) -> Split:
        generated_splits.append(split)
        return generate(task, split, seed)

    monkeypatch.setattr(PageTask, "generate", noted)
    monkeypatch.setenv("ARCHLANG_CACHE", str(tmp_path / "cache"))
    assert seconds_per_step(point_of(tmp_path), RunCost(steps=100, flops=1.0)) > 0
    assert generated_splits == ["train", "valid"]
