"""The corrections that an editor offers, with their titles."""

import pytest

from archlang.editor.corrections import all_corrected, corrections
from archlang.editor.document import Document

BLOCK = "block b(h: seq[n, d]) -> seq[n, d] {{\n    {}\n    return h\n}}\n"


@pytest.mark.parametrize(
    ("line", "title"),
    [
        ("h <- nrom(h)", "Replace `nrom` by `norm`"),
        ("_a = panm(h)", "Insert `use archlang.models.panm`"),
        ("a = norm(h)", "Delete `a = norm(h)`"),
        ("_a = h + linear[7](h)", "Replace `7` by `d`"),
        ("_a = h + relu(linear[7](h))", "Change to `_a = h + linear[d](relu(linear[7](h)))`"),
        ("_a = \u202enorm(h)", "Delete `U+202E`"),
        ("_a = attention[1, heads = 1](h)", "Delete `, heads = 1`"),
    ],
)
def test_a_title_says_what_the_edits_do(line: str, title: str) -> None:
    document = Document("b.arch", BLOCK.format(line))
    assert title in [correction.title for correction in corrections(document)]


def test_only_the_mistakes_at_a_place_are_corrected() -> None:
    document = Document("b.arch", BLOCK.format("_a = nrom(h)\n    _b = reul(h)"))
    place = document.text.index("reul")
    (correction,) = corrections(document, place, place)
    assert correction.diagnostic.span.text == "reul"
    assert correction.edits[0].text == "relu"


def test_all_safe_corrections_are_made_at_once() -> None:
    document = Document("b.arch", BLOCK.format("_a = nrom(h);"))
    assert all_corrected(document) == BLOCK.format("_a = norm(h)")
    assert all_corrected(Document("b.arch", BLOCK.format("_a = norm(h)"))) is None


def test_a_guess_is_not_made_without_asking() -> None:
    document = Document("b.arch", BLOCK.format("_a = norm(hh)"))
    assert len(corrections(document)) == 1
    assert all_corrected(document) is None


def test_each_name_that_can_be_meant_is_offered_and_none_is_sure() -> None:
    text = "block b(h: seq[n, d]) -> vec[d] {\n    return lst(h)\n}\n"
    document = Document("p.arch", text)
    assert {each.title for each in corrections(document)} == {"Replace `lst` by `last`", "Replace `lst` by `lstm`"}
    assert all_corrected(document) is None
