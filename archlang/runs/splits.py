"""The splits of a task, for a run and for its folder."""

import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext

import numpy as np

from archlang.diagnostics.terminal import Terminal
from archlang.record.run_folder import RecordWarning
from archlang.record.schemas import DataRecord, SplitRecord
from archlang.tasks.kit import cache
from archlang.tasks.kit.split import Split, digest
from archlang.tasks.kit.task import Task
from archlang.types.statics import StaticValue


def load_splits(
    name: str, statics: Mapping[str, StaticValue], task: Task, splits: Iterable[str], console: Terminal | None
) -> dict[str, Split]:
    """Returns splits of the task `name`. They are generated once and then read from the cache."""
    with console.working(f"preparing the data of {name}") if console is not None else nullcontext():
        return {split: cache.load(name, statics, task, split, cache.DATA_SEED) for split in splits}


def warn_of_shared_rows(splits: Mapping[str, Split]) -> None:
    """Warns if rows of other splits are also in `train`, as the model reads them."""
    trained = set(_hashes(splits["train"])) if len(splits) > 1 else set()
    for name, split in splits.items():
        shared = sum(row in trained for row in _hashes(split)) if name != "train" else 0
        if shared:
            message = f"the model reads {shared:,} of the {len(split):,} rows of {name} in train too"
            warnings.warn(message, RecordWarning, stacklevel=3)


def _hashes(split: Split) -> Iterator[int]:
    for index in range(len(split)):
        yield hash(tuple(field[index].tobytes() for field in split.inputs.values()))


def describe_data(splits: Mapping[str, Split]) -> DataRecord:
    """Returns what a run folder holds about its splits."""
    return DataRecord({name: describe_split(split) for name, split in splits.items()})


def describe_split(split: Split) -> SplitRecord:
    """Returns what a run folder holds about a split: enough to notice that it has changed."""
    groups = {name: np.unique(values).tolist() for name, values in split.groups.items()}
    return SplitRecord(items=len(split), groups=groups, sha256=digest(split))
