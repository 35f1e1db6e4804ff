"""Every code with its title and its page; the pages are the list."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources

_PAGES = resources.files("archlang.diagnostics") / "pages"


@cache
def titles() -> Mapping[str, str]:
    """The title of each code, in order."""
    found = {}
    for page in _PAGES.iterdir():
        if page.name.endswith(".md"):
            code, _, title = page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ").partition(": ")
            found[code] = title
    return dict(sorted(found.items()))


def explain(code: str) -> str:
    """The page of a code.

    Raises:
        KeyError: there is no such code."""
    if code not in titles():
        raise KeyError(code)
    return (_PAGES / f"{code}.md").read_text(encoding="utf-8")
