"""Which lines of a recipe or a table the texts that could not be read may be."""

from collections.abc import Iterable, Sequence

from archlang.diagnostics.names import did_you_mean
from archlang.syntax.outline import RECIPE_WORDS, TABLE_WORDS
from archlang.syntax.tree import Missing, Recipe, Table


def unread_words(item: Recipe | Table) -> frozenset[str]:
    """Returns the words with which the lines of an item may begin that could not be read."""
    words = RECIPE_WORDS if isinstance(item, Recipe) else TABLE_WORDS
    first_words = {part.first_word for part in item.parts if isinstance(part, Missing) and part.first_word}
    return frozenset(word for first in first_words for word in _meant(first, words))


def _meant(first: str, words: Sequence[str]) -> Iterable[str]:
    """Returns the words that a word begins or misspells; all if it does neither."""
    if first in words:
        return (first,)
    near = did_you_mean(first, words)
    return [word for word in words if word.startswith(first)] or (words if near is None else (near,))
