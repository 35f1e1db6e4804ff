"""Points of a table on real processes: each is made once, a crash loses one, and any engine takes up what is left."""

from __future__ import annotations

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

from archlang.plan.from_file import plan_recipe, plan_table
from archlang.record.mistakes import RunError
from archlang.runs.engines import Engine, make_engine
from archlang.runs.points import Point, run_point
from archlang.runs.table import TableRuns

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="what is tested are processes as Unix has them")


def installed(name: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(importlib.util.find_spec(name) is None, reason=f"{name} is not installed")


def archlang(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "archlang", *map(str, arguments)]


def made(engine: Engine, runs: TableRuns) -> None:
    assert {done.error for done in engine.run(runs.points(), lambda: False)} == {""}


def agree(found: TableRuns, whole: TableRuns) -> None:
    """Two tables that are done have the same curves and the same numbers."""
    assert found.points() == whole.points() == ()
    for one, other in ((found.run_folder(plan), whole.run_folder(plan)) for plan in whole.plan.plans):
        assert (one / "metrics.jsonl").read_bytes() == (other / "metrics.jsonl").read_bytes()
    assert found.cell_results() == whole.cell_results()


def wait_for(path: Path) -> None:
    limit = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < limit, f"{path} never came"
        time.sleep(0.05)


@pytest.fixture
def points(program: Path, tmp_path: Path) -> tuple[Point, ...]:
    table = plan_table(program, sets={"train.steps": "3"}, seeds=[1, 2, 3])
    return TableRuns(table, tmp_path / "runs", device="cpu").points()


def test_a_process_that_dies_loses_its_own_point_only(program: Path, points: tuple[Point, ...]) -> None:
    endless = plan_recipe(program, sets={"train.steps": "10000000"})
    dying = replace(points[0], plan=endless, name="dying")

    def kill() -> None:
        wait_for(dying.folder / "metrics.jsonl")
        for process in multiprocessing.active_children():
            process.kill()

    killer = threading.Thread(target=kill)
    killer.start()
    ended = {done.point.name: done for done in make_engine("local", 1).run([dying, *points[1:]], lambda: False)}
    killer.join()
    assert "SIGKILL" in ended["dying"].error
    assert [ended[point.name].error for point in points[1:]] == ["", ""]
    assert all((point.folder / "results.json").exists() for point in points[1:])


def test_asked_to_stop_each_run_writes_a_checkpoint_and_no_more_are_begun(
    program: Path, points: tuple[Point, ...]
) -> None:
    endless = plan_recipe(program, sets={"train.steps": "10000000"})
    first, second = (replace(point, plan=replace(endless, seed=point.plan.seed)) for point in points[:2])
    begun = first.folder / "metrics.jsonl"
    ended = list(make_engine("local", 1).run([first, second], begun.exists))
    assert [(done.point.name, done.stopped) for done in ended] == [(first.name, True)]
    assert list((first.folder / "checkpoints").iterdir())
    assert not second.folder.exists()


def test_a_run_has_the_same_curve_in_a_process_of_the_engine_as_alone(
    points: tuple[Point, ...], tmp_path: Path
) -> None:
    (done,) = make_engine("local", 1).run(points[:1], lambda: False)
    assert done.error == ""
    alone = replace(points[0], folder=tmp_path / "alone")
    run_point(alone)
    assert (done.point.folder / "metrics.jsonl").read_bytes() == (alone.folder / "metrics.jsonl").read_bytes()


@installed("ray")
def test_a_table_that_is_killed_is_taken_up_by_another_engine(program: Path, tmp_path: Path) -> None:
    out = tmp_path / "killed"
    asked = ("--seeds", "2", "--set", "train.steps=1200", "--set", "train.every=50", "--workers", "2")
    command = archlang("table", program, *asked, "--out", out, "--device", "cpu")
    first = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    limit = time.monotonic() + 60
    while not list(out.glob("*/checkpoints/*/manifest.json")):
        assert time.monotonic() < limit
        time.sleep(0.05)
    first.send_signal(signal.SIGKILL)
    first.wait()
    time.sleep(2)  # those that it had started notice that it is gone
    table = plan_table(program, sets={"train.steps": "1200", "train.every": "50"}, seeds=[1, 2])
    killed, whole = (TableRuns(table, folder, device="cpu") for folder in (out, tmp_path / "whole"))
    assert killed.points()
    made(make_engine("ray", 2), killed)
    made(make_engine("local", 2), whole)
    agree(killed, whole)


@installed("submitit")
def test_jobs_of_slurm_make_the_same_table(program: Path, tmp_path: Path) -> None:
    table = plan_table(program, sets={"train.steps": "3"}, seeds=[1, 2])
    jobs, whole = (TableRuns(table, tmp_path / folder, device="cpu") for folder in ("jobs", "whole"))
    made(make_engine("slurm", options={"cluster": "local"}), jobs)
    for point in whole.points():
        run_point(point)
    agree(jobs, whole)


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("loca", {}, "`local`, `ray`"),
        ("local", {"partition": "gpu"}, "partition"),
        pytest.param("ray", {"colour": "red"}, "colour", marks=installed("ray")),
        pytest.param("slurm", {}, "SLURM", marks=installed("submitit")),
        pytest.param("slurm", {"cluster": "local", "colour": "red"}, "colour", marks=installed("submitit")),
    ],
)
def test_an_engine_or_option_that_is_not_there_is_named(
    points: tuple[Point, ...], name: str, options: dict[str, str], said: str
) -> None:
    with pytest.raises(RunError, match=said):
        list(make_engine(name, 1, options).run(points[:1], lambda: False))


@pytest.mark.parametrize(("name", "package"), [("ray", "ray"), ("slurm", "submitit")])
def test_an_engine_that_is_not_installed_says_how_to_install_it(
    name: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(RunError, match=rf"archlang\[{name}\]"):
        make_engine(name)
