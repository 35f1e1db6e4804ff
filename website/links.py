"""Links from the programs on a page to the playground."""

import base64
import re
import zlib

_PROGRAM = re.compile(r"^```arch\n(.*?)^```\n", re.MULTILINE | re.DOTALL)


def with_links(text: str, playground: str) -> str:
    """Returns the text of a page with a link to the playground after each program, which the link holds."""

    def linked(match: re.Match[str]) -> str:
        address = f"{playground}#program={packed(match[1])}"
        return f'{match[0]}\n<p class="playground"><a href="{address}">Edit in the playground</a></p>\n'

    return _PROGRAM.sub(linked, text)


def packed(program: str) -> str:
    """Returns a program as the playground reads it from an address; `playground/src/link.js` is the other side."""
    deflate = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    compressed = deflate.compress(program.encode()) + deflate.flush()
    return base64.urlsafe_b64encode(compressed).decode().rstrip("=")
