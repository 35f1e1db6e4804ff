"""Tasks of words: the words that have a number each, and pairs of rows of words as items to translate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from archlang.tasks.kit.base import Integers, Ragged, Split, append, enclose, offsets_of, shift
from archlang.tasks.kit.mistakes import TaskError

Row = Sequence[str]

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

    def encode(self, rows: Iterable[Row]) -> Ragged:
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


def alphabetical(rows: Iterable[Row]) -> tuple[str, ...]:
    """Every word once, in the order of their letters."""
    return tuple(sorted({word for row in rows for word in row}))


def most_frequent(rows: Iterable[Row], most: int) -> tuple[str, ...]:
    """The most frequent words, at most so many, those that are equally frequent in the order of their letters."""
    counts = Counter(word for row in rows for word in row)
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return tuple(word for word, _ in ordered[:most])


def filled(texts: Sequence[str], size: int) -> tuple[str, ...]:
    """The texts and as many that stand for nothing as `size` has room for: a vocabulary whose size is told before its
    words are known."""
    return (*texts, *(f"{UNUSED}{number}" for number in range(size - len(texts))))


@dataclass(frozen=True, eq=False)
class Pairs:
    """Rows of words with their translations, as numbers, and the groups that they belong to."""

    source: Ragged
    target: Ragged
    groups: Mapping[str, Integers] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.source)

    def select(self, chosen: np.ndarray) -> Pairs:
        groups = {name: values[chosen] for name, values in self.groups.items()}
        return Pairs(self.source.select(chosen), self.target.select(chosen), groups)

    def split(self, begin: int, end: int, source_begin: int | None = None, source_end: int | None = None) -> Split:
        """As items: `source` is `[B] words [E]`, `target` what a decoder has seen, and `words [E]` is asked for. A
        source with a vocabulary of its own has its own signs."""
        targets = append(self.target, end)
        source = enclose(
            self.source,
            begin=begin if source_begin is None else source_begin,
            end=end if source_end is None else source_end,
        )
        fields = {"source": source, "target": shift(targets, begin)}
        return Split(fields, targets, groups=dict(self.groups))


def other_vocabulary(task: str, found: int, published: int) -> TaskError:
    return TaskError(
        f"the files of {task} hold {found} different words, and those that were published hold {published}",
        "fetch the files again; other files of the same form can be read by the task `file`",
    )
