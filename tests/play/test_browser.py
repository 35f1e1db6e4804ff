"""The playground in a real browser, from the server of this machine and as a static folder."""

import functools
import http.server
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from archlang.play.build import build
from archlang.play.mistakes import PlayError
from archlang.play.server import Server
from archlang.play.service import Service
from archlang.play.training import PlaygroundTrainer
from archlang.resolve.library import program_text, recipe_files
from tests.cli.conftest import TINY
from tests.corpus.test_edits import failing_program
from tests.play.test_server import running

pytestmark = [pytest.mark.browser, pytest.mark.slow]
SECONDS = 60_000  # milliseconds: the machine may be busy
MODEL = "model m[d = 8](x: tokens[n]) -> logits[classes] {\n    return embed[d](x) |> last |> linear[classes]\n}\n"
RECIPE = MODEL + "recipe r {\n    task  ctl\n    model m\n    train adamw[steps = 9, select = tset.accuracy]\n}\n"


class Page:
    """An open playground."""

    def __init__(self, view: Any) -> None:  # Any: playwright's, which may not be installed
        self.view = view

    def status(self) -> str:
        text: str = self.view.inner_text("#status")
        return text

    def ready(self) -> None:
        """Waits for the first picture."""
        self.view.wait_for_selector("#view svg.picture", timeout=3 * SECONDS)

    def write(self, text: str) -> None:
        """Replaces the program, at once as a paste does."""
        self.view.locator(".cm-content").click()
        self.view.keyboard.press("Control+A")
        self.view.keyboard.insert_text(text)

    def until(self, expression: str, argument: object = None, timeout: int = SECONDS) -> None:
        self.view.wait_for_function(expression, arg=argument, timeout=timeout)

    def says(self, status: str) -> None:
        self.until("(text) => document.getElementById('status').textContent === text", status)


@pytest.fixture
def open_playground(open_address: Any) -> Any:
    """Opens the address of a playground."""

    def open_(url: str, width: int = 1280, scheme: str = "light") -> Page:
        origin = "/".join(url.split("/")[:3])
        return Page(open_address(url, (origin, "data:", "blob:"), width, scheme))

    return open_


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with closing(PlaygroundTrainer()) as trainer:
        service = Service(str(tmp_path), trainer)
        with running(Server(service.answer, framed=trainer.inspection)) as started:
            yield started


@pytest.fixture
def page(server: Server, open_playground: Any) -> Page:
    """The playground of the server, with its first picture."""
    opened: Page = open_playground(server.url)
    opened.ready()
    return opened


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a plain file server with the static playground."""
    folder = tmp_path_factory.mktemp("site")
    try:
        build(folder)
    except (PlayError, subprocess.SubprocessError) as error:
        pytest.skip(f"the playground cannot be built: {error}")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            pass

    file_server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=file_server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield f"http://127.0.0.1:{file_server.server_port}/"
    file_server.shutdown()
    thread.join()
    file_server.server_close()


def test_a_program_is_checked_drawn_and_counted_as_it_is_typed(page: Page) -> None:
    page.says("No errors")
    assert "token" not in page.view.url
    page.write(MODEL.replace("embed", "embd"))
    page.says("1 error")
    assert "unknown block `embd`" in page.view.inner_text("#mistakes")
    assert page.view.locator(".cm-lintRange-error").inner_text() == "embd"
    page.view.locator("#reason", has_text="cannot be drawn").wait_for()  # the drawing follows the mistakes
    page.view.locator("#mistakes .code").click()
    page.view.locator("#explanation h3").first.wait_for()
    page.write(MODEL)
    page.says("No errors")
    page.until("() => document.querySelector('#view svg').getAttribute('aria-label') === 'model m'")
    assert "346 parameters" in page.view.inner_text("#parameters")
    assert page.view.locator("#costs tbody tr").count() == 4
    assert page.view.locator("#changes li").count() > 1


@pytest.mark.parametrize("packed", ["zzzz", ""])
def test_a_damaged_link_says_that_it_holds_no_program(server: Server, open_playground: Any, packed: str) -> None:
    page = open_playground(f"{server.url}&program={packed}")
    page.ready()
    page.says("The link holds no program. No errors")
    page.write(MODEL)
    page.says("No errors")


def test_costs_are_dimmed_once_the_program_has_none(page: Page) -> None:
    page.write("model")
    page.until("() => getComputedStyle(document.getElementById('costs')).opacity < 1")
    page.write(MODEL)
    page.until("() => getComputedStyle(document.getElementById('costs')).opacity === '1'")


def test_what_is_no_length_is_named(page: Page) -> None:
    page.view.fill("#lengths", "0 -5 abc 64")
    page.view.press("#lengths", "Enter")
    page.view.locator("#ignored-lengths", has_text=": 0 -5 abc").wait_for()
    page.until("() => document.querySelectorAll('#costs tbody tr').length === 1")
    page.view.fill("#lengths", "64 256")
    page.view.press("#lengths", "Enter")
    page.until("() => document.getElementById('ignored-lengths').textContent === ''")


def test_a_phone_shows_the_left_edge_of_the_picture(server: Server, open_playground: Any) -> None:
    page = open_playground(server.url, 390)
    page.ready()
    left = page.view.evaluate("document.querySelector('#view svg.picture').viewBox.baseVal.x")
    assert left == -10


TEN = ("E0101", "E0102", "E0202", "E0212", "E0214", "E0224", "E0301", "E0306", "E0434", "E0502")


def test_ten_mistakes_are_mended_by_a_click_on_their_remedies(page: Page) -> None:
    for code in TEN:
        page.write(failing_program(code))
        page.until("(code) => document.querySelector('#mistakes .error .code')?.textContent === code", code)
        page.view.locator("#mistakes .error .mend").first.click()
        page.until("() => document.querySelectorAll('#mistakes .error').length === 0")


ONLY_FOLD = """(line) => {
    const { shadowRoot } = document.getElementById("editor");
    const top = (each) => each.getBoundingClientRect().top;
    const markers = shadowRoot.querySelectorAll(".cm-foldGutter span[title='Fold line']");
    const lines = [...shadowRoot.querySelectorAll(".cm-lineNumbers .cm-gutterElement")];
    const number = lines.filter((each) => each.textContent === line).pop();
    return number && markers.length === 1 && Math.abs(top(markers[0]) - top(number)) < 8;
}"""


def test_the_markers_of_folds_follow_the_text(page: Page) -> None:
    for line in (1, 4):
        page.write("\n" * (line - 1) + MODEL)
        page.until(ONLY_FOLD, str(line))


def test_costs_and_changes_are_never_those_of_another_program(page: Page) -> None:
    page.write("")
    page.until("() => document.getElementById('reason').textContent.includes('no model and no block yet')")
    assert [page.view.inner_text(f"#{part}") for part in ("parameters", "changes")] == ["", ""]
    assert page.view.inner_text("#base") == "Since gutlb: the changes are shown once this can be drawn"
    page.write(MODEL)
    page.says("No errors")
    page.view.click("#keep")
    page.until("() => document.getElementById('base').textContent.endsWith('no changes')")
    page.write(MODEL.replace("d = 8", "d = 4").replace("embed", "embd"))
    page.until("() => document.getElementById('base').textContent.includes('once this can be drawn')")
    assert "before its errors" in page.view.inner_text("#uncounted")
    page.write(MODEL.replace("d = 8", "d = 4"))
    page.view.locator("#changes li", has_text="d 8 → 4").first.wait_for(timeout=SECONDS)
    assert page.view.inner_text("#base").strip().endswith(":")


def test_a_documentation_is_shown_as_it_is_written(server: Server, page: Page) -> None:
    page.write(
        "## See *all* of `a` and [b](c).\nblock f(h: seq[n, d]) -> seq[n, d] {\n    return feedforward[4](h)\n}\n"
    )
    page.says("No errors")
    page.view.locator(".cm-line span", has_text="feedforward").first.hover()
    example = "return h + feedforward[64, activation = gelu, dropout = 0.1](norm(h))"
    page.view.locator(".cm-about pre", has_text=example).wait_for(timeout=SECONDS)
    page.view.locator(".cm-line span", has_text="f").nth(1).hover()
    page.view.locator(".cm-about p", has_text="See *all* of a and [b](c).").wait_for(timeout=SECONDS)
    assert server.url.partition("#")[0] not in page.view.inner_text(".cm-about")


def test_completion_and_hover_answer(page: Page) -> None:
    page.write(MODEL)
    page.says("No errors")
    page.view.locator(".cm-line span", has_text="embed").first.hover()
    page.view.locator(".cm-about", has_text="embed").wait_for(timeout=SECONDS)
    page.view.locator(".cm-content").focus()
    page.view.keyboard.press("Control+End")
    page.view.keyboard.type("block b(h: seq[n, d]) -> seq[n, d] { return nor")
    page.view.locator(".cm-tooltip-autocomplete >> text=norm").first.wait_for(timeout=SECONDS)
    page.view.keyboard.press("Escape")


def test_a_hundred_edits_leave_the_page_as_it_was(page: Page) -> None:
    session = page.view.context.new_cdp_session(page.view)
    session.send("Performance.enable")

    def nodes() -> float:
        session.send("HeapProfiler.collectGarbage")
        metrics = session.send("Performance.getMetrics")["metrics"]
        return next(float(each["value"]) for each in metrics if each["name"] == "Nodes")

    sizes = []
    for edit in range(100):
        width = 8 + edit % 10
        page.write(MODEL.replace("d = 8", f"d = {width}"))
        page.until(
            "(text) => document.getElementById('parameters').textContent.includes(text)", f"{42 * width + 10:,} "
        )
        if edit in (19, 99):
            sizes.append(nodes())
    assert page.status() == "No errors"
    assert sizes[1] < 1.5 * sizes[0]


HOSTILE = """# <img src=x onerror="window.hacked = 1"><script>window.hacked = 1</script>
model m[d = 8](x: tokens[n]) -> logits[classes] {
    javascript = embed[d](x)
    return javascript |> last |> linear[classes]  # </svg><svg onload="window.hacked = 1">
}
recipe r {
    task file_sequences[data = "<img src=x onerror='window.hacked = 1'>"]
    model m
}
"""


def test_text_from_a_link_is_data(page: Page) -> None:
    page.write(HOSTILE)
    page.until("() => document.getElementById('mistakes').children.length > 0")
    page.until("() => document.querySelector('#view svg').getAttribute('aria-label') === 'model m'")
    page.view.click("#link")
    page.says("The link is copied: it opens in this tab only, which has the token")
    link = page.view.url
    page.view.evaluate("sessionStorage.removeItem('archlang-program')")
    page.view.goto("about:blank")
    page.view.goto(link)
    page.until("() => document.getElementById('shown').children.length === 2")
    page.ready()
    assert page.view.evaluate("window.hacked") is None
    assert "onerror" in page.view.inner_text(".cm-content")
    assert page.view.locator("#mistakes img, #mistakes script, #view script, #view img").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_a_phone(server: Server, open_playground: Any, scheme: str) -> None:
    page = open_playground(server.url, 390, scheme)
    page.ready()
    assert page.view.evaluate("document.documentElement.scrollWidth") <= 390
    for control in page.view.locator("button, select, input, .cm-content").all():
        box = control.bounding_box()
        assert box is None or (box["x"] >= 0 and box["x"] + box["width"] <= 391)


def test_every_control_has_a_name_and_is_reached_by_the_keyboard(page: Page) -> None:
    unnamed = page.view.evaluate(
        """() => [...document.querySelectorAll("button, select, input, [tabindex='0'], section, [role]")]
            .filter((each) => !(each.textContent.trim() || each.getAttribute("aria-label") || each.labels?.length
                || each.getAttribute("aria-labelledby")))
            .map((each) => each.outerHTML.slice(0, 80))"""
    )
    assert unnamed == []
    page.view.locator("#programs").focus()
    reached = set()
    for _ in range(12):
        page.view.keyboard.press("Tab")
        reached.add(page.view.evaluate("document.activeElement.id"))
    assert {"format", "link", "editor", "shown", "fold", "whole"} <= reached


def test_a_page_without_the_token_says_how_to_get_it(server: Server, browser: Any) -> None:
    view = browser.new_page()
    view.goto(server.origins[0])
    view.wait_for_selector("#status.error", timeout=SECONDS)
    assert "open the address that `archlang play` printed" in view.inner_text("#status")
    view.close()


def test_a_recipe_is_trained_before_ones_eyes(server: Server, page: Page, open_playground: Any) -> None:
    page.write(TINY + "}\n")
    page.until("() => document.querySelector('#view svg').getAttribute('aria-label').includes('tiny')")
    page.view.fill("#steps", "40")
    page.view.click("#train")
    page.until("() => document.querySelector('#curve polyline')", timeout=2 * SECONDS)
    page.until("() => document.getElementById('progress').textContent.startsWith('trained')", timeout=5 * SECONDS)
    assert "step 40 of 40" in page.view.inner_text("#progress")
    assert {"loss", "step", "0", "40"} <= set(page.view.locator("#curve text").all_text_contents())
    new_tab = open_playground(server.url)
    new_tab.ready()
    assert new_tab.view.inner_text("#progress") == ""
    assert page.view.locator("#evaluations tbody tr").count() >= 2
    page.view.frame_locator("#inspection").locator("h2", has_text="Prediction").wait_for(timeout=SECONDS)


def test_a_reload_finds_the_training_that_it_left(page: Page) -> None:
    page.write(TINY + "}\n")
    page.until("() => document.querySelector('#view svg').getAttribute('aria-label').includes('tiny')")
    page.view.fill("#steps", "10000")
    page.view.click("#train")
    page.until("() => document.querySelector('#curve polyline')", timeout=2 * SECONDS)
    page.view.reload()
    page.until("() => document.getElementById('progress').textContent.startsWith('training tiny')")
    page.view.click("#stop")
    page.until("() => document.getElementById('progress').textContent.startsWith('stopped')", timeout=2 * SECONDS)


def test_a_program_with_mistakes_is_not_trained(page: Page) -> None:
    page.write(RECIPE)
    page.says("1 error")
    page.view.click("#train")
    page.says("Correct the errors of the program first")
    assert page.view.inner_text("#progress") == ""


def test_a_reload_keeps_what_was_written_after_the_link(page: Page) -> None:
    page.write(MODEL)
    page.until("() => document.querySelector('#view svg')?.getAttribute('aria-label') === 'model m'")
    page.view.click("#keep")
    page.view.click("#link")
    page.until("() => location.hash.includes('program=')")
    page.write(MODEL.replace("d = 8", "d = 4"))
    page.view.locator("#changes li", has_text="d 8 → 4").first.wait_for(timeout=SECONDS)
    page.view.reload()
    page.ready()
    assert "d = 4" in page.view.inner_text(".cm-content")
    page.view.locator("#changes li", has_text="d 8 → 4").first.wait_for(timeout=SECONDS)
    assert "Compare from here" in page.view.inner_text("#base")


def test_a_program_that_another_one_replaced_comes_back(page: Page) -> None:
    page.write(MODEL)
    page.until("() => document.querySelector('#view svg')?.getAttribute('aria-label') === 'model m'")
    page.view.select_option("#programs", "papers/panm/table1")
    page.until("() => document.getElementById('base').textContent.includes('table1')")
    assert page.view.locator("#programs option:checked").text_content() == "papers/panm/table1"
    page.view.locator(".cm-content").focus()
    page.view.keyboard.press("Control+Z")
    page.until("() => document.querySelector('#view svg')?.getAttribute('aria-label') === 'model m'")
    page.until("() => document.getElementById('base').textContent.includes('gutlb')")


def test_every_box_is_reached_by_the_keyboard_and_shows_its_defaults(page: Page) -> None:
    page.write(MODEL)
    page.until("() => document.querySelector('#view svg')?.getAttribute('aria-label') === 'model m'")
    page.view.locator("#view [role=treeitem]", has_text="linear").last.focus()
    page.view.keyboard.press("Shift+Tab")
    page.view.keyboard.press("Tab")
    shown = page.view.inner_text(".about-box")
    assert "defaults: bias = true" in shown
    assert "line 2" in shown


def test_the_static_playground_works_from_a_plain_file_server_on_a_phone(site: str, open_playground: Any) -> None:
    page = open_playground(site, 390)
    page.ready()
    page.says("No errors")
    page.write(MODEL.replace("embed", "embd"))
    page.says("1 error")
    page.write(MODEL)
    page.says("No errors")
    page.until("() => document.querySelector('#view svg').getAttribute('aria-label') === 'model m'")
    assert "346 parameters" in page.view.inner_text("#parameters")
    page.view.select_option("#programs", "papers/panm/table1")
    page.until("() => document.getElementById('base').textContent.includes('table1')")
    page.says("No errors")
    page.write(RECIPE)  # its splits and metrics are known without numpy
    page.until("() => document.querySelector('#mistakes .error')?.textContent.includes('`tset`')")


def test_a_link_opens_its_program_in_the_static_playground(site: str, open_playground: Any) -> None:
    page = open_playground(site)
    page.ready()
    page.write(program_text(recipe_files()["ndr"]))
    page.until("() => document.querySelector('#view svg').getAttribute('aria-label').includes('ndr')")
    page.view.click("#link")
    page.says("The link is copied")
    link = page.view.evaluate("navigator.clipboard.readText()")
    assert len(link) < 4000
    linked_page = open_playground(link)
    linked_page.ready()
    assert "ndr" in linked_page.view.locator("#view svg.picture").get_attribute("aria-label")
