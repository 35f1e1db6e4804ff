"""The kinds of words, by which an editor colours them."""

from itertools import pairwise

from archlang.editor.document import Document
from archlang.editor.semantic_tokens import semantic_tokens

TEXT = """# All.
model m[d: int = 8](x: tokens[n]) -> logits[classes] {
    h = embed[d](x)
    repeat 2 { h <- h + attention[1, position = rotary](h) }
    return h |> last |> linear[classes]
}
recipe r {
    task  ctl
    model m
    claim test.accuracy = 0.5 from "a paper"
}
"""


def kinds(word: str) -> set[str]:
    return {token.kind for token in semantic_tokens(Document("m.arch", TEXT)) if token.span.text == word}


def test_each_word_has_the_kind_of_what_it_means() -> None:
    expected = {
        "# All.": "comment", "model": "keyword", "m": "class", "int": "type", "d": "property", "x": "parameter",
        "h": "variable", "tokens": "type", "n": "typeParameter", "embed": "function", "ctl": "interface", "r": "event",
        "rotary": "enumMember", "0.5": "number", '"a paper"': "string", "repeat": "keyword",
    }  # fmt: skip
    assert {word: kinds(word) for word in expected} == {word: {kind} for word, kind in expected.items()}


def test_tokens_are_in_order_and_do_not_overlap() -> None:
    tokens = semantic_tokens(Document("m.arch", TEXT))
    assert all(first.span.end <= second.span.start for first, second in pairwise(tokens))


def test_definitions_and_names_of_the_library_are_marked() -> None:
    tokens = semantic_tokens(Document("m.arch", TEXT))
    (h, *_) = (token for token in tokens if token.span.text == "h")
    (embed,) = (token for token in tokens if token.span.text == "embed")
    assert (h.is_declaration, h.is_of_library) == (True, False)
    assert (embed.is_declaration, embed.is_of_library) == (False, True)


def test_a_half_written_line_keeps_its_colours() -> None:
    document = Document("m.arch", TEXT.replace("embed[d](x)", "embed[d]("))
    words = {token.span.text: token.kind for token in semantic_tokens(document)}
    assert words["attention"] == "function"
    assert words["repeat"] == "keyword"
