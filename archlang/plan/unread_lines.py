"""Which lines of a recipe or a table the texts that could not be read may be."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from archlang.diagnostics.names import did_you_mean
from archlang.syntax.tree import Missing, Recipe, Table
from archlang.syntax.words import RECIPE_WORDS, TABLE_WORDS


def unread_words(item: Recipe | Table) -> frozenset[str]:
    """Returns the words with which the lines of an item may begin that could not be read."""
    words = RECIPE_WORDS if isinstance(item, Recipe) else TABLE_WORDS
    return frozenset(word for first in set(_first_words(item)) for word in _meant(first, words))


def _first_words(item: Recipe | Table) -> Iterator[str]:
    """Yields the first words of the lines that could not be read. A text that begins with a comma is the rest of the
    line before it."""
    for before, part in pairwise((None, *item.parts)):
        if isinstance(part, Missing) and part.first_word:
            is_rest = part.first_word.startswith(",") and before is not None
            yield before.span.text.split(maxsplit=1)[0] if is_rest and before is not None else part.first_word


def _meant(first: str, words: Sequence[str]) -> Iterable[str]:
    """Returns the words that a word begins or misspells; all if it does neither."""
    if first in words:
        return (first,)
    near = did_you_mean(first, words)
    return [word for word in words if word.startswith(first)] or (words if near is None else (near,))
