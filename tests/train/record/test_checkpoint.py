"""A checkpoint is complete or absent, and damage is detected."""

import errno
import io
import math
import os
import resource
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from archlang.disk.folder import Folder
from archlang.train.record import checkpoint
from archlang.train.record.checkpoint import Checkpoints, load_state
from archlang.train.record.mistakes import RunError, RunMachineError, RunWarning
from archlang.train.record.schemas import CheckpointState, EvaluationMetrics


@pytest.fixture
def checkpoints(tmp_path: Path) -> Checkpoints:
    return Checkpoints(tmp_path / "checkpoints")


def layer(fill: float) -> nn.Linear:
    linear = nn.Linear(3, 3)
    nn.init.constant_(linear.weight, fill)
    return linear


def state(step: int) -> CheckpointState:
    return CheckpointState(
        optimizer={"tensor": torch.ones(2)}, precision={}, random={}, epoch=step, position=0, evaluated=step,
        history=(EvaluationMetrics.of(step, "valid", math.nan, {"accuracy": 0.5}),), sizes={},
    )  # fmt: skip


def save(checkpoints: Checkpoints, *steps: int, best: int | None = None) -> None:
    for step in steps:
        checkpoints.save(step, layer(step), state(step), best)
        checkpoints.finish()


def test_weights_that_share_memory_are_saved_and_read_back(checkpoints: Checkpoints) -> None:
    def tied(fill: float) -> nn.Sequential:
        linear = layer(fill)
        return nn.Sequential(linear, linear)

    checkpoints.save(1, tied(5), state(1), None)
    checkpoint = checkpoints.latest()
    assert checkpoint is not None
    module = tied(0)
    checkpoint.load_into(module)
    assert module.get_parameter("1.weight") is module.get_parameter("0.weight")
    assert module.get_parameter("1.weight").eq(5).all()


def test_a_saved_checkpoint_is_read_back(checkpoints: Checkpoints) -> None:
    save(checkpoints, 5)
    checkpoint = checkpoints.latest()
    assert checkpoint is not None
    assert (checkpoint.step, checkpoint.state.epoch) == (5, 5)
    assert checkpoint.state.optimizer["tensor"].equal(torch.ones(2))
    assert [(line.loss, line.metrics) for line in checkpoint.state.history] == [(None, {"accuracy": 0.5})]
    module = layer(0)
    checkpoint.load_into(module)
    assert (module.weight == 5).all()


def test_the_last_two_and_the_best_are_kept(checkpoints: Checkpoints) -> None:
    save(checkpoints, 1, 2, 3, 4, 5, best=2)
    assert checkpoints.steps() == [2, 4, 5]


def test_without_a_folder_there_is_no_checkpoint(checkpoints: Checkpoints) -> None:
    assert checkpoints.latest() is None


def test_folders_of_other_names_are_not_checkpoints(checkpoints: Checkpoints) -> None:
    save(checkpoints, 1)
    (checkpoints.folder / "step-final").mkdir()
    assert checkpoints.steps() == [1]


@pytest.mark.parametrize("name", ["weights.safetensors", "state.pt", "manifest.json"])
@pytest.mark.parametrize("is_missing", [False, True])
def test_damage_is_detected_and_the_previous_checkpoint_is_used(
    is_missing: bool, name: str, checkpoints: Checkpoints
) -> None:
    save(checkpoints, 1, 2)
    path = checkpoints.folder / "step-00000002" / name
    content = path.read_bytes()
    path.unlink() if is_missing else path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.warns(RunWarning, match=r"step-00000002(/\S+)? is damaged"):
        checkpoint = checkpoints.latest()
    assert checkpoint is not None
    assert checkpoint.step == 1


def test_later_and_unfinished_checkpoints_are_removed(checkpoints: Checkpoints) -> None:
    save(checkpoints, 1, 2)
    (checkpoints.folder / ".step-00000003.1234").mkdir()
    checkpoints.remove_after(1)
    assert [path.name for path in checkpoints.folder.iterdir()] == ["step-00000001"]


def test_resuming_removes_old_checkpoints_that_a_full_disk_has_kept(
    checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as full_disk:
        full_disk.setattr(Folder, "discard", lambda folder, name: None)
        save(checkpoints, 1, 2, 3, 4)
    checkpoints.remove_after(4, best=1)
    assert checkpoints.steps() == [1, 3, 4]


@contextmanager
def files_no_larger_than(size: int) -> Iterator[None]:
    """Makes writes of larger files fail, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("room", [0, 100, 1000])
def test_a_full_disk_leaves_the_existing_checkpoints(checkpoints: Checkpoints, room: int) -> None:
    save(checkpoints, 1, 2)
    with files_no_larger_than(room), pytest.raises(RunError, match="step-00000003 cannot be written: File too large"):
        save(checkpoints, 3)
    assert [path.name for path in sorted(checkpoints.folder.iterdir())] == ["step-00000001", "step-00000002"]
    assert checkpoints.read(2).step == 2


def test_training_goes_on_while_a_checkpoint_is_written(
    checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(checkpoints, 1)
    may_write, write = threading.Event(), checkpoint._write

    def write_later(*arguments: Any) -> None:  # Any: those of `_write`
        assert may_write.wait(60)
        write(*arguments)

    monkeypatch.setattr(checkpoint, "_write", write_later)
    module = layer(2)
    checkpoints.save(2, module, state(2), None)
    with torch.no_grad():
        module.weight.fill_(7)
    # What a process that is killed now leaves.
    assert Checkpoints(checkpoints.folder).steps() == [1]
    may_write.set()
    assert checkpoints.read(2).weights["weight"].eq(2).all()


def test_weights_of_another_model_are_refused(checkpoints: Checkpoints) -> None:
    save(checkpoints, 1)
    with pytest.raises(RunError, match="do not fit its model"):
        checkpoints.read(1).load_into(nn.Linear(4, 4))


@pytest.mark.parametrize("name", ["checkpoints", "checkpoints/step-00000001"])
def test_checkpoints_elsewhere_are_not_removed_through_a_link(
    name: str, checkpoints: Checkpoints, tmp_path: Path
) -> None:
    save(checkpoints, 1, 2)
    moved = tmp_path / "elsewhere"
    (tmp_path / name).rename(moved)
    (tmp_path / name).symlink_to(moved)
    before = sorted(path for path in moved.rglob("*"))
    actions: tuple[Callable[[], object], ...] = (
        checkpoints.steps, checkpoints.latest, lambda: checkpoints.remove_after(0), lambda: save(checkpoints, 3, 4),
    )  # fmt: skip
    for action in actions:
        with pytest.raises(RunError, match=f"{name} is a link"):
            action()
    assert sorted(path for path in moved.rglob("*")) == before


def test_a_checkpoint_with_a_link_or_a_pipe_in_place_of_a_file_is_not_read(checkpoints: Checkpoints) -> None:
    save(checkpoints, 1, 2, 3)
    for step, name in ((2, "weights.safetensors"), (3, "state.pt")):
        path = checkpoints.folder / f"step-{step:08d}" / name
        path.rename(path.with_suffix(".moved"))
        if step == 2:
            path.symlink_to(path.with_suffix(".moved"))
        else:
            os.mkfifo(path)
    with pytest.raises(RunError, match=r"weights.safetensors is a link"):
        checkpoints.read(2)
    with pytest.raises(RunError, match=r"state.pt is a pipe"):
        checkpoints.read(3)


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory"),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
        OSError(errno.EMFILE, "Too many open files"),
        OSError(errno.EIO, "Input/output error"),
    ],
    ids=repr,
)
def test_a_fault_of_the_machine_is_never_called_damage_and_no_older_checkpoint_is_used(
    error: Exception, checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints.save(1, layer(1.0), state(1), None)
    checkpoints.save(2, layer(2.0), state(2), None)

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(torch, "load", fail)
    with pytest.raises(RunMachineError) as raised:
        checkpoints.latest()
    assert "is damaged" not in raised.value.message
    assert checkpoints.steps() == [1, 2]


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_a_read_that_fails_within_the_state_is_no_damage(
    number: int, checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints.save(1, layer(1.0), state(1), None)
    checkpoints.save(2, layer(2.0), state(2), None)
    monkeypatch.setattr(
        "archlang.train.record.checkpoint.load_state", lambda file: load_state(FailingReads(file.read(), number))
    )
    with pytest.raises(RunMachineError, match="Input/output error"):
        checkpoints.latest()


class FailingReads(io.BytesIO):
    """A file whose read of a number fails."""

    def __init__(self, content: bytes, number: int) -> None:
        super().__init__(content)
        self.left = number

    def read(self, size: int | None = -1) -> bytes:
        self.left -= 1
        if not self.left:
            raise OSError(errno.EIO, "Input/output error")
        return super().read(size)
