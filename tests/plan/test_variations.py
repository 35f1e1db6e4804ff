"""A check visits the first corner of a large grid, and each index of each axis."""

from itertools import product

import pytest

from archlang.plan.variations import spread


@pytest.mark.parametrize("sizes", [[], [1], [3], [2, 3], [4, 4], [2, 2, 2, 2]])
def test_every_point_of_a_small_grid_is_visited(sizes: list[int]) -> None:
    assert list(spread(sizes, 16)) == list(product(*map(range, sizes)))


@pytest.mark.parametrize("sizes", [[17], [1_000], [10, 10], [16, 3, 2], [1_000_000, 3], [2] * 40])
def test_a_large_grid_is_sampled_within_the_limit_and_the_first_corner_first(sizes: list[int]) -> None:
    points = list(spread(sizes, 16))
    assert len(points) <= 16
    assert len(set(points)) == len(points)
    assert points[0] == (0,) * len(sizes)
    assert all(0 <= index < size for point in points for index, size in zip(point, sizes, strict=True))


def test_every_index_of_a_short_axis_is_visited() -> None:
    points = list(spread([10, 3, 15, 1_000], 64))
    for axis, size in enumerate([10, 3, 15]):
        assert {point[axis] for point in points} == set(range(size))


def test_both_ends_of_a_long_axis_are_visited() -> None:
    points = [point for (point,) in spread([1_000], 64)]
    assert len(points) == 64
    assert {0, 999} <= set(points)


def test_the_same_grid_gives_the_same_points() -> None:
    assert list(spread([100, 100], 16)) == list(spread([100, 100], 16))


def test_a_grid_with_an_empty_axis_has_no_points() -> None:
    assert list(spread([3, 0], 16)) == []
