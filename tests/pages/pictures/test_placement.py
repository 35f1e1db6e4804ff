"""Positions of boxes and edges."""

import random
from collections.abc import Iterator
from itertools import combinations, pairwise
from math import inf

import pytest

from archlang.pages.pictures.box import Box, Edge
from archlang.pages.pictures.placement import PlacedBox, place_boxes


def random_picture(count: int, seed: int) -> Box:
    """Returns `count` connected boxes, some of which contain others."""
    draw = random.Random(seed)

    def level(name: str, size: int) -> Box:
        boxes, edges = [], []
        for number in range(size):
            id = f"{name}.{number}"
            inner = level(id, 9) if number % 10 == 9 and name.count(".") < 1 else None
            output, notes = f"seq[n, {draw.randint(1, 9999)}]", ("note",) * draw.randint(0, 3)
            boxes.append(inner or Box(id, "call", "x" * draw.randint(1, 30), output, notes))
            for before in draw.sample(range(number), min(number, draw.randint(1, 3))):
                edges.append(Edge(f"{name}.{before}", id))
        return Box(name, "apply", name, boxes=tuple(boxes), edges=tuple(edges))

    return level("all", count)


def parents(placed: PlacedBox) -> Iterator[PlacedBox]:
    """Yields every box that contains others."""
    if placed.children:
        yield placed
        for child in placed.children:
            yield from parents(child)


def are_apart(parent: PlacedBox) -> None:
    """Fails if two boxes inside a box overlap."""
    for left, right in combinations(parent.children, 2):
        apart = (
            left.x + left.width <= right.x + 1e-6
            or right.x + right.width <= left.x + 1e-6
            or left.bottom <= right.y
            or right.bottom <= left.y
        )
        assert apart, (left.box.id, right.box.id)


def test_two_hundred_boxes_and_their_labels_do_not_overlap() -> None:
    for seed in range(3):
        picture = random_picture(110, seed)
        assert sum(1 for _ in picture.walk()) > 200
        for parent in parents(place_boxes(picture)):
            are_apart(parent)


def test_boxes_are_inside_their_parent_and_below_its_label() -> None:
    for parent in parents(place_boxes(random_picture(60, 5))):
        for child in parent.children:
            assert child.x >= 0
            assert child.x + child.width <= parent.width
            assert child.y >= parent.label.height
            assert child.bottom <= parent.height


@pytest.mark.parametrize("widest", [inf, 700.0])
def test_no_edge_crosses_a_box(widest: float) -> None:
    for parent in parents(place_boxes(random_picture(60, 7), widest)):
        for route in parent.routes:
            others = [child for child in parent.children if child.box.id not in (route.source, route.target)]
            for (x0, y0), (x1, y1) in pairwise(route.points):
                for child in others:
                    for step in range(1, 20):
                        x, y = x0 + (x1 - x0) * step / 20, y0 + (y1 - y0) * step / 20
                        inside = child.x < x < child.x + child.width and child.y < y < child.bottom
                        assert not inside, (route, child.box.id)


def test_the_edges_of_a_value_pass_a_row_together() -> None:
    boxes = tuple(Box(id, "call", id) for id in "abcd")
    edges = (Edge("a", "b"), Edge("b", "c"), Edge("c", "d"), Edge("a", "c"), Edge("a", "d"))
    (first, second) = (
        route.points for route in place_boxes(Box("all", "apply", "all", boxes=boxes, edges=edges)).routes[3:]
    )
    assert first[2:4] == second[2:4]


def test_boxes_that_follow_their_neighbours_stay_within_the_width() -> None:
    """Rows of two boxes, each of which follows the right box of the row above."""
    boxes = tuple(Box(f"{side}{row}", "call", "x" * 20) for row in range(40) for side in ("left", "right"))
    edges = tuple(Edge(f"right{row}", f"{side}{row + 1}") for row in range(39) for side in ("left", "right"))
    picture = Box("all", "apply", "all", boxes=boxes, edges=edges)
    assert place_boxes(picture, 400.0).width < 600.0
