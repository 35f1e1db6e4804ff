"""Tokenizers of the form of Hugging Face: from a file `tokenizer.json`, or trained here.

No message quotes a file, because its path may come from somebody else's run folder."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from archlang.disk.readable import read_named
from archlang.errors.machine import needs_extra
from archlang.tasks.kit import mistakes
from archlang.tasks.kit.lexicon import UNUSED, TokenCut

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_LARGEST = 64 << 20
# The pieces of a text that are cut into tokens one by one: words, numbers and signs with a space before, and other
# space. Letters are those of ASCII and all that follows it, so that Python and the package find the same pieces.
_PIECE = (
    r" ?[A-Za-z\u0080-\U0010ffff]+| ?[0-9]+| ?[!-/:-@\[-`{-~]+"
    r"|[\x00-\x20\x7f]+(?![!-~\u0080-\U0010ffff])|[\x00-\x20\x7f]+"
)
_PIECES_OF_PACKAGE = _PIECE.replace(r"\u0080", r"\x{80}").replace(r"\U0010ffff", r"\x{10ffff}")
# The pieces whose tokens are kept.
_KEPT = 1 << 18


def load_tokenizer(task: str, path: str) -> Tokenizer:
    """Returns the tokenizer in a file.

    Raises:
        TaskError: the file is missing or describes no tokenizer.
        MachineError: the package is not installed."""
    try:
        return _parsed(task, path, read_named(path, _LARGEST).decode(errors="replace"))
    except OSError:
        raise mistakes.no_file(path, task) from None


def token_cut(task: str, content: str, is_own: bool = False) -> TokenCut:
    """Returns how a tokenizer in JSON cuts texts. One of `trained_tokenizer` is faster if it is said to be `own`."""
    tokenizer = _parsed(task, "the recorded tokenizer", content)

    def tokens(text: str) -> Sequence[int]:
        ids: Sequence[int] = tokenizer.encode_batch_fast([text], add_special_tokens=False)[0].ids
        return ids

    tokens_of_piece = lru_cache(_KEPT)(tokens)
    pieces = re.compile(_PIECE).findall

    def encode(text: str) -> np.ndarray:
        text = text.encode(errors="replace").decode()  # the package reads no lone surrogates
        ids = chain.from_iterable(map(tokens_of_piece, pieces(text))) if is_own else tokens(text)
        return np.fromiter(ids, np.int32)

    def decode(words: Sequence[str]) -> str:
        ids = (tokenizer.token_to_id(word) for word in words)
        return str(tokenizer.decode([token for token in ids if token is not None], skip_special_tokens=False))

    return TokenCut(hashlib.sha256(content.encode()).hexdigest(), texts_of(tokenizer), encode, decode)


def trained_tokenizer(texts: Iterable[str], size: int) -> str:
    """Returns as JSON a byte-pair encoding of bytes with at most `size` tokens, which is trained on texts. Equal texts
    give an equal one."""
    with needs_extra("tokenizers"):
        from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    tokenizer = Tokenizer(models.BPE())
    in_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(Regex(_PIECES_OF_PACKAGE), "isolated"), in_bytes]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=size, show_progress=False, initial_alphabet=in_bytes.alphabet())
    tokenizer.train_from_iterator(texts, trainer)
    return str(tokenizer.to_str())


def texts_of(tokenizer: Tokenizer) -> tuple[str, ...]:
    """Returns the text of each token."""
    texts = {token: text for text, token in tokenizer.get_vocab(with_added_tokens=True).items()}
    return tuple(texts.get(token, f"{UNUSED}{token}") for token in range(max(texts, default=-1) + 1))


@lru_cache(maxsize=2)
def _parsed(task: str, path: str, content: str) -> Tokenizer:
    with needs_extra("tokenizers"):
        from tokenizers import Tokenizer
    try:
        tokenizer = Tokenizer.from_str(content)
    except Exception as error:  # tokenizers has no class of its own for errors
        raise mistakes.no_tokenizer(path, task, "the package tokenizers cannot read it") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True  # `[SEP]` in a text is text
    return tokenizer
