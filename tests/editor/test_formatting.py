"""The text of an editor is formatted as `archlang fmt` formats files."""

from archlang.editor.document import Document
from archlang.errors import Source
from archlang.syntax.parser import parse
from archlang.syntax.printer import format_program


def test_a_text_is_formatted_and_its_byte_order_mark_stays() -> None:
    formatted = "block b(h: seq[n, d]) -> seq[n, d] {\n    return norm(h)\n}\n"
    for mark in ("", "\ufeff"):
        text = f"{mark}block b( h:seq[n,d] )->seq[n,d] {{\nreturn norm( h )}}"
        assert Document("b.arch", text).formatted == mark + formatted


def test_a_text_with_syntax_errors_stays() -> None:
    assert Document("b.arch", "block {").formatted is None


def test_a_text_of_several_parts_is_formatted_as_a_whole() -> None:
    text = """# The first.
block b(h:seq[n,d])->seq[n,d] {}
recipe r from s {
}
recipe t from r {
}
# Beside nothing.
block c(h: seq[n, d]) -> seq[n, d] {
    return h  # beside
} # the end
block e(h: seq[n, d]) -> seq[n, d] { return h }
"""
    assert Document("b.arch", text).formatted == format_program(parse(Source("b.arch", text)))
