"""Every code with its title and its page; the pages are the list."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources

_PAGES = resources.files("archlang.diagnostics") / "pages"


@cache
def titles() -> Mapping[str, str]:
    """The title of each code, in order."""
    pages = sorted((page for page in _PAGES.iterdir() if page.name.endswith(".md")), key=lambda page: page.name)
    return {page.name.removesuffix(".md"): _title(page.read_text(encoding="utf-8")) for page in pages}


def explain(code: str) -> str:
    """The page of a code.

    Raises:
        KeyError: there is no such code."""
    if code not in titles():
        raise KeyError(code)
    return (_PAGES / f"{code}.md").read_text(encoding="utf-8")


def _title(page: str) -> str:
    """A page begins with `# E0201: a value is used that is not bound`."""
    return page.partition("\n")[0].partition(": ")[2]
