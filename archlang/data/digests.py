"""Digests of files: sha256, and the id that git gives to the content of a file."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from enum import Enum
from typing import BinaryIO

_CHUNK = 1 << 20


class DigestRule(Enum):
    """How a digest is computed. For some files on GitHub only the git id is published."""

    SHA256 = "sha256"
    GITBLOB = "gitblob"


_LENGTHS = {DigestRule.SHA256: 64, DigestRule.GITBLOB: 40}


@dataclass(frozen=True)
class Digest:
    """A digest, written `sha256:…` or `gitblob:…`.

    >>> import io
    >>> str(take(DigestRule.GITBLOB, io.BytesIO(b"what\\n"), 5))
    'gitblob:f510eb21780143dc3ad1f6c0d033f05e623885b4'
    >>> Digest.parse("gitblob:f510eb21780143dc3ad1f6c0d033f05e623885b4").rule
    <DigestRule.GITBLOB: 'gitblob'>
    """

    rule: DigestRule
    value: str

    @staticmethod
    def parse(text: str) -> Digest:
        """Parses a digest.

        Raises:
            ValueError: the text is not a digest."""
        word, _, value = text.partition(":")
        rule = DigestRule(word)
        if not re.fullmatch(f"[0-9a-f]{{{_LENGTHS[rule]}}}", value):
            raise ValueError(f"{value!r} is not a {word} digest")
        return Digest(rule, value)

    def __str__(self) -> str:
        return f"{self.rule.value}:{self.value}"


def take(rule: DigestRule, stream: BinaryIO, size: int) -> Digest:
    """Returns the digest of the rest of a stream. `size` is its number of bytes, which git ids include."""
    hasher = hashlib.sha256() if rule is DigestRule.SHA256 else hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    while chunk := stream.read(_CHUNK):
        hasher.update(chunk)
    return Digest(rule, hasher.hexdigest())
