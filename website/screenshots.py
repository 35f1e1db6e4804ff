"""Makes the screenshots of the documentation: `python -m website.screenshots`.

It needs playwright, chromium and, for that of VS Code, code-server. With the file of a page, it makes the screenshot of
that page alone."""

import argparse
import io
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image

from archlang.play.server import Server
from archlang.play.service import Service
from editors.code_server import PROGRAM, Window, packed_extension, served
from website.pages import ROOT

GALLERY = ROOT / "docs" / "gallery"
_SECONDS = 60_000  # milliseconds: the machine may be busy
_COLOURS = 128
# Attention without a mask in a causal task, and a misspelt static.
_MISTAKES = """model reader[d = 64, ff = 256](x: tokens[n])
    -> logits[n, vocab] {
    h = embed[d](x)
    a = h + attention[8](norm(h))
    u = a + feedforward[ff](norm(a))
    return linear[vocab](u)
}

recipe remember {
    task  flipflop
    model reader
    train adamw[step = 300]
}
"""


@contextmanager
def chromium() -> Iterator[Any]:  # Any: playwright's, which may not be installed
    """Opens chromium.

    Raises:
        SystemExit: it or playwright is not installed."""
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        raise SystemExit("error: playwright is not installed\n  help: run `pip install playwright`") from None
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        raise SystemExit("error: chromium is not installed\n  help: install it with the system's packages")
    with sync_playwright() as manager:
        browser = manager.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


def screenshot(view: Any, file: Path, **options: object) -> None:
    """Writes what an open page or an element of it shows, as a PNG of few colours."""
    with Image.open(io.BytesIO(view.screenshot(**options))) as image:
        small = image.convert("RGB").quantize(_COLOURS, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    file.parent.mkdir(parents=True, exist_ok=True)
    small.save(file, optimize=True)


def playground(browser: Any, folder: Path) -> None:
    """Makes the screenshots of the playground: light, dark, and its mistakes."""
    with _served() as url:
        for name, scheme in (("playground", "light"), ("playground_dark", "dark")):
            with _page(browser, url, scheme, 900) as view:
                view.select_option("#programs", "ndr")
                view.wait_for_selector("#view svg[aria-label*=ndr]", timeout=_SECONDS)
                screenshot(view, folder / f"{name}.png")
        with _page(browser, url, "light", 800) as view:
            view.locator(".cm-content").click()
            view.keyboard.press("Control+A")
            view.keyboard.insert_text(_MISTAKES)
            view.wait_for_selector("#mistakes .error", timeout=_SECONDS)
            view.locator("h1").click()  # hides the cursor
            screenshot(view.locator("#program"), folder / "mistakes.png")


def vs_code(browser: Any, folder: Path) -> None:
    """Makes the screenshot of VS Code: a program, a mistake with its correction, and the picture of a model."""
    if shutil.which(PROGRAM) is None:
        print("skipped the screenshot of VS Code: code-server is not installed")
        return
    with tempfile.TemporaryDirectory() as temporary:
        home, project = Path(temporary, "home"), Path(temporary, "project")
        home.mkdir()
        project.mkdir()
        (project / "reader.arch").write_text(_MISTAKES, encoding="utf-8")
        with served(packed_extension(home), home) as url:
            window = Window(browser, url, project, viewport={"width": 1300, "height": 560})
            window.open("reader.arch")
            window.view.wait_for_selector(".squiggly-error")
            window.go_to(4, 15)
            window.run("archlang: Show graph")
            window.picture()
            window.view.keyboard.press("Control+.")
            window.view.locator(".action-widget .monaco-list-row.action").first.wait_for()
            screenshot(window.view, folder / "vscode.png")
            window.view.close()


@contextmanager
def _served() -> Iterator[str]:
    """Serves the playground, and yields its address."""
    with tempfile.TemporaryDirectory() as empty:
        server = Server(Service(empty).answer)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server.url
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def _page(browser: Any, url: str, scheme: str, height: int) -> Iterator[Any]:
    """Opens the playground, and waits for its first picture."""
    view = browser.new_page(viewport={"width": 1500, "height": height}, color_scheme=scheme)
    view.goto(url)
    view.wait_for_selector("#costs tbody tr", timeout=3 * _SECONDS)
    yield view
    view.close()


def page_screenshot(browser: Any, page: Path, file: Path, width: int, scheme: str) -> None:
    """Makes the screenshot of all of a page in a file, in the scheme `light` or `dark`."""
    view = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)
    view.goto(page.resolve().as_uri())
    screenshot(view, file, full_page=True)
    view.close()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m website.screenshots", description=__doc__)
    parser.add_argument("page", nargs="?", type=Path, help="a page, such as an inspection; the playground if left out")
    parser.add_argument("-o", dest="output", type=Path, help="the PNG file of the page")
    parser.add_argument("--dark", action="store_true", help="show the page in the dark colour scheme")
    parser.add_argument("--width", type=int, default=1280, help="the width of the page in pixels (1280)")
    options = parser.parse_args()
    if options.page is not None and not options.page.is_file():
        parser.error(f"there is no file {options.page}")
    with chromium() as browser:
        if options.page is None:
            playground(browser, GALLERY)
            vs_code(browser, GALLERY)
            return
        scheme = "dark" if options.dark else "light"
        page_screenshot(
            browser, options.page, options.output or options.page.with_suffix(".png"), options.width, scheme
        )


if __name__ == "__main__":
    main()
