"""Digests of files: sha256, and the id that git gives to what a file holds."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from enum import Enum
from typing import BinaryIO

_CHUNK = 1 << 20


class Rule(Enum):
    """How a digest is taken. Of some files on GitHub nothing is published but their git ids."""

    SHA256 = "sha256"
    GITBLOB = "gitblob"


_LENGTHS = {Rule.SHA256: 64, Rule.GITBLOB: 40}


@dataclass(frozen=True)
class Digest:
    """A digest, written `sha256:…` or `gitblob:…`.

    >>> import io
    >>> str(take(Rule.GITBLOB, io.BytesIO(b"what\\n"), 5))
    'gitblob:f510eb21780143dc3ad1f6c0d033f05e623885b4'
    >>> Digest.parse("gitblob:f510eb21780143dc3ad1f6c0d033f05e623885b4").rule
    <Rule.GITBLOB: 'gitblob'>
    """

    rule: Rule
    value: str

    @staticmethod
    def parse(text: str) -> Digest:
        """A written digest.

        Raises:
            ValueError: it is none."""
        word, _, value = text.partition(":")
        rule = Rule(word)
        if not re.fullmatch(f"[0-9a-f]{{{_LENGTHS[rule]}}}", value):
            raise ValueError(f"{value!r} is no {word}")
        return Digest(rule, value)

    def __str__(self) -> str:
        return f"{self.rule.value}:{self.value}"


def take(rule: Rule, stream: BinaryIO, size: int) -> Digest:
    """The digest of what is left in a stream, which are `size` bytes: git counts them first."""
    whole = hashlib.sha256() if rule is Rule.SHA256 else hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
    while chunk := stream.read(_CHUNK):
        whole.update(chunk)
    return Digest(rule, whole.hexdigest())
