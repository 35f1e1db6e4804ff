"""Points that one process trains together, and what is told of each of them."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from archlang.plan.from_file import plan_table
from archlang.runs.points import Point, PointResult, group_seeds, run_point
from archlang.runs.table import TableRuns


@pytest.fixture
def points(program: Path, tmp_path: Path) -> tuple[Point, ...]:
    found: list[Point] = []
    for width in ("4", "8"):
        table = plan_table(program, sets={"train.steps": "3", "model.d": width}, seeds=[1, 2, 3])
        found += TableRuns(table, tmp_path / "runs", device="cpu").points()
    return tuple(found)


def test_points_that_differ_by_their_seeds_alone_are_one(points: tuple[Point, ...]) -> None:
    first, second = group_seeds(points)
    assert (first, *first.other_seeds) == (replace(points[0], other_seeds=points[1:3]), *points[1:3])
    assert (second, *second.other_seeds) == (replace(points[3], other_seeds=points[4:]), *points[4:])
    assert group_seeds(points[2:4]) == points[2:4]


def test_of_a_process_that_died_each_seed_is_told_to_have_failed(points: tuple[Point, ...]) -> None:
    point, _ = group_seeds(points)
    each = list(PointResult(point, 0.0, error="it died", warnings=("a warning",)).per_run())
    assert [(one.point.name, one.error) for one in each] == [(one.name, "it died") for one in points[:3]]
    assert [one.warnings for one in each] == [("a warning",), (), ()]


def test_when_the_time_has_come_each_seed_is_told_to_have_stopped(points: tuple[Point, ...]) -> None:
    past = time.time() - 1
    point, _ = group_seeds(replace(one, deadline=past) for one in points)
    assert [one.stopped for one in run_point(point).per_run()] == [True] * 3
    assert not any(one.folder.exists() for one in points)
