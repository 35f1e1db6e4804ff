"""The text of an editor is formatted as `archlang fmt` formats files."""

from archlang.editor.document import Document


def test_a_text_is_formatted_and_its_byte_order_mark_stays() -> None:
    formatted = "block b(h: seq[n, d]) -> seq[n, d] {\n    return norm(h)\n}\n"
    for mark in ("", "\ufeff"):
        text = f"{mark}block b( h:seq[n,d] )->seq[n,d] {{\nreturn norm( h )}}"
        assert Document("b.arch", text).formatted == mark + formatted


def test_a_text_with_syntax_errors_stays() -> None:
    assert Document("b.arch", "block {").formatted is None
