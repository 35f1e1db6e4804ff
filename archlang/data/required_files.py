"""Which published files have to be fetched before given members of data sets can be read."""

from __future__ import annotations

from collections.abc import Iterable

from archlang.data import mistakes, store
from archlang.data.registry import DATASETS, Dataset, OfficialFile, official


def dataset(name: str) -> Dataset:
    """A published data set.

    Raises:
        DataError: there is none of this name."""
    if name not in DATASETS:
        raise mistakes.unknown_dataset(name, sorted(DATASETS))
    return DATASETS[name]


def files(name: str, members: Iterable[str] = ()) -> tuple[OfficialFile, ...]:
    """The files of a data set, all of them or those that hold these members, each once.

    Raises:
        DataError: there is no such data set or member."""
    known = dataset(name)
    members = tuple(members)
    if not members:
        return known.files
    found: dict[str, OfficialFile] = {}
    for member in members:
        file = known.file(member) or known.archive_of(member)
        if file is None:
            raise mistakes.unknown_member(name, member, [one.member for one in known.files])
        found[file.member] = file
    return tuple(found.values())


def absent(reads: Iterable[tuple[str, str]]) -> tuple[OfficialFile, ...]:
    """The published files that are not at hand, of those that hold the given members, each once. Members that nobody
    has published are left out: they cannot be fetched."""
    found: dict[tuple[str, str], OfficialFile] = {}
    for name, member in reads:
        if store.find(name, member) is not None or name not in DATASETS:
            continue
        file = official(name, member) or DATASETS[name].archive_of(member)
        if file is not None:
            found[file.dataset, file.member] = file
    return tuple(found.values())
