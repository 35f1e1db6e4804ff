"""Checkpoints are whole or not there, and damage is noticed."""

import math
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from torch import nn

from archlang.record.checkpoint import Checkpoints, CheckpointWarning
from archlang.record.mistakes import RunError
from archlang.record.schemas import CheckpointState, EvaluationMetrics


@pytest.fixture
def checkpoints(tmp_path: Path) -> Checkpoints:
    return Checkpoints(tmp_path / "checkpoints")


def layer(fill: float) -> nn.Linear:
    made = nn.Linear(3, 3)
    nn.init.constant_(made.weight, fill)
    return made


def state(step: int) -> CheckpointState:
    return CheckpointState(
        optimizer={"tensor": torch.ones(2)}, precision={}, random={}, epoch=step, position=0, evaluated=step, best=0.5,
        best_step=step, history=(EvaluationMetrics.of(step, "valid", math.nan, {"accuracy": 0.5}),), sizes={},
    )  # fmt: skip


def save(checkpoints: Checkpoints, *steps: int, best: int | None = None) -> None:
    for step in steps:
        checkpoints.save(step, layer(step), state(step), best)


def damage(checkpoints: Checkpoints, step: int, name: str = "weights.safetensors") -> None:
    place = checkpoints.folder / f"step-{step:08d}" / name
    whole = place.read_bytes()
    place.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))


def test_what_was_saved_is_read_back(checkpoints: Checkpoints) -> None:
    save(checkpoints, 5)
    saved = checkpoints.latest()
    assert saved is not None
    assert (saved.step, saved.state.epoch) == (5, 5)
    assert saved.state.optimizer["tensor"].equal(torch.ones(2))
    assert [(line.loss, line.metrics) for line in saved.state.history] == [(None, {"accuracy": 0.5})]
    into = layer(0)
    saved.load_into(into)
    assert (into.weight == 5).all()


def test_the_last_two_and_the_best_are_kept(checkpoints: Checkpoints) -> None:
    save(checkpoints, 1, 2, 3, 4, 5, best=2)
    assert checkpoints.steps() == [2, 4, 5]


def test_no_folder_means_no_checkpoint(checkpoints: Checkpoints) -> None:
    assert checkpoints.latest() is None


def test_folders_of_other_names_are_not_checkpoints(checkpoints: Checkpoints) -> None:
    save(checkpoints, 1)
    (checkpoints.folder / "step-final").mkdir()
    assert checkpoints.steps() == [1]


@pytest.mark.parametrize("name", ["weights.safetensors", "state.pt", "manifest.json"])
def test_damage_is_noticed_and_the_one_before_is_used(checkpoints: Checkpoints, name: str) -> None:
    save(checkpoints, 1, 2)
    damage(checkpoints, 2, name)
    with pytest.warns(CheckpointWarning, match=r"step-00000002 is damaged"):
        saved = checkpoints.latest()
    assert saved is not None
    assert saved.step == 1


@pytest.mark.parametrize("name", ["weights.safetensors", "state.pt", "manifest.json"])
def test_a_missing_part_is_damage(checkpoints: Checkpoints, name: str) -> None:
    save(checkpoints, 1)
    (checkpoints.folder / "step-00000001" / name).unlink()
    with pytest.raises(RunError, match="damaged"):
        checkpoints.read(1)


def test_what_lies_ahead_is_forgotten_with_what_was_left_unfinished(checkpoints: Checkpoints) -> None:
    save(checkpoints, 1, 2)
    (checkpoints.folder / ".step-00000003.1234").mkdir()
    checkpoints.remove_after(1)
    assert [path.name for path in checkpoints.folder.iterdir()] == ["step-00000001"]


@contextmanager
def files_no_larger_than(size: int) -> Iterator[None]:
    """What a disk without room does to whoever writes to it."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("room", [0, 100, 1000])
def test_a_disk_without_room_leaves_the_checkpoints_of_before(checkpoints: Checkpoints, room: int) -> None:
    save(checkpoints, 1, 2)
    with files_no_larger_than(room), pytest.raises(RunError, match="step-00000003 cannot be written: File too large"):
        save(checkpoints, 3)
    assert [path.name for path in sorted(checkpoints.folder.iterdir())] == ["step-00000001", "step-00000002"]
    assert checkpoints.read(2).step == 2


def test_weights_of_another_model_are_refused(checkpoints: Checkpoints) -> None:
    save(checkpoints, 1)
    with pytest.raises(RunError, match="do not fit its model"):
        checkpoints.read(1).load_into(nn.Linear(4, 4))
