"""MkDocs builds the site without a warning, and a browser finds a block and edits a program on a page."""

import functools
import http.server
import os
import subprocess
import sys
import threading
import urllib.parse
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from archlang.play.build import build
from archlang.play.mistakes import PlayError
from website.pages import ROOT

pytest.importorskip("material", reason="the extra `site` is not installed")
pytestmark = pytest.mark.slow
SECONDS = 60_000  # milliseconds: the machine may be busy


@pytest.fixture(scope="module")
def with_playground(tmp_path_factory: pytest.TempPathFactory) -> bool:
    try:
        build(tmp_path_factory.mktemp("playground"))
    except PlayError:  # npm is missing, or has no network
        return False
    return True


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, with_playground: bool) -> Path:
    """The site, with the playground if npm can fetch Pyodide."""
    place = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", "website/mkdocs.yml", "-d", str(place)]
    environment = {**os.environ, "PLAYGROUND": str(with_playground).lower(), "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return place


class Addresses(HTMLParser):
    """Collects the addresses that a page refers to."""

    def __init__(self) -> None:
        super().__init__()
        self.pairs: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.pairs += [(tag, value) for name, value in attrs if name in ("href", "src") and value]


def test_every_address_within_the_site_has_a_file_and_nothing_is_loaded_from_elsewhere(folder: Path) -> None:
    missing = []
    for page in folder.rglob("*.html"):
        if page.is_relative_to(folder / "playground") or page.name == "404.html":  # 404.html uses the server's root
            continue
        addresses = Addresses()
        addresses.feed(page.read_text(encoding="utf-8"))
        for tag, address in addresses.pairs:
            parts = urllib.parse.urlsplit(address)
            if parts.scheme or parts.netloc:
                assert (tag, parts.scheme) == ("a", "https"), f"{page}: {address}"
                continue
            target = page.parent / urllib.parse.unquote(parts.path)
            if not (target / "index.html" if target.is_dir() else target).exists():
                missing.append(f"{page.relative_to(folder)} -> {address}")
    assert missing == []


def test_no_page_names_a_folder_of_this_machine(folder: Path) -> None:
    assert [page for page in folder.rglob("*.html") if str(ROOT) in page.read_text(encoding="utf-8")] == []


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: object) -> None:
        pass


LIGHT, DARK = "rgb(255, 255, 255)", "rgb(15, 18, 22)"


def ground(page: Any) -> str:
    """Returns the colour of the ground of the playground in a page."""
    body = page.frame_locator("iframe.playground").locator("body")
    colour: str = body.evaluate("body => getComputedStyle(body).backgroundColor")
    return colour


def switched(page: Any) -> str:
    """Switches the page between light and dark, and returns the colour of its playground."""
    page.locator("label[for^='__palette']:visible").click()
    return ground(page)


@pytest.mark.browser
def test_a_browser_finds_a_block_and_edits_an_example_in_its_page(
    folder: Path, with_playground: bool, browser: Any
) -> None:
    complaints: list[str] = []
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page = browser.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.goto(f"http://127.0.0.1:{server.server_port}/docs/language/")
        page.keyboard.press("/")
        page.keyboard.type("geometric_attention")
        result = page.locator(".md-search-result__link[href*='reference/blocks/']").first
        result.wait_for(timeout=SECONDS)
        if with_playground:
            page.keyboard.press("Escape")
            page.locator("p.playground a").first.click()
            status = page.frame_locator("iframe.playground").locator("#status")
            status.get_by_text("No errors").wait_for(timeout=3 * SECONDS)
            assert [ground(page), *(switched(page) for _ in range(2))] == [LIGHT, DARK, LIGHT]
        page.close()
        server.shutdown()
    assert complaints == []
