"""The codes of diagnostics, with the title and the page of each. The page files define the codes."""

from collections.abc import Mapping
from functools import cache
from importlib import resources

_PAGES = resources.files("archlang.errors") / "pages"


@cache
def titles() -> Mapping[str, str]:
    """Returns the title of each code, in the order of the codes."""
    pages = sorted((page for page in _PAGES.iterdir() if page.name.endswith(".md")), key=lambda page: page.name)
    return {page.name.removesuffix(".md"): _title(page.read_text(encoding="utf-8")) for page in pages}


def explain(code: str) -> str:
    """Returns the page of a code, in Markdown.

    Raises:
        KeyError: the code does not exist."""
    if code not in titles():
        raise KeyError(code)
    return (_PAGES / f"{code}.md").read_text(encoding="utf-8")


def _title(page: str) -> str:
    return page.partition("\n")[0].partition(": ")[2]
