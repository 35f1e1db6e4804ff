"""Positions of boxes and edges."""

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, pairwise
from math import inf

import pytest

from archlang.editor.document import Document
from archlang.editor.graphs import graph_of, parts
from archlang.graph.graph import Graph
from archlang.reports.pictures.box import Box, Edge
from archlang.reports.pictures.formats import MARGIN, print_svg
from archlang.reports.pictures.picture import draw
from archlang.reports.pictures.placement import WIDEST, PlacedBox, place_boxes, place_readably
from archlang.resolve.library import PACKAGE


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


def call(id: str) -> Box:
    return Box(id, "call", f"{id}_of_a_long_name_{'x' * 20}")


def block(id: str, title: str, *boxes: Box, repeats: bool = False) -> Box:
    return Box(id, "apply", title, f"{id}: vec[4]", ("static = 1",), boxes=boxes, repeats=repeats)


def model(count: int) -> Box:
    """Returns a model of blocks beside one another, each with two blocks; all but the first two show the same."""
    inner = block("inner", "inner", call("a"), call("b"))
    boxes = [
        block(f"layer{number}", "layer" if number else "first", call(f"c{number}"), replace(inner, repeats=number > 0),
              repeats=number > 1)
        for number in range(count)
    ]  # fmt: skip
    return Box("model", "model", "model m", notes=("8 parameters",), boxes=tuple(boxes))


def described(placed: PlacedBox) -> list[tuple[str, bool, bool]]:
    """Returns the blocks in a placed picture: the title, and whether it has content, and whether it says where."""
    own = [(placed.box.title, bool(placed.children), "drawn separately" in placed.box.notes)]
    return own * (placed.box.kind == "apply") + [each for child in placed.children for each in described(child)]


def test_a_picture_that_is_not_too_wide_shows_each_block_where_it_is_used() -> None:
    picture = model(1)
    placed = place_readably(picture)
    assert placed.width < WIDEST
    assert placed == place_boxes(picture.without_repeats())


def test_a_picture_that_is_too_wide_shows_each_block_once_beside_the_model() -> None:
    picture = model(9)
    assert place_boxes(picture.without_repeats()).width > WIDEST
    placed = place_readably(picture)
    assert placed.width <= WIDEST
    beside = ("first", False, True), *[("layer", False, True)] * 8
    drawn = ("first", True, False), ("inner", False, True), ("inner", True, False)
    assert sorted(described(placed)) == sorted((*beside, *drawn, ("layer", True, False), ("inner", False, True)))
    assert placed.box.notes == ("8 parameters",)
    svg = str(print_svg(picture))
    assert svg.count(">a_of") == 1


@pytest.mark.parametrize("seed", range(3))
def test_boxes_in_columns_do_not_overlap_and_are_inside_the_picture(seed: int) -> None:
    parts = [replace(random_picture(25, seed + number), id=f"all{number}", title=f"t{number}") for number in range(4)]
    edges = tuple(Edge(left.id, right.id) for left, right in pairwise(parts))
    placed = place_readably(Box("model", "model", "m", boxes=tuple(parts), edges=edges))
    assert len([child for child in placed.children if child.box.kind == "apply" and child.children]) > 4
    for parent in parents(placed):
        are_apart(parent)
        for child in parent.children:
            assert child.x >= 0
            assert child.x + child.width <= parent.width
            assert child.y >= 0
            assert child.bottom <= parent.height


def test_rows_that_are_too_wide_become_several() -> None:
    picture = random_picture(60, 3)
    wide, narrow = place_boxes(picture), place_boxes(picture, 900.0)
    assert narrow.width < wide.width
    tops = {child.box.id: child.y for child in narrow.children}
    assert all(tops[edge.source] < tops[edge.target] for edge in picture.edges)


@pytest.mark.parametrize(
    ("folder", "word"), [("blocks/models", "model"), pytest.param("recipes", "recipe", marks=pytest.mark.slow)]
)
def test_no_picture_of_a_shipped_program_is_too_wide_to_be_read(folder: str, word: str) -> None:
    widths = {}
    for path in sorted(PACKAGE.joinpath(folder).rglob("*.arch")):
        document = Document(str(path), path.read_text(encoding="utf-8"))
        for part in parts(document):
            if part.word == word:
                graph = graph_of(document, part)
                assert isinstance(graph, Graph), graph
                widths[f"{part.name} of {path.name}"] = place_readably(draw(graph)).width + 2 * MARGIN
    assert len(widths) > 30
    assert {name: width for name, width in widths.items() if width > 1400} == {}
