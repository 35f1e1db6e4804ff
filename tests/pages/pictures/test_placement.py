"""Places of boxes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import combinations, pairwise

from archlang.pages.pictures.box import Box, Edge
from archlang.pages.pictures.placement import PlacedBox, place_boxes


def made(count: int, seed: int) -> Box:
    """A graph of so many boxes, some of which hold others."""
    draw = random.Random(seed)

    def level(name: str, size: int) -> Box:
        boxes, edges = [], []
        for number in range(size):
            id = f"{name}.{number}"
            inner = level(id, 9) if number % 10 == 9 and name.count(".") < 1 else None
            boxes.append(inner or Box(id, "call", "x" * draw.randint(1, 30), ("note",) * draw.randint(0, 3)))
            boxes.append(Box(f"{id}:value", "value", f"seq[n, {draw.randint(1, 9999)}]"))
            edges.append(Edge(id, f"{id}:value"))
            for before in draw.sample(range(number), min(number, draw.randint(1, 3))):
                edges.append(Edge(f"{name}.{before}:value", id))
        return Box(name, "apply", name, boxes=tuple(boxes), edges=tuple(edges))

    return level("all", count)


def regions(placed: PlacedBox) -> Iterator[PlacedBox]:
    if placed.children:
        yield placed
        for one in placed.children:
            yield from regions(one)


def test_two_hundred_boxes_and_their_labels_do_not_overlap() -> None:
    for seed in range(3):
        box = made(110, seed)
        assert sum(one.kind != "value" for one in box.walk()) > 200
        for region in regions(place_boxes(box)):
            for one, other in combinations(region.children, 2):
                apart = (
                    one.x + one.width <= other.x + 1e-6
                    or other.x + other.width <= one.x + 1e-6
                    or one.y + one.height <= other.y
                    or other.y + other.height <= one.y
                )
                assert apart, (one.box.id, other.box.id)


def test_boxes_stand_inside_theirs_and_below_its_title() -> None:
    for region in regions(place_boxes(made(60, 5))):
        for one in region.children:
            assert one.x >= 0
            assert one.x + one.width <= region.width
            assert one.y >= region.label.height
            assert one.y + one.height <= region.height


def test_no_edge_runs_through_a_box() -> None:
    for region in regions(place_boxes(made(60, 7))):
        for route in region.routes:
            for (x, y), (u, v) in pairwise(route.points):
                for one in region.children:
                    if one.box.id in (route.source, route.target):
                        continue
                    for step in range(1, 20):
                        at, down = x + (u - x) * step / 20, y + (v - y) * step / 20
                        inside = one.x < at < one.x + one.width and one.y < down < one.y + one.height
                        assert not inside, (route, one.box.id)
