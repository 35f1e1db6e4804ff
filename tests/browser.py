"""Fixtures for pages in a real browser, which log nothing, keep their policy, and ask no other server."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_VIOLATIONS = """() => {
    window.violations = [];
    document.addEventListener("securitypolicyviolation", (event) => window.violations.push(event.violatedDirective));
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:  # Any: playwright's, which may not be installed
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("chromium is not installed")
    with playwright.sync_playwright() as manager:
        opened = manager.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def open_address(browser: Any) -> Iterator[Any]:
    """Opens an address. Fails if the page logs anything, breaks its policy, or makes a request whose address begins
    with none of `allowed`."""
    complaints: list[str] = []
    views: list[Any] = []

    def open_(url: str, allowed: tuple[str, ...], width: int, scheme: str) -> Any:
        context = browser.new_context(
            viewport={"width": width, "height": 800}, color_scheme=scheme,
            permissions=["clipboard-read", "clipboard-write"],
        )  # fmt: skip
        view = context.new_page()
        view.on("console", lambda message: complaints.append(message.text))
        view.on("pageerror", lambda error: complaints.append(str(error)))
        context.on("request", lambda request: complaints.extend([request.url] * (not request.url.startswith(allowed))))
        view.add_init_script(f"({_VIOLATIONS})()")
        view.goto(url)
        views.append(view)
        return view

    yield open_
    for view in views:
        complaints += view.evaluate("window.violations")
        view.context.close()
    assert not complaints


@pytest.fixture
def open_page(open_address: Any, tmp_path: Path) -> Any:
    """Opens the text of a page, which may request nothing else."""

    def open_(text: str, width: int = 1280, scheme: str = "light") -> Any:
        place = tmp_path / f"page{len(list(tmp_path.glob('page*.html')))}.html"
        place.write_text(text, encoding="utf-8")
        return open_address(place.as_uri(), (place.as_uri(),), width, scheme)

    return open_
