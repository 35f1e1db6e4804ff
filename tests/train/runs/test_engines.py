"""Engines run each point once in real processes, a crash loses one point, and any engine resumes the rest."""

import importlib.util
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from pebble import ProcessExpired

from archlang.errors import MachineError
from archlang.plan.from_file import plan_recipe, plan_table
from archlang.train.record.mistakes import RunError
from archlang.train.record.reading import read_record
from archlang.train.record.schemas import VERSIONS, VersionsRecord
from archlang.train.runs import engines
from archlang.train.runs.engines import Engine, make_engine
from archlang.train.runs.points import Point, run_point
from archlang.train.runs.table import TableRuns

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the tests use Unix processes")


def installed(name: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(importlib.util.find_spec(name) is None, reason=f"{name} is not installed")


def archlang(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "archlang", *map(str, arguments)]


def run_all(engine: Engine, runs: TableRuns) -> None:
    assert {result.error for result in engine.run(runs.points(), lambda: False)} == {""}


def assert_equal(runs: TableRuns, expected: TableRuns) -> None:
    """Two finished tables have the same curves and the same values."""
    assert runs.points() == expected.points() == ()
    for plan in expected.plan.plans:
        curve, expected_curve = (table.run_folder(plan) / "metrics.jsonl" for table in (runs, expected))
        assert curve.read_bytes() == expected_curve.read_bytes()
    assert runs.cell_results() == expected.cell_results()


def wait_for(path: Path) -> None:
    limit = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < limit, f"{path} does not appear"
        time.sleep(0.05)


@pytest.fixture
def points(program: Path, tmp_path: Path) -> tuple[Point, ...]:
    table = plan_table(program, sets={"train.steps": "3"}, seeds=[1, 2, 3])
    return TableRuns(table, tmp_path / "runs", device="cpu").points()


@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_a_worker_has_its_share_of_the_cores_and_no_more_threads_than_the_command(
    points: tuple[Point, ...], monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    monkeypatch.setattr(engines, "_core_count", lambda: 2)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    list(engines.LocalEngine(workers).run(points[:workers], lambda: False))
    for point in points[:workers]:
        assert read_record(point.folder, VERSIONS, VersionsRecord).threads == 1


def test_a_process_that_dies_fails_only_its_own_point(program: Path, points: tuple[Point, ...]) -> None:
    endless = plan_recipe(program, sets={"train.steps": "10000000"})
    dying = replace(points[0], plan=endless, name="dying")

    def kill() -> None:
        wait_for(dying.folder / "metrics.jsonl")
        for process in multiprocessing.active_children():
            process.kill()

    killer = threading.Thread(target=kill)
    killer.start()
    results = {result.point.name: result for result in make_engine("local", 1).run([dying, *points[1:]], lambda: False)}
    killer.join()
    assert "SIGKILL" in results["dying"].error
    assert [results[point.name].error for point in points[1:]] == ["", ""]
    assert all((point.folder / "results.json").exists() for point in points[1:])


def test_after_a_stop_running_points_write_a_checkpoint_and_no_others_begin(
    program: Path, points: tuple[Point, ...]
) -> None:
    endless = plan_recipe(program, sets={"train.steps": "10000000"})
    first, second = (replace(point, plan=replace(endless, seed=point.plan.seed)) for point in points[:2])
    curve = first.folder / "metrics.jsonl"
    results = list(make_engine("local", 1).run([first, second], curve.exists))
    assert [(result.point.name, result.stopped) for result in results] == [(first.name, True)]
    assert list((first.folder / "checkpoints").iterdir())
    assert not second.folder.exists()


@pytest.mark.parametrize(("code", "is_stopped"), [(-15, True), (15, True), (1, False), (-9, False), (None, False)])
def test_a_process_that_the_stop_ends_before_its_first_step_has_not_failed(code: int | None, is_stopped: bool) -> None:
    error = ProcessExpired("", code=code)  # type: ignore[no-untyped-call]  # pebble types only some functions
    assert engines._is_of_stopping(error) == is_stopped


def test_a_run_of_an_engine_has_the_same_curve_as_a_solo_run(points: tuple[Point, ...], tmp_path: Path) -> None:
    (result,) = make_engine("local", 1).run(points[:1], lambda: False)
    assert result.error == ""
    solo = replace(points[0], folder=tmp_path / "alone")
    run_point(solo)
    assert (result.point.folder / "metrics.jsonl").read_bytes() == (solo.folder / "metrics.jsonl").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options"),
    [
        pytest.param("ray", {}, marks=installed("ray")),
        pytest.param("slurm", {"cluster": "local"}, marks=installed("submitit")),
    ],
)
def test_another_engine_resumes_a_killed_table(
    name: str, options: dict[str, str], program: Path, tmp_path: Path
) -> None:
    out = tmp_path / "killed"
    sets = ("--set", "train.steps=160", "--set", "train.every=20")
    command = archlang("table", program, "--seeds", "2", *sets, "--workers", "2", "--out", out, "--device", "cpu")
    first = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    limit = time.monotonic() + 60
    while not list(out.glob("*/checkpoints/*/manifest.json")):
        assert time.monotonic() < limit
        time.sleep(0.05)
    first.send_signal(signal.SIGKILL)
    first.wait()
    time.sleep(2)  # its child processes end
    table = plan_table(program, sets={"train.steps": "160", "train.every": "20"}, seeds=[1, 2])
    killed, expected = (TableRuns(table, folder, device="cpu") for folder in (out, tmp_path / "whole"))
    assert killed.points()
    run_all(make_engine(name, 2, options), killed)
    run_all(make_engine("local", 2), expected)
    assert_equal(killed, expected)


@pytest.mark.slow
@installed("ray")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_table_under_ray_that_is_stopped_exits_with_the_code_of_its_signal(
    number: signal.Signals, program: Path, tmp_path: Path
) -> None:
    sets = ("--set", "train.steps=10000000")
    command = archlang("table", program, "--engine", "ray", "--workers", "1", *sets, "--out", tmp_path / "table")
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not list((tmp_path / "table").glob("*/metrics.jsonl")):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(number)
    assert process.wait(60) == 128 + number


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("loca", {}, "`local`, `ray`"),
        ("local", {"partition": "gpu"}, "partition"),
        pytest.param("ray", {"colour": "red"}, "colour", marks=installed("ray")),
        pytest.param("slurm", {}, "SLURM", marks=installed("submitit")),
        pytest.param("slurm", {"cluster": "local", "colour": "red"}, "colour", marks=installed("submitit")),
    ],
)
def test_an_unknown_engine_or_option_is_named(
    points: tuple[Point, ...], name: str, options: dict[str, str], message: str
) -> None:
    with pytest.raises(RunError, match=message):
        list(make_engine(name, 1, options).run(points[:1], lambda: False))


@pytest.mark.parametrize(("name", "package"), [("ray", "ray"), ("slurm", "submitit")])
def test_an_engine_that_is_not_installed_says_how_to_install_it(
    name: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MachineError, match=rf"archlang\[{name}\]"):
        make_engine(name)
