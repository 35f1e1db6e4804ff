"""Points whose seeds train together, and the result of each run."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from archlang.plan.from_file import plan_table
from archlang.train.runs.points import Point, PointResult, group_seeds, run_point
from archlang.train.runs.table import TableRuns


@pytest.fixture
def points(program: Path, tmp_path: Path) -> tuple[Point, ...]:
    points: list[Point] = []
    for width in ("4", "8"):
        table = plan_table(program, sets={"train.steps": "3", "model.d": width}, seeds=[1, 2, 3])
        points += TableRuns(table, tmp_path / "runs", device="cpu").points()
    return tuple(points)


def test_points_that_differ_in_their_seeds_alone_are_grouped(points: tuple[Point, ...]) -> None:
    first, second = group_seeds(points)
    assert (first, *first.other_seeds) == (replace(points[0], other_seeds=points[1:3]), *points[1:3])
    assert (second, *second.other_seeds) == (replace(points[3], other_seeds=points[4:]), *points[4:])
    assert group_seeds(points[2:4]) == points[2:4]


def test_a_process_that_died_fails_every_seed(points: tuple[Point, ...]) -> None:
    point, _ = group_seeds(points)
    results = list(PointResult(point, 0.0, error="it died", warnings=("a warning",)).per_run())
    assert [(result.point.name, result.error) for result in results] == [(run.name, "it died") for run in points[:3]]
    assert [result.warnings for result in results] == [("a warning",), (), ()]


def test_a_deadline_stops_every_seed(points: tuple[Point, ...]) -> None:
    past = time.time() - 1
    point, _ = group_seeds(replace(run, deadline=past) for run in points)
    assert [result.stopped for result in run_point(point).per_run()] == [True] * 3
    assert not any(run.folder.exists() for run in points)
