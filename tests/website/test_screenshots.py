"""One command makes the screenshots of the documentation."""

from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from website.pages import ROOT
from website.screenshots import GALLERY, page_screenshot, playground

pytestmark = [pytest.mark.browser, pytest.mark.slow]
NAMES = {"mistakes.png", "playground.png", "playground_dark.png"}


def test_the_screenshots_of_the_playground_are_small_and_shown(browser: Any, tmp_path: Path) -> None:
    playground(browser, tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == NAMES
    pages = "".join((ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in ("playground", "editors"))
    for name in NAMES:
        assert f"](gallery/{name})" in pages
        for file in (tmp_path / name, GALLERY / name):
            assert file.stat().st_size < 150_000
        with Image.open(tmp_path / name) as made, Image.open(GALLERY / name) as committed:
            assert made.size == committed.size


def test_a_page_is_shown_in_full(browser: Any, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("<body style='margin: 0'><p style='height: 2000px; margin: 0'>a</p></body>", encoding="utf-8")
    page_screenshot(browser, page, tmp_path / "page.png", width=400, scheme="dark")
    with Image.open(tmp_path / "page.png") as image:
        assert image.size == (400, 2000)
