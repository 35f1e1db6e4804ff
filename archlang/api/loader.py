"""`loader`: the batches of a task, for a training loop of the user's own."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from archlang.plan.from_file import bind_task, plan_recipe, task_sizes
from archlang.plugins import Plugins
from archlang.tasks.kit import cache, mistakes
from archlang.tasks.kit.make_task import make_task
from archlang.tasks.kit.split import TargetForm
from archlang.tasks.kit.task import Task, streamed_splits
from archlang.train.data import Batch, DeviceSplit, Sampler
from archlang.train.devices import select_device

IGNORED = -100
"""The target of a position that does not count; `torch.nn.functional.cross_entropy` ignores it."""


@dataclass(eq=False, repr=False)
class Loader:
    """The batches of a split. Each loop over it is the next epoch. A target is `IGNORED` where a position does not
    count; the targets of sets are 1 for each member.

    `task` has `vocabulary`, the text of each token, and the names of its splits and metrics. `sizes` are the sizes that
    a model of the task needs: `vocab`, and `classes` if its answers are classes."""

    task: Task
    sizes: Mapping[str, int]
    _data: DeviceSplit
    _batch: int
    _seed: int
    _drop_last: bool
    _shuffles: bool
    _epoch: int = 0

    def __len__(self) -> int:
        return len(self._sampler(0)) if self._shuffles else sum(1 for _ in self._data.items_by_length(self._batch))

    def __iter__(self) -> Iterator[Batch]:
        if not self._shuffles:
            yield from map(_ignoring, self._data.batches_by_length(self._batch))
            return
        sampler = self._sampler(self._epoch)
        self._epoch += 1
        for _ in range(len(sampler)):
            yield _ignoring(self._data.batch(sampler.next()))

    def _sampler(self, epoch: int) -> Sampler:
        data = self._data
        return Sampler(
            data.lengths, self._batch, self._seed, epoch, drop_last=self._drop_last, frequencies=data.frequencies
        )


def _ignoring(batch: Batch) -> Batch:
    if batch.form not in (TargetForm.POSITIONS, TargetForm.POINTERS):
        return batch
    assert batch.scored is not None
    return replace(batch, targets=batch.targets.masked_fill(~batch.scored, IGNORED))


def loader(
    task: str | Path,
    split: str = "train",
    batch: int = 64,
    *,
    seed: int = 1,
    drop_last: bool = False,
    recipe: str | None = None,
    device: str | torch.device = "cpu",
    plugins: Iterable[str | Path] = (),
    allow: Iterable[str | Path] = (),
) -> Loader:
    """Returns the batches of a split of a task.

    The batches of `train` are those of `archlang train` with the same seed: each epoch is shuffled, and its last batch
    has the items that do not fill one. Another split yields each item once, the shortest first.

        for batch in loader("ctl[order = forward]"):
            logits = module(*batch.fields.values(), lengths=batch.lengths)

    Args:
        task: A task as a recipe writes it, or the path of a program (`.arch`), for the task of its first recipe.
        batch: The number of items in a batch; batches of long items of other splits than `train` have fewer.
        drop_last: Leaves out that last batch, as the setting of this name does.
        recipe: The recipe of the program whose task is meant.
        device: Where the tensors are.
        plugins: The Python file of a task of the user's own, which is then run.
        allow: Folders outside of the program's whose files the program may use.

    Raises:
        ProgramError: there is no such task, or the program has mistakes.
        TaskError: the task has no such split, its items cannot be generated, or a number is out of bounds.
        PluginError: the task is of the user's own, and its file is no plugin or cannot be imported.
        DataError: a published file is missing.
        RunError: there is no such device."""
    if str(task).endswith(".arch"):
        plan = plan_recipe(task, recipe, allow=allow, plugins=plugins)
        bound, sizes, trusted = plan.task, plan.gives, plan.plugins
    else:
        bound, sizes, trusted = bind_task(str(task)), task_sizes(str(task)), Plugins.read(plugins)
    for name, number, least in (("batch", batch, 1), ("seed", seed, 0)):
        if number < least:
            raise mistakes.outside(bound.name, name, number, least, None)
    instance = make_task(bound.name, bound.python, bound.statics, trusted)
    if split not in instance.split_names():
        raise mistakes.unknown_split(bound.name, split, instance.split_names())
    if split in streamed_splits(instance):
        raise mistakes.part_of_stream(split, bound.name)
    items = cache.load(bound.name, bound.statics, instance, split, cache.DATA_SEED)
    data = DeviceSplit(items, device if isinstance(device, torch.device) else select_device(device))
    return Loader(instance, sizes, data, batch, seed, drop_last, split == "train")
