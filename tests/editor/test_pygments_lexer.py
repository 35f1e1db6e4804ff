"""The Pygments lexer."""

from itertools import accumulate

import pytest
from pygments.token import Comment, Error, Keyword, Name, Number, String, _TokenType

from archlang.editor.highlighting import CONTEXTUAL
from archlang.editor.pygments_lexer import ArchLexer
from archlang.syntax.grammar import spellings
from archlang.syntax.tokens import RESERVED
from tests.editor.parsed_words import shipped_files, words
from tests.syntax.conftest import EVERYTHING

LEXER = ArchLexer(stripnl=False, ensurenl=False)


def places(text: str) -> dict[int, tuple[_TokenType, str]]:
    """Returns the kind and the text of the token at each start, without spaces."""
    tokens = list(LEXER.get_tokens(text))
    starts = accumulate((len(word) for _, word in tokens), initial=0)
    return {start: token for start, token in zip(starts, tokens, strict=False) if token[1].strip()}


def kinds(text: str, word: str) -> list[_TokenType]:
    return [kind for kind, each in places(text).values() if each == word]


def test_the_words_are_those_of_the_grammar() -> None:
    assert {*CONTEXTUAL, *RESERVED} == {word for word in spellings().values() if word.isalpha()}


def test_every_shipped_file_is_coloured_without_an_error_and_without_a_change_of_its_text() -> None:
    files = shipped_files()
    assert len(files) > 100
    for file in files:
        text = file.read_text(encoding="utf-8")
        tokens = list(LEXER.get_tokens(text))
        assert Error not in {kind for kind, _ in tokens}, file
        assert "".join(word for _, word in tokens) == text, file


@pytest.mark.slow
def test_a_word_of_a_shipped_file_is_a_keyword_where_the_parser_reads_it_as_one() -> None:
    for file in shipped_files():
        assert differences(file.read_text(encoding="utf-8")) == [], file


def test_a_word_is_a_keyword_where_the_parser_reads_it_as_one() -> None:
    assert differences(EVERYTHING) == []


def test_one_word_is_a_keyword_or_a_name_by_its_place() -> None:
    assert kinds("block b[causal = true](x: seq[n, d]) -> seq[n, d]\n    causal", "causal") == [Name, Keyword]
    assert kinds('table = 2\ntable t { row "a" table }', "table") == [Name, Keyword, Name.Function]


def test_each_word_has_the_colour_of_its_kind() -> None:
    text = '## All.\n# Not.\nmodel m[d = 8](x: tokens[n]) -> logits[c] { return embed[d](x) }\nuse "a"'
    expected = {
        "## All.": String.Doc, "# Not.": Comment.Single, "model": Keyword, "m": Name.Class, "8": Number,
        "tokens": Keyword.Type, "logits": Keyword.Type, "return": Keyword, "embed": Name.Function, '"a"': String.Double,
    }  # fmt: skip
    assert {word: kinds(text, word) for word in expected} == {word: [kind] for word, kind in expected.items()}


def differences(text: str) -> list[str]:
    tokens = places(text)
    return [
        f"line {text.count(chr(10), 0, start) + 1}: {word}"
        for start, word, is_keyword in words(text)
        if start not in tokens or (tokens[start][0] in Keyword and tokens[start][0] is not Keyword.Type) != is_keyword
    ]
