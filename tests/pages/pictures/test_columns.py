"""A picture that is too wide shows its blocks once, beside the model that uses them."""

from dataclasses import replace
from itertools import pairwise

import pytest

from archlang.editor.document import Document
from archlang.editor.graphs import graph_of, parts
from archlang.graph.graph import Graph
from archlang.names.library import PACKAGE
from archlang.pages.pictures.box import Box, Edge
from archlang.pages.pictures.columns import WIDEST, place_readably
from archlang.pages.pictures.picture import draw
from archlang.pages.pictures.placement import PlacedBox, place_boxes
from archlang.pages.pictures.svg import MARGIN, print_svg
from tests.pages.pictures.test_placement import are_apart, parents, random_picture


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
