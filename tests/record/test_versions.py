"""A run that other software resumes says so once, and its folder keeps a history that older readers still read."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from archlang.plan.from_file import plan_recipe
from archlang.record import run_folder
from archlang.record.run_folder import RecordWarning, read_history, this_process, with_resumption
from archlang.record.schemas import VersionsRecord
from archlang.record.summaries import summarize
from archlang.runs import training
from archlang.train import trainer
from archlang.train.stop import Stop
from tests.tiny_run import StopAfter, Train

NOW = this_process(torch.device("cpu"))


def test_nothing_is_recorded_if_nothing_has_changed() -> None:
    assert with_resumption(NOW, 4, NOW.model_copy(update={"system": "another kernel", "cores": 128})) == (NOW, "")


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("torch", "9.9", "torch 9.9 instead of"),
        ("python", "4.0.0", "python 4.0.0 instead of"),
        ("archlang", "7.0", "archlang 7.0 instead of"),
        ("device", "cuda:0", "device cuda:0 instead of cpu"),
        ("gpus", ("H100",), "gpus H100 instead of none"),
        ("threads", 77, "threads 77 instead of"),
    ],
)
def test_what_the_bits_may_depend_on_is_recorded(field: str, value: object, words: str) -> None:
    record, changes = with_resumption(NOW, 4, NOW.model_copy(update={field: value}))
    assert changes.startswith(words)
    assert [(resumed.step, getattr(resumed, field)) for resumed in record.resumed] == [(4, value)]


def test_a_record_is_compared_with_the_last_resumption() -> None:
    newer = NOW.model_copy(update={"torch": "9.9"})
    record, _ = with_resumption(NOW, 4, newer)
    assert with_resumption(record, 8, newer) == (record, "")
    assert len(with_resumption(record, 8, NOW)[0].resumed) == 2


def test_a_folder_without_history_is_read_as_before() -> None:
    old = NOW.model_dump(mode="json")
    assert "resumed" not in old
    assert VersionsRecord.model_validate(old) == NOW


def test_resuming_with_another_torch_is_said_once_and_shown(
    program: Path, tmp_path: Path, train: Train, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    training.train(plan_recipe(program), folder, device="cpu", stop=StopAfter(12))
    begun = json.loads((folder / "versions.json").read_text())
    monkeypatch.setattr(run_folder, "this_process", lambda device: NOW.model_copy(update={"torch": "9.9"}))
    with pytest.warns(RecordWarning, match=r"resumes with torch 9\.9 instead of") as caught:
        train(folder)
    assert len(caught) == 1
    recorded = json.loads((folder / "versions.json").read_text())
    assert {name: value for name, value in recorded.items() if name != "resumed"} == begun
    begun_with, resumed_with = summarize(folder).history
    assert begun_with.startswith(f"begun with archlang {NOW.archlang}, torch {NOW.torch}")
    assert resumed_with.startswith("resumed at step ")
    assert resumed_with.endswith(f"torch 9.9 instead of {NOW.torch}")


def test_a_folder_without_versions_has_no_history(tmp_path: Path) -> None:
    assert read_history(tmp_path) == ()


def test_a_run_resumes_with_the_threads_that_it_began_with(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, before = tmp_path / "run", torch.get_num_threads()
    seen: set[int] = set()
    asked = trainer._is_stop_asked

    def watching(fabric: Any, stop: Stop) -> bool:  # Any: Fabric takes a second to import
        seen.add(torch.get_num_threads())
        return asked(fabric, stop)

    monkeypatch.setattr(trainer, "_is_stop_asked", watching)
    try:
        for threads, expected in ((1, 1), (2, 1)):
            seen.clear()
            torch.set_num_threads(threads)
            training.train(plan_recipe(program), folder, device="cpu", stop=StopAfter(6))
            assert seen == {expected}
            assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
