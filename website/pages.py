"""The pages of the site: the README, and all that its links lead to."""

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from archlang.resolve.library import summary

ROOT = Path(__file__).parent.parent
_START = "README.md"
# The search shows what explains a word, before its mistakes, and without the programs and folders that use it.
_NOT_FOUND = "---\nsearch:\n  exclude: true\n---\n\n"
_FOUND_LATER = "---\nsearch:\n  boost: 0.3\n---\n\n"
_ERROR_PAGE = re.compile(r"docs/errors/[EW]\d+\.md")
# Files that browsers show or save; other files get a page with their text.
_COPIED = {".ipynb", ".png", ".svg"}
# A fence, code within a line, or the target of a link.
_LINK = re.compile(r"^```.*?^```|``.*?``|`[^`\n]*`|\]\(([^)#\s]*)(#[^)\s]*)?\)", re.MULTILINE | re.DOTALL)
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Site:
    """The pages in Markdown by their address within the site, the files to copy, and the links that lead nowhere."""

    pages: dict[str, str] = field(default_factory=dict)
    copied: set[str] = field(default_factory=set)
    broken: list[str] = field(default_factory=list)


def site(generated: Mapping[str, str]) -> Site:
    """Returns the README and all that links lead to: pages, pictures, other files as pages, folders as lists.

    The address of a page is its path in the repository, so a link is the same in both. `generated` are further pages
    by address, in which links lead to files of the repository too."""
    result = Site()
    texts = dict(generated)
    waiting = [_START, *(target for address, text in generated.items() for target in _targets(address, text))]
    while waiting:
        path = waiting.pop()
        address = _address(path)
        if address in texts or path in result.copied:
            continue
        if Path(path).suffix in _COPIED:
            result.copied.add(path)
            continue
        texts[address] = _text(path)
        waiting += (target for target in _targets(address, texts[address]) if target not in texts)
    for address, text in texts.items():
        result.pages[address] = _with_addresses(address, text)
        result.broken.extend(_broken(address, text, texts))
    return result


def _targets(address: str, text: str) -> Iterator[str]:
    """Yields the paths that the links of a page lead to, if they exist."""
    yield from (path for path, _ in _links(address, text) if (ROOT / path).exists())


def _links(address: str, text: str) -> Iterator[tuple[str, str]]:
    """Yields the path and the fragment of each link within the site."""
    for match in _LINK.finditer(text):
        if match[1] is not None and "://" not in match[1]:
            yield _path(address, match[1]), (match[2] or "").removeprefix("#")


def _path(address: str, target: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(address), target)) if target else address


def _address(path: str) -> str:
    """Returns the address of the page of a path of the repository."""
    if (ROOT / path).is_dir():
        names = (name for name in ("index.md", "README.md") if (ROOT / path / name).exists())
        return f"{path}/{next(names, 'index.md')}"
    return path if path.endswith(".md") or Path(path).suffix in _COPIED else f"{path}.md"


def _text(path: str) -> str:
    place = ROOT / path
    if place.is_dir():
        address = ROOT / _address(path)
        return address.read_text(encoding="utf-8") if address.exists() else _listing(path)
    text = place.read_text(encoding="utf-8")
    if place.suffix == ".md":
        return f"{_FOUND_LATER}{text}" if _ERROR_PAGE.fullmatch(path) else text
    language = {".arch": "arch", ".py": "python", ".cff": "yaml"}.get(place.suffix, "text")
    return f"{_NOT_FOUND}# {place.name}\n\n`{path}`\n\n```{language}\n{text.rstrip()}\n```\n"


def _listing(path: str) -> str:
    """Returns a page that lists the contents of a folder."""
    entries = sorted(file for file in (ROOT / path).iterdir() if file.suffix not in (".pt", ".safetensors"))
    files = [file for file in entries if not file.name.startswith(("_", "."))]
    lines = [f"- [{file.name.removesuffix('.md')}]({file.name}){_title(file)}" for file in files]
    return _NOT_FOUND + "\n".join([f"# {Path(path).name.capitalize()}", "", *lines, ""])


def _title(file: Path) -> str:
    """Returns what a file is about, after a colon; empty if it does not say."""
    if file.suffix == ".md":
        title = file.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        return ": " + title.removeprefix(f"{file.stem}: ")
    if file.suffix == ".arch":
        return ": " + summary(file.read_text(encoding="utf-8"))
    return ""


def _with_addresses(address: str, text: str) -> str:
    """Returns the text of a page, whose links to folders and other files lead to their pages."""

    def corrected(match: re.Match[str]) -> str:
        path = _path(address, match[1]) if match[1] and "://" not in match[1] else ""
        if not path or not (ROOT / path).exists():
            return match[0]
        return f"]({posixpath.relpath(_address(path), posixpath.dirname(address) or '.')}{match[2] or ''})"

    return _LINK.sub(corrected, text)


def _broken(address: str, text: str, pages: Mapping[str, str]) -> Iterator[str]:
    """Yields the links of a page that lead nowhere."""
    for path, fragment in _links(address, text):
        page = pages.get(path if path in pages else _address(path))
        if page is None and not (ROOT / path).exists():
            yield f"{address} -> {path}"
        elif fragment and (page is None or fragment not in _anchors(page)):
            yield f"{address} -> {path}#{fragment}"


def _anchors(page: str) -> set[str]:
    """Returns the fragments of the headings of a page, as GitHub and the site form them."""
    titles = re.findall(r"^#+ (.+)$", _FENCE.sub("", page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
