"""CFQ: translate a question about films into a SPARQL query.

Keysers et al. (2020), preprocessed as in their program and in Csordás et al. (2021): names are `M0`, `M1`, …;
punctuation marks are separate words; prefixes in the query are shortened.

>>> " ".join(question("Who directed M1's prequel?"))
"Who directed M1 ' s prequel ?"
>>> " ".join(query("SELECT count(*) WHERE {\\n?x0 ns:film.editor.film M0 .\\n?x0 ns:people.person.gender ns:m.02z\\n}"))
'SELECT count ( * ) WHERE { ?x0 film.editor.film M0 . ?x0 people.person.gender m_02z }'
"""

import json
import string
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from itertools import islice
from typing import Any, BinaryIO

import numpy as np

from archlang.data import store
from archlang.errors.machine import needs_extra
from archlang.tasks.kit import mistakes
from archlang.tasks.kit.lexicon import BEGIN, END, Numbers, Words, filled
from archlang.tasks.kit.split import Integers, Ragged, Split, join
from archlang.tasks.kit.task import PairTask

DATA = "dataset.json"
FILES = {"mcd1": "mcd1", "mcd2": "mcd2", "mcd3": "mcd3", "length": "query_complexity_split", "random": "random_split"}
INDICES = {"train": "trainIdxs", "valid": "devIdxs", "test": "testIdxs"}
QUESTION, QUERY = "questionPatternModEntities", "sparqlPatternModEntities"
# The items that are read at a time.
_ITEMS = 1 << 10
_SPACED = {mark: f" {mark} " for mark in string.punctuation}
_TABLE = str.maketrans(_SPACED)


def question(text: str) -> Words:
    """Returns the words of a question."""
    return text.translate(_TABLE).split()


def query(text: str) -> Words:
    """Returns the words of a query."""
    return [_shortened(word) for word in text.replace("count(*)", "count ( * )").split()]


def _shortened(word: str) -> str:
    word = word.removeprefix("ns:")
    return f"m_{word[2:]}" if word.startswith("m.") else word


def collect(items: Iterable[Mapping[str, object]]) -> tuple[Ragged, Ragged, tuple[str, ...]]:
    """Returns the questions and queries of all items, and their words in alphabetical order. Peak memory is little more
    than the result.

    Raises:
        KeyError: an item has no question or no query."""
    numbers, sources, targets, remaining = Numbers(), list[Ragged](), list[Ragged](), iter(items)
    while some := list(islice(remaining, _ITEMS)):
        sources.append(numbers.encode([question(str(item[QUESTION])) for item in some]))
        targets.append(numbers.encode([query(str(item[QUERY])) for item in some]))
    words = tuple(sorted(numbers))
    order = np.empty(max(len(words), 1), dtype=np.int32)
    order[[numbers[word] for word in words]] = np.arange(len(words))
    source, target = (Ragged(order[texts.values], texts.offsets) for texts in (join(sources), join(targets)))
    return source, target, words


class Cfq(PairTask):
    split: str
    word_limit: int

    splits = tuple(INDICES)
    breakdown = "length"

    @property
    def in_distribution(self) -> tuple[str, ...]:
        return tuple(INDICES) if self.split == "random" else ("train",)

    @cached_property
    def _all(self) -> tuple[Ragged, Ragged, tuple[str, ...]]:
        with store.open_binary("cfq", DATA) as stream:
            try:
                sources, targets, words = collect(objects(stream))
            except (ValueError, KeyError, TypeError) as error:
                raise mistakes.damaged_file(DATA, "cfq", error) from error
        if not words:
            raise mistakes.damaged_file(DATA, "cfq", "it has no items")
        if len(words) > self.word_limit:
            raise mistakes.vocabulary_too_small("word_limit", self.word_limit, "cfq", len(words))
        return sources, targets, words

    @property
    def vocabulary(self) -> tuple[str, ...]:
        return (*filled(self._all[2], self.word_limit), END, BEGIN)

    def reads(self) -> tuple[tuple[str, str], ...]:
        return (("cfq", DATA), ("cfq", self._member))

    def make(self, split: str, seed: int) -> Split:
        sources, targets, _ = self._all
        indices = self._indices(split)
        if len(indices) and not 0 <= indices.min() <= indices.max() < len(sources):
            raise mistakes.damaged_file(
                self._member, "cfq", f"an index is not below {len(sources)}, the number of items in {DATA}"
            )
        target = targets.select(indices)
        return self.pairs(sources.select(indices), target, {"length": target.lengths // 10 * 10})

    @property
    def _member(self) -> str:
        return f"splits/{FILES[self.split]}.json"

    def _indices(self, split: str) -> Integers:
        with store.open_binary("cfq", self._member) as stream:
            try:
                return np.asarray(json.load(stream)[INDICES[split]], dtype=np.int64).reshape(-1)
            except (ValueError, KeyError, TypeError) as error:
                raise mistakes.damaged_file(self._member, "cfq", error) from error


def objects(stream: BinaryIO) -> Iterator[dict[str, Any]]:
    """Yields the objects of a JSON array that is too large for memory. Any: JSON.

    Raises:
        ValueError: the stream holds something else."""
    with needs_extra("data"):
        import ijson

    try:
        yield from ijson.items(stream, "item", use_float=True)
    except ijson.JSONError as error:
        raise ValueError(str(error).partition("\n")[0]) from error
