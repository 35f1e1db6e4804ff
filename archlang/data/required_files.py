"""The published files that must be fetched before members of data sets can be read."""

from collections.abc import Iterable

from archlang.data import mistakes, store
from archlang.data.registry import DATASETS, Dataset, OfficialFile, official


def dataset(name: str) -> Dataset:
    """Returns a published data set.

    Raises:
        DataError: there is no data set of this name."""
    if name not in DATASETS:
        raise mistakes.unknown_dataset(name, sorted(DATASETS))
    return DATASETS[name]


def files(name: str, members: Iterable[str] = ()) -> tuple[OfficialFile, ...]:
    """Returns the files of a data set: all of them, or those that contain these members, each once.

    Raises:
        DataError: there is no such data set or member."""
    published = dataset(name)
    members = tuple(members)
    if not members:
        return published.files
    required: dict[str, OfficialFile] = {}
    for member in members:
        file = published.file(member) or published.archive_of(member)
        if file is None:
            raise mistakes.unknown_member(name, member, [file.member for file in published.files])
        required[file.member] = file
    return tuple(required.values())


def absent(reads: Iterable[tuple[str, str]]) -> tuple[OfficialFile, ...]:
    """Returns the missing published files that contain these members, each once. Skips members of unpublished data
    sets, which cannot be fetched."""
    missing: dict[tuple[str, str], OfficialFile] = {}
    for name, member in reads:
        if store.find(name, member) is not None or name not in DATASETS:
            continue
        file = official(name, member) or DATASETS[name].archive_of(member)
        if file is not None:
            missing[file.dataset, file.member] = file
    return tuple(missing.values())
