"""Programs with a mark at the cursor."""

from archlang.editor.document import Document


def at_cursor(text: str, path: str = "program.arch") -> tuple[Document, int]:
    """Returns a document and the offset of the sign `¦`, which is removed."""
    offset = text.index("¦")
    return Document(path, text[:offset] + text[offset + 1 :]), offset
