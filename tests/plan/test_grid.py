"""Of a large grid a check sees the first corner, and each place along each axis."""

from __future__ import annotations

from itertools import product

import pytest

from archlang.plan.grid import spread


@pytest.mark.parametrize("sizes", [[], [1], [3], [2, 3], [4, 4], [2, 2, 2, 2]])
def test_a_small_grid_is_seen_as_a_whole(sizes: list[int]) -> None:
    assert list(spread(sizes, 16)) == list(product(*map(range, sizes)))


@pytest.mark.parametrize("sizes", [[17], [1_000], [10, 10], [16, 3, 2], [1_000_000, 3], [2] * 40])
def test_of_a_large_grid_no_more_is_seen_than_allowed_and_the_first_corner_first(sizes: list[int]) -> None:
    places = list(spread(sizes, 16))
    assert len(places) <= 16
    assert len(set(places)) == len(places)
    assert places[0] == (0,) * len(sizes)
    assert all(0 <= index < size for place in places for index, size in zip(place, sizes, strict=True))


def test_along_each_short_axis_every_place_is_seen() -> None:
    places = list(spread([10, 3, 15, 1_000], 64))
    for axis, size in enumerate([10, 3, 15]):
        assert {place[axis] for place in places} == set(range(size))


def test_along_a_long_axis_both_ends_are_seen() -> None:
    places = [place for (place,) in spread([1_000], 64)]
    assert len(places) == 64
    assert {0, 999} <= set(places)


def test_the_same_grid_gives_the_same_places() -> None:
    assert list(spread([100, 100], 16)) == list(spread([100, 100], 16))


def test_an_empty_axis_has_no_places() -> None:
    assert list(spread([3, 0], 16)) == []
