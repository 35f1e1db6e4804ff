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
from array import array
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, BinaryIO

import numpy as np

from archlang.data import store
from archlang.diagnostics.machine import needs_extra
from archlang.tasks.kit import mistakes
from archlang.tasks.kit.lexicon import BEGIN, END, Words, filled
from archlang.tasks.kit.ragged import Integers, Ragged, offsets_of
from archlang.tasks.kit.split import Split
from archlang.tasks.kit.task import PairTask

DATA = "dataset.json"
FILES = {"mcd1": "mcd1", "mcd2": "mcd2", "mcd3": "mcd3", "length": "query_complexity_split", "random": "random_split"}
INDICES = {"train": "trainIdxs", "valid": "devIdxs", "test": "testIdxs"}
QUESTION, QUERY = "questionPatternModEntities", "sparqlPatternModEntities"
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


class _TextArrays:
    """Texts collected as arrays of numbers, where words are numbered in the order of their first occurrence."""

    def __init__(self, numbers: dict[str, int]) -> None:
        self._numbers = numbers
        self._values, self._lengths = array("i"), array("i")

    def add(self, words: Words) -> None:
        self._values.extend(self._numbers.setdefault(word, len(self._numbers)) for word in words)
        self._lengths.append(len(words))

    def ragged(self, order: Integers) -> Ragged:
        """Returns all texts as tokens, where `order` maps the numbers of words to tokens."""
        lengths = np.frombuffer(self._lengths, dtype=np.int32).astype(np.int64)
        return Ragged(order[np.frombuffer(self._values, dtype=np.int32)].astype(np.int32), offsets_of(lengths))


def collect(items: Iterable[Mapping[str, object]]) -> tuple[Ragged, Ragged, tuple[str, ...]]:
    """Returns the questions and queries of all items, and their words in alphabetical order. Peak memory is little more
    than the result.

    Raises:
        KeyError: an item has no question or no query."""
    numbers: dict[str, int] = {}
    sources, targets = _TextArrays(numbers), _TextArrays(numbers)
    for item in items:
        sources.add(question(str(item[QUESTION])))
        targets.add(query(str(item[QUERY])))
    words = tuple(sorted(numbers))
    order = np.empty(max(len(words), 1), dtype=np.int64)
    order[[numbers[word] for word in words]] = np.arange(len(words))
    return sources.ragged(order), targets.ragged(order), words


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
            except (JsonArrayError, KeyError) as error:
                raise mistakes.damaged_file(DATA, "cfq", error) from error
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


# The objects of a JSON array that is too large for memory, parsed by ijson


_CHUNK = 1 << 16
# Larger than any object of a published data set. The bound keeps a damaged file from filling the memory.
_LARGEST = 1 << 26


class JsonArrayError(ValueError):
    """A file that does not hold an array of objects, or ends within it."""


def objects(stream: BinaryIO, chunk: int = _CHUNK, largest: int = _LARGEST) -> Iterator[dict[str, Any]]:
    """Yields the objects of the array in a stream of UTF-8, which is read in chunks of `chunk` bytes.

    Any: JSON.

    Raises:
        JsonArrayError: the stream holds something else, or an object of more than about `largest` bytes."""
    with needs_extra("data"):
        import ijson

    source = _Source(stream, largest)
    try:
        for item in ijson.items(source, "item", use_float=True, buf_size=chunk):
            if not isinstance(item, dict):
                raise JsonArrayError(f"expected an object in the array, found {str(item)[:20]!r}")
            source.unfinished = 0
            yield item
    except ijson.JSONError as error:
        reason = error.args[0].decode("utf-8", "replace") if isinstance(error.args[0], bytes) else str(error)
        raise JsonArrayError(reason.partition("\n")[0]) from error


class _Source:
    """A stream that checks that an array begins, and how many bytes have been read since the last whole object."""

    def __init__(self, stream: BinaryIO, largest: int) -> None:
        self._stream = stream
        self._largest = largest
        self._begun = False
        self.unfinished = 0

    def read(self, size: int) -> bytes:
        if self.unfinished > self._largest:
            raise JsonArrayError(f"an object is longer than {self._largest} bytes, or never ends")
        data = self._stream.read(size)
        self.unfinished += len(data)
        if not self._begun and (start := data.lstrip(b" \t\r\n")):
            self._begun = True
            if not start.startswith(b"["):
                raise JsonArrayError(f"expected `[`, found {start[:20].decode('utf-8', 'replace')!r}")
        return data
