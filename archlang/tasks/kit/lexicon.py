"""Lexicons: the words of a task, each with its token."""

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
    """The words of a vocabulary by token. Other words become the token `unknown`, if there is one."""

    texts: tuple[str, ...]
    unknown: int | None = None

    @cached_property
    def ids(self) -> Mapping[str, int]:
        return {text: token for token, text in enumerate(self.texts)}

    def __len__(self) -> int:
        return len(self.texts)

    def encode(self, texts: Iterable[Words]) -> Ragged:
        """Returns texts as tokens.

        Raises:
            KeyError: a word is not in the lexicon, and there is no token for unknown words."""
        texts = list(texts)
        ids, unknown = self.ids, self.unknown
        words = (word for text in texts for word in text)
        lengths = np.fromiter((len(text) for text in texts), dtype=np.int64, count=len(texts))
        tokens = (ids[word] for word in words) if unknown is None else (ids.get(word, unknown) for word in words)
        dtype = np.uint8 if len(self) <= 1 << 8 else np.int32
        return Ragged(np.fromiter(tokens, dtype=dtype, count=int(lengths.sum())), offsets_of(lengths))


def alphabetical(texts: Iterable[Words]) -> tuple[str, ...]:
    """Returns every word of the texts once, in alphabetical order."""
    return tuple(sorted({word for text in texts for word in text}))


def most_frequent(texts: Iterable[Words], most: int) -> tuple[str, ...]:
    """Returns at most `most` of the most frequent words of the texts. Equally frequent words are in alphabetical
    order."""
    counts = Counter(word for text in texts for word in text)
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return tuple(word for word, _ in ordered[:most])


def filled(texts: Sequence[str], size: int) -> tuple[str, ...]:
    """Returns the texts padded with unused tokens to `size`, because a signature states the size of a vocabulary before
    its words are known."""
    return (*texts, *(f"{UNUSED}{index}" for index in range(size - len(texts))))
