"""Tokenizers in files of the form of Hugging Face, `tokenizer.json`.

No message quotes a file, because its path may come from somebody else's run folder."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from archlang.disk.readable import read_named
from archlang.errors.machine import needs_extra
from archlang.tasks.kit import mistakes
from archlang.tasks.kit.lexicon import UNUSED, TokenCut

if TYPE_CHECKING:
    from tokenizers import Tokenizer

LARGEST = 64 << 20


def load_tokenizer(task: str, path: str) -> Tokenizer:
    """Returns the tokenizer in a file.

    Raises:
        TaskError: the file is missing or describes no tokenizer.
        MachineError: the package is not installed."""
    try:
        return _parsed(task, path, read_named(path, LARGEST))
    except OSError:
        raise mistakes.no_file(path, task) from None


def token_cut(task: str, path: str) -> TokenCut:
    """Returns how the tokenizer in a file cuts texts; raises as `load_tokenizer` does."""
    tokenizer = load_tokenizer(task, path)

    def encode(text: str) -> np.ndarray:
        return np.array(tokenizer.encode(text, add_special_tokens=False).ids, np.int32)

    def decode(words: Sequence[str]) -> str:
        ids = (tokenizer.token_to_id(word) for word in words)
        return str(tokenizer.decode([token for token in ids if token is not None], skip_special_tokens=False))

    return TokenCut(hashlib.sha256(tokenizer.to_str().encode()).hexdigest(), texts_of(tokenizer), encode, decode)


def texts_of(tokenizer: Tokenizer) -> tuple[str, ...]:
    """Returns the text of each token."""
    texts = {token: text for text, token in tokenizer.get_vocab(with_added_tokens=True).items()}
    return tuple(texts.get(token, f"{UNUSED}{token}") for token in range(max(texts, default=-1) + 1))


@lru_cache(maxsize=2)
def _parsed(task: str, path: str, content: bytes) -> Tokenizer:
    with needs_extra("tokenizers"):
        from tokenizers import Tokenizer
    try:
        tokenizer = Tokenizer.from_str(content.decode())
    except Exception as error:  # tokenizers has no class of its own for errors
        raise mistakes.no_tokenizer(path, task, "the package tokenizers cannot read it") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True  # `[SEP]` in a text is text
    return tokenizer
