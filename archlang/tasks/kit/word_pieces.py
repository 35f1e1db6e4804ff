"""The word pieces of a pretrained model, from its `tokenizer.json` and the package `tokenizers`.

No message quotes the content of the file: its path may come from somebody else's run folder."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from archlang.diagnostics.machine import needs_extra
from archlang.files.readable import read_named
from archlang.tasks.kit import mistakes

if TYPE_CHECKING:
    from tokenizers import Tokenizer

# The special tokens of BERT.
UNKNOWN, BEGIN, SEPARATOR = "[UNK]", "[CLS]", "[SEP]"
_LARGEST = 64 << 20


class WordPieces:
    """Cuts texts into the pieces of the tokenizer in a file.

    Raises:
        TaskError: the file is missing or describes no tokenizer with BERT's special tokens, or the package is not
            installed."""

    def __init__(self, task: str, path: str) -> None:
        try:
            content = read_named(path, _LARGEST)
        except OSError:
            raise mistakes.no_file(task, path) from None
        self._tokenizer = _tokenizer(path, content)
        for special in (UNKNOWN, BEGIN, SEPARATOR):
            if self._tokenizer.token_to_id(special) is None:
                raise mistakes.no_tokenizer(path, f"it has no token {special}")

    @property
    def texts(self) -> tuple[str, ...]:
        """The text of each piece, by token."""
        tokens = self._tokenizer.get_vocab(with_added_tokens=True)
        return tuple(sorted(tokens, key=tokens.__getitem__))

    def cut(self, text: str) -> tuple[list[str], list[tuple[int, int]]]:
        """Returns the pieces of a text, and the characters where each begins and stops."""
        encoding = self._tokenizer.encode(text, add_special_tokens=False)
        return encoding.tokens, encoding.offsets


@lru_cache(maxsize=2)
def _tokenizer(path: str, content: bytes) -> Tokenizer:
    with needs_extra("bert"):
        from tokenizers import Tokenizer
    try:
        tokenizer = Tokenizer.from_str(content.decode())
    except Exception as error:  # tokenizers has no class of its own for errors
        raise mistakes.no_tokenizer(path, "tokenizers cannot read it") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True  # `[SEP]` in a paragraph is text
    return tokenizer
