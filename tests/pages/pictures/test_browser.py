"""Claims about the picture of an architecture in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import archlang
from archlang.pages.pictures.architecture import read
from archlang.pages.pictures.page import print_page
from archlang.pages.pictures.placement import PlacedBox, place_boxes
from tests.pages.inspection.test_browser import browser, open_page  # noqa: F401 # fixtures

pytestmark = pytest.mark.browser
RECIPES = Path(archlang.__file__).parent / "recipes"
FILES = ("gutlb.arch", "ndr.arch", "papers/panm/copy.arch", "papers/devil/scan_length.arch")


@pytest.fixture
def page(request: pytest.FixtureRequest) -> str:
    return print_page(read(RECIPES / request.param, None, None, {}).picture())


def height(view: Any) -> float:
    """Of what is drawn."""
    found: float = view.evaluate("document.querySelector('svg.picture g[data-id=model] > rect').height.baseVal.value")
    return found


@pytest.mark.parametrize("page", FILES, indirect=True)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_the_page_fits_the_window(open_page: Any, page: str, width: int, scheme: str) -> None:  # noqa: F811
    view = open_page(page, width, scheme)
    assert view.evaluate("document.documentElement.scrollWidth") <= width
    for element in view.locator("h1, button, .help").all():
        box = element.bounding_box()
        assert box is None or box["x"] + box["width"] <= width + 1


@pytest.mark.parametrize("file", FILES)
def test_the_page_places_boxes_as_the_svg_does(open_page: Any, file: str) -> None:  # noqa: F811
    drawing = read(RECIPES / file, None, None, {}).picture()
    view = open_page(print_page(drawing))
    view.locator("#unfold").click()

    def placed(one: PlacedBox) -> Iterator[tuple[str, list[float]]]:
        yield one.box.id, [one.x, one.y, one.width, one.height]
        for inner in one.children:
            yield from placed(inner)

    found = view.evaluate(
        """[...document.querySelectorAll("svg.picture g[data-id]")].map((g) => {
            const at = g.transform.baseVal.consolidate().matrix, own = g.querySelector(":scope > rect");
            return [g.dataset.id, [at.e, at.f, own.width.baseVal.value, own.height.baseVal.value]];
        })"""
    )
    wanted = dict(placed(place_boxes(drawing)))
    assert {id for id, _ in found} == wanted.keys()
    for id, place in found:
        assert place == pytest.approx(wanted[id], abs=0.1), id


@pytest.mark.parametrize("page", FILES, indirect=True)
@pytest.mark.parametrize("width", [1280, 400])
def test_it_opens_on_its_first_box_in_letters_that_can_be_read(open_page: Any, page: str, width: int) -> None:  # noqa: F811
    view = open_page(page, width)
    first = view.locator("svg.picture g[data-id=model] > g.inside > g[data-id]").first
    box = first.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    # A letter is 12 px high where the picture has its own size.
    scale = box["width"] / first.evaluate("box => box.getBBox().width")
    assert scale >= 0.55


@pytest.mark.parametrize("page", ["gutlb.arch"], indirect=True)
def test_boxes_fold_and_unfold_by_buttons_click_and_key(open_page: Any, page: str) -> None:  # noqa: F811
    view = open_page(page)
    whole = height(view)
    view.locator("#fold").click()
    folded = height(view)
    assert folded < whole
    view.locator("#unfold").click()
    assert height(view) == whole
    loop = view.locator("g[aria-expanded]").last
    loop.focus()
    view.keyboard.press("Enter")
    assert loop.get_attribute("aria-expanded") == "false"
    assert height(view) < whole
    loop.locator("text").first.click()
    assert loop.get_attribute("aria-expanded") == "true"
    assert height(view) == whole


@pytest.mark.parametrize("page", ["gutlb.arch"], indirect=True)
def test_an_edge_under_the_mouse_lights_its_way(open_page: Any, page: str) -> None:  # noqa: F811
    view = open_page(page)
    assert view.locator("path.lit").count() == 0
    view.locator("svg.picture path[data-from]").nth(5).dispatch_event("pointerenter")
    assert view.locator("path.lit").count() > 1
    view.locator("svg.picture path[data-from]").nth(5).dispatch_event("pointerleave")
    assert view.locator("path.lit").count() == 0


@pytest.mark.parametrize("page", ["gutlb.arch"], indirect=True)
def test_it_zooms_by_keys_and_shows_the_whole_again(open_page: Any, page: str) -> None:  # noqa: F811
    view = open_page(page)
    picture = view.locator("svg.picture")
    view.locator("#whole").click()
    whole = picture.get_attribute("viewBox")
    view.locator("#view").focus()
    view.keyboard.press("+")
    assert picture.get_attribute("viewBox") != whole
    view.locator("#whole").click()
    assert picture.get_attribute("viewBox") == whole


@pytest.mark.parametrize("page", ["gutlb.arch"], indirect=True)
def test_a_screen_reader_gets_a_name_for_every_box_that_opens(open_page: Any, page: str) -> None:  # noqa: F811
    view = open_page(page)
    boxes = view.locator("g[role=button]")
    assert boxes.count() > 1
    assert all(one.get_attribute("aria-label") for one in boxes.all())
