"""The splits of a task, for a run and for its folder."""

from collections.abc import Iterable, Mapping
from contextlib import nullcontext

import numpy as np

from archlang.diagnostics.terminal import Terminal
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


def describe_data(splits: Mapping[str, Split]) -> DataRecord:
    """Returns what a run folder holds about its splits."""
    return DataRecord({name: describe_split(split) for name, split in splits.items()})


def describe_split(split: Split) -> SplitRecord:
    """Returns what a run folder holds about a split: enough to notice that it has changed."""
    groups = {name: np.unique(values).tolist() for name, values in split.groups.items()}
    return SplitRecord(items=len(split), groups=groups, sha256=digest(split))
