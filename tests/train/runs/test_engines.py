"""Engines run each point once in real processes, a crash loses one point, and any engine resumes the rest."""

import importlib.util
import multiprocessing
import os
import signal
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from archlang.errors import MachineError
from archlang.plan.from_file import plan_recipe, plan_table
from archlang.train.record.mistakes import RunError, RunMachineError, RunWarning
from archlang.train.record.reading import read_metrics, read_record
from archlang.train.record.schemas import VERSIONS, StepMetrics, VersionsRecord
from archlang.train.runs import engines, training
from archlang.train.runs.engines import make_engine
from archlang.train.runs.points import Point, PointResult, run_point
from archlang.train.runs.table import TableRuns
from archlang.train.stop import Stop
from tests.tiny_run import StopAfter

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="the tests use Unix processes"),
    pytest.mark.usefixtures("forked_workers"),
]


def installed(name: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(importlib.util.find_spec(name) is None, reason=f"{name} is not installed")


def wait_for(path: Path) -> None:
    limit = time.monotonic() + 120
    while not path.exists():
        assert time.monotonic() < limit, f"{path} does not appear"
        time.sleep(0.05)


def assert_equals_solo_run(point: Point, folder: Path) -> None:
    solo = replace(point, folder=folder / "alone" / point.folder.name)
    run_point(solo)
    for name in ("metrics.jsonl", "results.json"):
        assert (point.folder / name).read_bytes() == (solo.folder / name).read_bytes()


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


def test_a_point_whose_process_dies_resumes_as_often_as_it_may(program: Path, points: tuple[Point, ...]) -> None:
    longer = replace(points[0], plan=plan_recipe(program, sets={"train.steps": "400"}))

    def kill() -> None:
        wait_for(longer.folder / "checkpoints" / "step-00000040")
        for process in multiprocessing.active_children():
            process.kill()

    killer = threading.Thread(target=kill)
    killer.start()
    (result,) = make_engine("local", 1, retries=1).run([longer], lambda: False)
    killer.join()
    assert (result.error, result.stopped) == ("", False)
    assert result.seconds > 0
    assert (longer.folder / "results.json").exists()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_point_of_two_devices_resumes_when_one_of_its_processes_dies(
    program: Path, points: tuple[Point, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # the worker is a child of this process
    plan = plan_recipe(program, sets={"train.steps": "300", "train.every": "100"})
    point = replace(points[0], plan=plan, devices=2)
    rank_killed = []

    def kill() -> None:
        wait_for(point.folder / "checkpoints" / "step-00000100")
        for worker in children(os.getpid()):
            for rank in children(worker)[1:]:
                rank_killed.append(rank)
                os.kill(rank, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    engine = make_engine("local", 1, retries=1, devices=2)
    results = list(engine.run([point], lambda: False))
    killer.join()
    assert len(rank_killed) == 1
    assert [(result.error, result.stopped) for result in results] == [("", False)]
    steps = [line.step for line in read_metrics(point.folder) if isinstance(line, StepMetrics)]
    assert steps == list(range(3, 301, 3))
    assert point.is_finished()


@pytest.mark.slow
def test_a_point_of_two_devices_stops_with_a_checkpoint(program: Path, points: tuple[Point, ...]) -> None:
    point = replace(points[0], plan=plan_recipe(program, sets={"train.steps": "10000000"}), devices=2)
    stop = Stop()

    def ask() -> None:
        wait_for(point.folder / "metrics.jsonl")
        stop.requested = True

    actor = threading.Thread(target=ask)
    actor.start()
    result = run_point(point, stop)
    actor.join()
    assert (result.stopped, result.is_of_machine, result.error) == (True, False, "")
    assert list((point.folder / "checkpoints").iterdir())
    assert not multiprocessing.active_children()


def children(process: int) -> list[int]:
    return [int(text) for text in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def test_the_time_of_a_point_that_waits_in_a_queue_begins_when_it_runs(points: tuple[Point, ...]) -> None:
    waiting = engines._Job.of([replace(points[0], deadline=time.time() + 60)])
    assert waiting.seconds == pytest.approx(60, abs=1)
    hours_later = replace(waiting, points=[replace(points[0], deadline=time.time() - 7200)])
    (result,) = hours_later()
    assert (result.error, result.stopped) == ("", False)


@installed("submitit")
def test_a_job_that_is_queued_again_runs_its_unfinished_points_only(
    points: tuple[Point, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = []

    def run(point: Point, stop: Stop) -> PointResult:
        begun.append(point.name)
        if len(begun) == 2:
            stop.requested, stop.number = True, signal.SIGTERM
        return PointResult(point, 1.0, stopped=stop.requested)

    monkeypatch.setattr(engines, "run_point", run)
    job = engines._Job.of(points)
    assert [result.stopped for result in job()] == [False, True, True]
    results = job.checkpoint().function()
    assert [(result.point.name, result.stopped) for result in results] == [(point.name, False) for point in points]
    assert begun == [points[0].name, points[1].name, points[1].name, points[2].name]


@pytest.mark.slow
@installed("submitit")
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("retries", [0, 1])
def test_a_job_of_several_points_that_dies_loses_none_of_its_finished_points(
    retries: int, program: Path, points: tuple[Point, ...]
) -> None:
    endless = replace(points[1], plan=plan_recipe(program, sets={"train.steps": "400"}))

    def kill() -> None:
        wait_for(endless.folder / "checkpoints" / "step-00000040")
        for controller in children(os.getpid()):
            for task in children(controller):
                os.kill(task, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    engine = make_engine("slurm", 1, {"cluster": "local", "points": "3"}, retries)
    results = {result.point.name: result.error for result in engine.run([points[0], endless, points[2]], lambda: False)}
    killer.join()
    assert [bool(results[point.name]) for point in points] == [False, not retries, not retries]
    assert [point.is_finished() for point in (points[0], endless, points[2])] == [True, bool(retries), bool(retries)]


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


def test_a_run_of_an_engine_has_the_same_curve_as_a_solo_run(points: tuple[Point, ...], tmp_path: Path) -> None:
    (result,) = make_engine("local", 1).run(points[:1], lambda: False)
    assert result.error == ""
    assert_equals_solo_run(points[0], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options"),
    [
        pytest.param("ray", {}, marks=installed("ray")),
        pytest.param("slurm", {"cluster": "local", "points": "2"}, marks=installed("submitit")),
    ],
)
def test_another_engine_resumes_runs(
    name: str, options: dict[str, str], points: tuple[Point, ...], tmp_path: Path
) -> None:
    for point in points[:2]:
        assert training.train(point.plan, point.folder, device="cpu", stop=StopAfter(2)).stopped
    results = list(make_engine(name, 2, options).run(points[:2], lambda: False))
    assert [result.error for result in results] == ["", ""]
    for point in points[:2]:
        assert_equals_solo_run(point, tmp_path)


@pytest.mark.slow
@installed("ray")
def test_a_run_for_which_this_machine_has_no_room_does_not_wait(points: tuple[Point, ...]) -> None:
    with pytest.raises(RunMachineError, match="a run needs 198 GPU, which Ray on this machine does not have"):
        list(make_engine("ray", 1, {"gpus": "99", "nodes": "2"}).run(points[:1], lambda: False))


@pytest.mark.slow
@installed("ray")
def test_a_run_on_two_nodes_of_ray_that_loses_one_waits_for_another_and_equals_one_of_two_processes(
    program: Path, points: tuple[Point, ...], tmp_path: Path
) -> None:
    from ray.cluster_utils import Cluster

    cluster: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    try:
        cluster.add_node(num_cpus=1)
        dying, joined = [cluster.add_node(num_cpus=1)], list[Any]()
        plan = plan_recipe(program, sets={"train.steps": "300", "train.every": "100"})
        point = replace(points[0], plan=plan)

        def change_nodes() -> bool:
            if dying and (point.folder / "checkpoints" / "step-00000100").exists():
                cluster.remove_node(dying.pop(), allow_graceful=False)
            if caught.list and not joined:
                joined.append(cluster.add_node(num_cpus=1))
            return False

        engine = make_engine("ray", None, {"address": cluster.address, "nodes": "2"}, retries=1)
        with pytest.warns(RunWarning, match="no 2 CPU for a run, which waits") as caught:
            (result,) = engine.run([point], change_nodes)
    finally:
        cluster.shutdown()
    assert (result.error, result.stopped) == ("", False)
    assert_equals_solo_run(replace(point, devices=2), tmp_path)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("local", {"partition": "gpu"}, "partition"),
        pytest.param("ray", {"colour": "red"}, "colour", marks=installed("ray")),
        pytest.param("slurm", {}, "SLURM", marks=installed("submitit")),
        pytest.param("slurm", {"cluster": "local", "colour": "red"}, "colour", marks=installed("submitit")),
        pytest.param("ray", {"cpus": "abc"}, "`cpus` of the engine `ray` cannot be `abc`", marks=installed("ray")),
        pytest.param("ray", {"gpus": "-1"}, "`gpus` of the engine `ray` cannot be `-1`", marks=installed("ray")),
        pytest.param("ray", {"nodes": "0"}, "`nodes` of the engine `ray` cannot be `0`", marks=installed("ray")),
        pytest.param("slurm", {"points": "0"}, "`points` of .* cannot be `0`", marks=installed("submitit")),
        pytest.param("slurm", {"nodes": "two"}, "`nodes` of .* cannot be `two`", marks=installed("submitit")),
        *(
            pytest.param(
                "slurm", {"cluster": "local", name: text}, f"{name}={text}`: .*{reason}", marks=installed("submitit")
            )
            for name, text, reason in (("nodes", "2", "only one node"), ("timeout_min", "1.5", "expected type .*int"))
        ),
        pytest.param("slurm", {"cluster": "colour"}, "`cluster` of .* cannot be `colour`", marks=installed("submitit")),
        pytest.param("ray", {"address": "nowhere"}, "address=nowhere`: Invalid address", marks=installed("ray")),
    ],
)
def test_a_wrong_option_of_an_engine_is_named(
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
