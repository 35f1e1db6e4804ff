"""The outline of a program, and what folds."""

from archlang.editor.document import Document
from archlang.editor.outline import folds, outline

TEXT = """use archlang.models.panm

block b[k = 2](h: seq[n, d]) -> seq[n, d] {
    repeat k {
        h <- norm(h)
    }
    return h
}

recipe r {
    task ctl
}
"""


def test_items_are_listed_with_their_statics() -> None:
    block, recipe = outline(Document("b.arch", TEXT))
    assert (block.kind, block.name, [static.name for static in block.inner]) == ("block", "b", ["k"])
    assert (recipe.kind, recipe.name, recipe.inner) == ("recipe", "r", ())
    assert block.name_span.text == "b"
    assert block.span.text.endswith("return h\n}")


def test_items_and_loops_of_several_lines_fold() -> None:
    assert folds(Document("b.arch", TEXT)) == ((2, 7), (3, 5), (9, 11))
