"""Lexicons: the words of a task, each with its token."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from archlang.tasks.kit.ragged import Ragged, offsets_of

Words = Sequence[str]

END, BEGIN, UNKNOWN, UNUSED = "[E]", "[B]", "<unk>", "<unused>"


@dataclass(frozen=True)
class Lexicon:
    """The words by their numbers. Words that are not in it are `unknown`, if that is one of them."""

    texts: tuple[str, ...]
    unknown: int | None = None

    @cached_property
    def ids(self) -> Mapping[str, int]:
        return {text: number for number, text in enumerate(self.texts)}

    def __len__(self) -> int:
        return len(self.texts)

    def encode(self, rows: Iterable[Words]) -> Ragged:
        """Rows of words as numbers.

        Raises:
            KeyError: a word has no number, and there is none for unknown words."""
        rows = list(rows)
        ids, unknown = self.ids, self.unknown
        flat = (word for row in rows for word in row)
        lengths = np.fromiter((len(row) for row in rows), dtype=np.int64, count=len(rows))
        numbers = (ids[word] for word in flat) if unknown is None else (ids.get(word, unknown) for word in flat)
        kind = np.uint8 if len(self) <= 1 << 8 else np.int32
        return Ragged(np.fromiter(numbers, dtype=kind, count=int(lengths.sum())), offsets_of(lengths))


def alphabetical(rows: Iterable[Words]) -> tuple[str, ...]:
    """Every word once, in the order of their letters."""
    return tuple(sorted({word for row in rows for word in row}))


def most_frequent(rows: Iterable[Words], most: int) -> tuple[str, ...]:
    """The most frequent words, at most so many, those that are equally frequent in the order of their letters."""
    counts = Counter(word for row in rows for word in row)
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return tuple(word for word, _ in ordered[:most])


def filled(texts: Sequence[str], size: int) -> tuple[str, ...]:
    """The texts and as many that stand for nothing as `size` has room for: a vocabulary whose size is told before its
    words are known."""
    return (*texts, *(f"{UNUSED}{number}" for number in range(size - len(texts))))
