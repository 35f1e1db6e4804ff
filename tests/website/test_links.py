"""Programs on a page link to the playground, with the program in the link."""

import base64
import re
import zlib

from website.links import with_links


def test_the_link_of_a_program_holds_it() -> None:
    program = "block b(h: seq[n, d]) -> seq[n, d] { return h }   # α ↔ β\n"
    (packed,) = re.findall(
        'href="../playground/#program=([^"]+)"', with_links(f"```arch\n{program}```\n", "../playground/")
    )
    unpacked = zlib.decompress(base64.urlsafe_b64decode(packed + "=" * (-len(packed) % 4)), -zlib.MAX_WBITS)
    assert unpacked.decode() == program


def test_a_signature_and_other_languages_have_no_link() -> None:
    text = "```{ .arch }\nblock b(h: seq[n, d]) -> seq[n, d]\n```\n\n```sh\nls\n```\n"
    assert with_links(text, "playground/") == text
