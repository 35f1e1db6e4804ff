"""The registry of published data sets: their files, URLs and digests.

`datasets.tsv` lists the data sets, with the members that their archives hold as `inside=member`, and `official.tsv` the
files. A digest is that of the content: for a file that is published compressed, such as `train.en.gz`, the digest of
`train.en`; for an archive, the digest of the archive."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from pathlib import Path
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


@dataclass(frozen=True)
class OfficialFile:
    """A published file. `member` is its name in the folder of its data set; `size`, in bytes, and `digest` are None if
    they are not published."""

    dataset: str
    member: str
    url: str
    digest: Digest | None
    size: int | None
    licence: str

    @property
    def stored(self) -> str:
        """The file name of the download: compressed, if it is published compressed."""
        end = self.url.rpartition("/")[2]
        packing = Path(end).suffix if end == f"{Path(self.member).name}{Path(end).suffix}" else ""
        return f"{self.member}{packing}"


@dataclass(frozen=True)
class Held:
    """The members of a data set in an archive: files whose names, in any folder, begin with `inside` are members whose
    names begin with `member` instead."""

    inside: str
    member: str


@dataclass(frozen=True)
class Dataset:
    """A published data set. `tasks` are the tasks that read it. `archives` maps its archives to the members in each; an
    archive without members is read as a whole."""

    name: str
    about: str
    tasks: tuple[str, ...]
    base: str
    licence: str
    home: str
    archives: Mapping[str, tuple[Held, ...]]

    @cached_property
    def files(self) -> tuple[OfficialFile, ...]:
        return tuple(
            OfficialFile(
                self.name,
                member,
                f"{self.base}/{path}",
                Digest.parse(digest) if digest else None,
                int(size) if size else None,
                self.licence,
            )
            for dataset, member, size, digest, path in _lines()
            if dataset == self.name
        )

    def file(self, member: str) -> OfficialFile | None:
        """Returns the published file of this name, or None."""
        return next((file for file in self.files if file.member == member), None)

    def archive_of(self, member: str) -> OfficialFile | None:
        """Returns the archive that contains a member; None if it is published as a file, or not at all."""
        for name, holds in self.archives.items():
            if any(member.startswith(held.member) for held in holds) and self.file(member) is None:
                return self.file(name)
        return None

    @property
    def size(self) -> int | None:
        """The total of the known sizes of its files in bytes; None if no size is known."""
        sizes = [file.size for file in self.files if file.size is not None]
        return sum(sizes) if sizes else None


def _lines(name: str = "official.tsv") -> list[list[str]]:
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    return [line.split("\t") for line in text.splitlines()[1:]]


def _dataset(row: Sequence[str]) -> Dataset:
    name, archive, holds, about, tasks, base, licence, home = row
    held = tuple(Held(*pair.split("=")) for pair in holds.split())
    return Dataset(name, about, tuple(tasks.split(",")), base, licence, home, {archive: held} if archive else {})


DATASETS: Mapping[str, Dataset] = {row[0]: _dataset(row) for row in _lines("datasets.tsv")}


def official(dataset: str, member: str) -> OfficialFile | None:
    """Returns a published file by the names of its data set and of the file; None if there is none."""
    published = DATASETS.get(dataset)
    return published.file(member) if published is not None else None
