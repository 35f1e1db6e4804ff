"""Lexicons: the words of a task, each with its token, and how texts are cut into them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from archlang.tasks.kit.split import Ragged, offsets_of

Words = Sequence[str]

END, BEGIN, UNKNOWN, UNUSED = "[E]", "[B]", "<unk>", "<unused>"
# Of a field: the tokens at which every item begins and ends.
ENCLOSED, BEGUN = (BEGIN, END), (BEGIN, None)
_WORD = re.compile(r"\w+|[^\w\s]")


def split_words(text: str) -> tuple[str, ...]:
    """Returns the words of a text, which are separated by white space."""
    return tuple(text.split())


def split_sentence(text: str) -> tuple[str, ...]:
    """Returns the words and punctuation marks of a sentence in lower case."""
    return tuple(_WORD.findall(text.lower()))


def split_bytes(text: str) -> tuple[str, ...]:
    """Returns the texts of the bytes of a text in UTF-8, which are all in `BYTES`."""
    return tuple(map(BYTES.__getitem__, text.encode(errors="surrogatepass")))


# The last three bytes are never in UTF-8.
BYTES = tuple(chr(byte) if byte < 128 else f"<0x{byte:02X}>" for byte in range(253))
Cut = Callable[[str], tuple[str, ...]]
CUTS: Mapping[str, Cut] = {
    "words": split_words, "characters": tuple, "sentence": split_sentence, "bytes": split_bytes,
}  # fmt: skip


@dataclass(frozen=True)
class TokenCut:
    """Cuts a text into tokens, whose `texts` are known before: `encode` returns their indices [n]; `decode` returns the
    text of tokens from their texts."""

    name: str
    texts: tuple[str, ...]
    encode: Callable[[str], np.ndarray]
    decode: Callable[[Sequence[str]], str]

    def __call__(self, text: str) -> Any:  # Any: an array in place of words
        return self.encode(text)


_BYTE_OF = {text: bytes([byte]) for byte, text in enumerate(BYTES)}
BYTE_CUT = TokenCut(
    "bytes", BYTES, lambda text: np.frombuffer(text.encode(errors="surrogatepass"), np.uint8),
    lambda words: b"".join(_BYTE_OF.get(word, b"") for word in words).decode(errors="replace"),
)  # fmt: skip


@dataclass(frozen=True)
class Lexicon:
    """The words of a vocabulary by token. Other words become the token `unknown`, if there is one.

    Only the first `known` texts are words of a text; the others are marks. None: all of them. `also` are further
    spellings of words. `cut` is one of `CUTS`, unless the `tokenizer`, in JSON, cuts the texts."""

    texts: tuple[str, ...]
    unknown: int | None = None
    known: int | None = None
    also: Mapping[str, str] = field(default_factory=dict)
    cut: str = "words"
    tokenizer: str = ""

    @cached_property
    def ids(self) -> Mapping[str, int]:
        ids = {text: token for token, text in enumerate(self.texts[: self.known])}
        return ids | {spelling: ids[text] for spelling, text in self.also.items() if text in ids}

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def dtype(self) -> npt.DTypeLike:
        """The type of its tokens."""
        return np.uint8 if len(self) <= 1 << 8 else np.int32

    def encode(self, texts: Iterable[Words]) -> Ragged:
        """Returns texts as tokens.

        Raises:
            KeyError: a word is not in the lexicon, and there is no token for unknown words."""
        texts = list(texts)
        ids, unknown = self.ids, self.unknown
        words = (word for text in texts for word in text)
        lengths = np.fromiter((len(text) for text in texts), dtype=np.int64, count=len(texts))
        tokens = (ids[word] for word in words) if unknown is None else (ids.get(word, unknown) for word in words)
        return Ragged(np.fromiter(tokens, dtype=self.dtype, count=int(lengths.sum())), offsets_of(lengths))


class Numbers(dict[str, int]):
    """The number of each word of some texts, in the order of their first occurrence."""

    def __missing__(self, word: str) -> int:
        self[word] = number = len(self)
        return number

    @staticmethod
    def of(words: Iterable[str]) -> Numbers:
        """Returns the numbers of words in their order."""
        return Numbers({word: number for number, word in enumerate(words)})

    def encode(self, texts: Sequence[Words]) -> Ragged:
        """Returns texts as numbers of words; new words get the next numbers. What a `TokenCut` cuts has numbers."""
        if isinstance(texts[0], np.ndarray):
            return Ragged.of_rows(texts)
        offsets = offsets_of(np.array([len(words) for words in texts], dtype=np.int64))
        return Ragged(np.fromiter(map(self.__getitem__, chain.from_iterable(texts)), np.int32, offsets[-1]), offsets)


def most_frequent(counts: Mapping[str, int], most: int) -> tuple[str, ...]:
    """Returns at most `most` of the most frequent words. Equally frequent words are in alphabetical order."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return tuple(word for word, _ in ordered[:most])


def filled(texts: Sequence[str], size: int) -> tuple[str, ...]:
    """Returns the texts padded with unused tokens to `size`, because a signature states the size of a vocabulary before
    its words are known."""
    return (*texts, *(f"{UNUSED}{index}" for index in range(size - len(texts))))
