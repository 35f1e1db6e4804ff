"""Documentation comments as Markdown: their text is plain, with names and programs in backticks and indented lines."""

import re
from collections.abc import Iterable, Iterator
from itertools import groupby

# The last words before the lines of a program; other indented lines are equations and tables.
_EXAMPLE = "Example:"
_CODE = re.compile(r"(`[^`]+`)")
# What Markdown would read as a link, as emphasis, or, at the beginning of a line, as a heading or a quotation.
_SIGN = re.compile(r"[\\`*\[\]]|(?<!\w)_|_(?!\w)|^[ \t]*[#>]", re.MULTILINE)
_FENCE = re.compile(r"`{3,}")


def paragraphs(documentation: Iterable[str]) -> Iterator[str]:
    """Yields the parts of a documentation in Markdown, with the indented lines as code."""
    language = "text"
    for is_code, group in groupby(documentation, lambda line: not line or line.startswith("    ")):
        text = "\n".join(line.removeprefix("    ") for line in group).strip("\n")
        if is_code and text:
            fence = "`" * max(2, *map(len, ["", *_FENCE.findall(text)])) + "`"
            yield f"{fence}{language}\n{text}\n{fence}"
        elif text:
            yield "".join(part if place % 2 else _plain(part) for place, part in enumerate(_CODE.split(text)))
            language = "arch" if text.endswith(_EXAMPLE) else "text"


def _plain(text: str) -> str:
    """Returns the Markdown of a text without markup."""
    escaped = _SIGN.sub(lambda sign: f"{sign[0][:-1]}\\{sign[0][-1]}", text)
    return escaped.replace("&", "&amp;").replace("<", "&lt;")
