"""The page of a picture in a real browser."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import archlang
from archlang.plan.from_file import plan_recipe
from archlang.reports.pictures.formats import print_page
from archlang.reports.pictures.picture import draw
from archlang.reports.pictures.placement import PlacedBox, place_boxes

pytestmark = pytest.mark.browser
RECIPES = Path(archlang.__file__).parent / "recipes"
FILES = ("gutlb.arch", "ndr.arch", "papers/panm/copy.arch", "papers/devil/scan_length.arch")


@pytest.fixture
def page(request: pytest.FixtureRequest) -> str:
    return print_page(draw(plan_recipe(RECIPES / request.param).graph))


def height(view: Any) -> float:
    """Returns the height of the model's box in pixels of the picture."""
    pixels: float = view.evaluate("document.querySelector('svg.picture g[data-id=model] > rect').height.baseVal.value")
    return pixels


@pytest.mark.parametrize("page", FILES, indirect=True)
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
def test_the_page_fits_the_window(open_page: Any, page: str, width: int, scheme: str) -> None:
    view = open_page(page, width, scheme)
    assert view.evaluate("document.documentElement.scrollWidth") <= width
    for element in view.locator("h1, button, .help").all():
        box = element.bounding_box()
        assert box is None or box["x"] + box["width"] <= width + 1


@pytest.mark.parametrize("file", FILES)
def test_the_page_places_boxes_as_the_svg_does(open_page: Any, file: str) -> None:
    picture = draw(plan_recipe(RECIPES / file).graph)
    view = open_page(print_page(picture))
    view.locator("#unfold").click()

    def positions(placed: PlacedBox) -> Iterator[tuple[str, list[float]]]:
        yield placed.box.id, [placed.x, placed.y, placed.width, placed.height]
        for child in placed.children:
            yield from positions(child)

    shown = view.evaluate(
        """[...document.querySelectorAll("svg.picture g[data-id]")].map((g) => {
            const at = g.transform.baseVal.consolidate().matrix, own = g.querySelector(":scope > rect");
            return [g.dataset.id, [at.e, at.f, own.width.baseVal.value, own.height.baseVal.value]];
        })"""
    )
    expected = dict(positions(place_boxes(picture)))
    assert {id for id, _ in shown} == expected.keys()
    for id, position in shown:
        assert position == pytest.approx(expected[id], abs=0.1), id


# The boxes that overlap or leave their parent, and the edges that do not start and end at their boxes.
MISPLACED = """() => {
    const near = (a, b) => Math.abs(a - b) < 0.3;
    const numbers = (text) => text.match(/-?[\\d.]+/g).map(Number);
    const size = (g) => ["width", "height"].map((name) => Number(g.querySelector("rect").getAttribute(name)));
    const problems = [];
    for (const inside of document.querySelectorAll("svg.picture g.inside")) {
        if (inside.closest("[aria-expanded=false]")) continue;
        const [width, height] = size(inside.parentElement);
        const boxes = new Map([...inside.querySelectorAll(":scope > g[data-id]")].map((g) => {
            const [x, y] = numbers(g.getAttribute("transform")), [w, h] = size(g);
            return [g.dataset.id, { id: g.dataset.id, x, y, right: x + w, bottom: y + h, centre: x + w / 2 }];
        }));
        for (const a of boxes.values()) {
            const fits = a.x >= 0 && a.y >= 0 && a.right <= width + 0.3 && a.bottom <= height + 0.3;
            if (!fits) problems.push(`${a.id} is outside`);
            for (const b of boxes.values())
                if (a.id < b.id && a.x < b.right && b.x < a.right && a.y < b.bottom && b.y < a.bottom)
                    problems.push(`${a.id} overlaps ${b.id}`);
        }
        for (const path of inside.querySelectorAll(":scope > path")) {
            const points = numbers(path.getAttribute("d"));
            const { from, to } = path.dataset, source = boxes.get(from), target = boxes.get(to);
            if (!near(points[0], source.centre) || !near(points[1], source.bottom)) problems.push(`edge of ${from}`);
            if (!near(points.at(-2), target.centre) || !near(points.at(-1), target.y)) problems.push(`edge to ${to}`);
        }
    }
    return problems;
}"""


@pytest.mark.parametrize("page", [*FILES, "papers/panm/multi30k.arch"], indirect=True)
def test_a_folded_box_leaves_no_overlap_and_no_loose_edge(open_page: Any, page: str) -> None:
    view = open_page(page)
    view.locator("#unfold").click()
    assert view.evaluate(MISPLACED) == []
    foldable = view.locator("g[aria-expanded]")
    # From the innermost box, so that the boxes to fold are visible.
    for index in reversed(range(foldable.count())):
        foldable.nth(index).dispatch_event("click")
        assert foldable.nth(index).get_attribute("aria-expanded") == "false"
        assert view.evaluate(MISPLACED) == []
    for index in range(foldable.count()):
        foldable.nth(index).dispatch_event("click")
        assert view.evaluate(MISPLACED) == []


@pytest.mark.parametrize("page", FILES, indirect=True)
@pytest.mark.parametrize("width", [1280, 400])
def test_it_opens_on_its_first_box_in_readable_letters(open_page: Any, page: str, width: int) -> None:
    view = open_page(page, width)
    first = view.locator("svg.picture g[data-id=model] > g.inside > g[data-id]").first
    box = first.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    # A letter is 12 px high where the picture has its own size.
    scale = box["width"] / first.evaluate("box => box.getBBox().width")
    assert scale >= 0.55


@pytest.mark.parametrize("page", [*FILES, "field/block_recurrent.arch", "field/moeut.arch"], indirect=True)
def test_it_opens_whole_in_readable_letters(open_page: Any, page: str) -> None:
    view = open_page(page)
    size = "document.querySelector('svg.picture g[data-id=model]').getBoundingClientRect()"
    left, top, right, bottom = view.evaluate(f"(({{left, top, right, bottom}}) => [left, top, right, bottom])({size})")
    assert left >= 0
    assert top >= 0
    assert right <= 1280
    assert bottom <= 800
    text = view.locator("svg.picture g[data-id=model] > text").first
    assert text.bounding_box()["height"] >= 0.58 * text.evaluate("text => text.getBBox().height")
    assert not view.locator("svg.minimap").is_visible()


@pytest.mark.parametrize("page", ["papers/panm/multi30k.arch"], indirect=True)
def test_the_picture_follows_the_keyboard(open_page: Any, page: str) -> None:
    view = open_page(page, 800)
    view.locator("#unfold").click()
    inside = "g => { const {left, top} = g.querySelector('rect').getBoundingClientRect();"
    inside += " return left >= 0 && top >= 0 && left < innerWidth && top < innerHeight }"
    boxes = view.locator("svg.picture g[tabindex]").count()
    assert boxes > 20
    for _ in range(boxes):
        view.keyboard.press("Tab")
        focused = view.locator("svg.picture g:focus")
        if focused.count():
            assert focused.evaluate(inside)


@pytest.mark.parametrize("page", ["gutlb.arch"], indirect=True)
def test_a_click_on_the_minimap_moves_there(open_page: Any, page: str) -> None:
    view = open_page(page)
    view.locator("#unfold").click()
    minimap, last = (
        view.locator("svg.minimap"),
        view.locator("svg.picture g[data-id=model] > g.inside > g[data-id]").last,
    )
    assert minimap.is_visible()
    assert last.bounding_box()["y"] > 800
    box = minimap.bounding_box()
    minimap.click(position={"x": box["width"] / 2, "y": box["height"] - 4})
    assert 0 < last.bounding_box()["y"] < 800
    view.locator("#whole").click()
    assert not minimap.is_visible()


@pytest.mark.parametrize("page", ["gutlb.arch"], indirect=True)
def test_the_minimap_is_there_only_while_the_picture_exceeds_its_view(open_page: Any, page: str) -> None:
    view = open_page(page)
    minimap = view.locator("svg.minimap")
    folded = view.locator("svg.picture g.loop[aria-expanded=false]").first.get_attribute("data-id")
    loop = view.locator(f"svg.picture g[data-id='{folded}']")
    assert not minimap.is_visible()
    loop.press("Enter")
    assert minimap.is_visible()
    loop.press("Enter")
    assert not minimap.is_visible()
    view.set_viewport_size({"width": 390, "height": 800})
    loop.press("Enter")
    assert not minimap.is_visible(), "it would cover boxes"


@pytest.mark.parametrize("page", ["gutlb.arch"], indirect=True)
def test_boxes_fold_and_unfold_by_buttons_click_and_key(open_page: Any, page: str) -> None:
    view = open_page(page)
    view.locator("#unfold").click()
    unfolded = height(view)
    view.locator("#fold").click()
    assert height(view) < unfolded
    view.locator("#unfold").click()
    assert height(view) == unfolded
    loop = view.locator("g[aria-expanded]").last
    loop.focus()
    view.keyboard.press("Enter")
    assert loop.get_attribute("aria-expanded") == "false"
    assert height(view) < unfolded
    loop.locator("text").first.click()
    assert loop.get_attribute("aria-expanded") == "true"
    assert height(view) == unfolded


@pytest.mark.parametrize("page", ["gutlb.arch"], indirect=True)
def test_an_edge_under_the_mouse_highlights_its_paths(open_page: Any, page: str) -> None:
    view = open_page(page)
    assert view.locator("path.lit").count() == 0
    view.locator("svg.picture path[data-from]").nth(5).dispatch_event("pointerenter")
    assert view.locator("path.lit").count() > 1
    view.locator("svg.picture path[data-from]").nth(5).dispatch_event("pointerleave")
    assert view.locator("path.lit").count() == 0


@pytest.mark.parametrize("page", ["gutlb.arch"], indirect=True)
def test_it_zooms_by_keys_and_shows_the_whole_picture_again(open_page: Any, page: str) -> None:
    view = open_page(page)
    picture = view.locator("svg.picture")
    view.locator("#whole").click()
    full_view = picture.get_attribute("viewBox")
    view.locator("#view").focus()
    view.keyboard.press("+")
    assert picture.get_attribute("viewBox") != full_view
    view.locator("#whole").click()
    assert picture.get_attribute("viewBox") == full_view


@pytest.mark.parametrize("page", ["gutlb.arch"], indirect=True)
def test_every_box_that_folds_has_a_name_for_screen_readers(open_page: Any, page: str) -> None:
    view = open_page(page)
    boxes = view.locator("g[role=treeitem]")
    assert boxes.count() > 1
    assert all(box.get_attribute("aria-label") for box in boxes.all())
