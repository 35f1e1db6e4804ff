"""Batches of the tasks against a plain `DataLoader` with a collate function that pads."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

from archlang.plan.from_file import bind_task
from archlang.tasks.kit.make_task import make_task
from archlang.tasks.kit.split import Split
from archlang.train.data import DeviceSplit, Sampler
from benchmarks.measure import BATCHES, Case, Group, Setting, Sides

COUNT = 50  # batches a call
# The task as a recipe writes it, and the batch size in samples.
TASKS = {
    "table lookup": ("ctl", 512),
    "ListOps": ("listops[source = original, pool = 5_000, iid_size = 100, valid_size = 100, test_size = 1]", 32),
    "flip-flop": ("flipflop[train_size = 5_000, iid_size = 100, valid_size = 100, test_size = 100]", 16),
    "SCAN": ("scan[split = length, cutoff = 26, joint = false]", 256),
}
SMALL = {
    "table lookup": ("ctl[train = 1..2, valid = 3..3, test = 4..4, train_size = 600, iid_size = 4, reserved = 0]", 16),
    "SCAN": ("scan[split = length, cutoff = 3, joint = false]", 16),
}


def split_of(task: str) -> Split:
    chosen = bind_task(task)
    return make_task(chosen.name, chosen.python, chosen.statics).generate("train", seed=0)


def ours(split: Split, size: int, device: torch.device) -> Iterator[tuple[Tensor, ...]]:
    """Yields batches forever: fields, their lengths, and targets."""
    data = DeviceSplit(split, device)
    sampler = Sampler(np.asarray(data.lengths), size, seed=0, drop_last=True)
    while True:
        batch = data.batch(sampler.next())
        yield *batch.fields.values(), *batch.lengths.values(), batch.targets


def theirs(split: Split, size: int, device: torch.device) -> Iterator[tuple[Tensor, ...]]:
    """Yields the same batches from a loader over items; an item has a tensor for each field and its targets."""
    columns = [
        [_integers(values[item]) for item in range(len(split))] for values in (*split.inputs.values(), split.targets)
    ]
    items: Any = list(zip(*columns, strict=True))  # Any: torch's loader accepts a list as a data set
    loader: DataLoader[Any] = DataLoader(items, size, shuffle=True, drop_last=True, collate_fn=_padded)
    while True:
        for batch in loader:
            yield tuple(tensor.to(device) for tensor in batch)


def _integers(values: object) -> Tensor:
    return torch.from_numpy(np.asarray(values, dtype=np.int64))


def _padded(items: list[tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
    *fields, targets = zip(*items, strict=True)
    padded = [pad_sequence(list(field), batch_first=True) for field in fields]
    lengths = [torch.tensor([len(row) for row in field]) for field in fields]
    answers = pad_sequence(list(targets), batch_first=True) if targets[0].dim() else torch.stack(targets)
    return *padded, *lengths, answers


def _take(batches: Iterator[tuple[Tensor, ...]], count: int) -> int:
    for _ in range(count):
        next(batches)
    return count


def _sides(task: str, size: int, setting: Setting) -> Sides:
    split = split_of(task)
    count = 2 if setting.tiny else COUNT
    return Sides(*(partial(_take, batches(split, size, setting.device), count) for batches in (ours, theirs)))


def _cases(setting: Setting) -> Iterator[Case]:
    for name, (task, size) in (SMALL if setting.tiny else TASKS).items():
        yield Case(f"batches of {size}, {name}", "DataLoader, padding", partial(_sides, task, size, setting), BATCHES)


GROUP = Group(
    "data loading",
    f"{COUNT} batches a round, in this process. Ours group samples of similar length; the DataLoader does not, and "
    "pads more.",
    _cases,
)
