"""How a model does when it writes its answers by itself, token after token."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import numpy as np
import torch
from torch import nn

from archlang.backend.architecture import Architecture
from archlang.backend.decode.greedy import decode, target_of
from archlang.tasks.kit.metrics import Tally
from archlang.tasks.kit.ragged import Ragged
from archlang.tasks.kit.split import Form, Split
from archlang.tasks.kit.task import DecodableTask, Task
from archlang.train.data import Batch, Data
from archlang.train.generators import always_the_same
from archlang.train.score import Interrupted, Score

MOST = 1_000
"""So many answers of a split are written, if nobody asks for more: the others would say little that these do not."""

_BATCH = 256
"""So many answers are written side by side."""


class Watcher(Protocol):
    """Whoever looks on while answers are written: a progress bar, or nobody."""

    def written(self, split: str, done: int, total: int) -> None: ...


def add_written(
    score: Score,
    module: nn.Module,
    split: Split,
    task: Task,
    device: torch.device,
    most: int = MOST,
    stopping: Callable[[], bool] = lambda: False,
    watcher: Watcher | None = None,
) -> Score:
    """A score with `exact_match` and `oracle_match` of a task whose answers are written; else as it was.

    Where a split has more items than `most`, so many are taken at even distances. One greedy run over the length of the
    batch's longest answer and one step gives both: an answer is exact if each of its tokens and its end was chosen, and
    matches with its length known if each of its tokens is the likeliest but for the end. The model goes on from what it
    has chosen, an end too. Without an end the length is always known. No answer is longer than that run: one that has
    no end by then is wrong whatever follows.

    Source: the program of Csordás et al., "The Devil is in the Detail", 2021.

    Raises:
        Interrupted: `stopping()` became true."""
    field = _written_field(module, split, task)
    if field is None or not most:
        return score
    assert isinstance(module, Architecture)
    assert isinstance(task, DecodableTask)
    chosen = np.unique(np.linspace(0, len(split) - 1, min(most, len(split))).astype(np.int64))
    some = split.select(chosen)
    names = ("exact_match",) if task.end is None else ("exact_match", "oracle_match")
    hits = {name: np.zeros(len(split), dtype=np.int64) for name in names}
    done = 0

    def watch(share: float) -> None:
        if stopping():
            raise Interrupted
        if watcher is not None:
            watcher.written(score.split, done + int(share * len(batch.items)), len(some))

    with always_the_same(device):
        for batch in Data(some, device).in_order_of_length(_BATCH):
            for name, right in zip(names, _right(module, batch, field, task, watch), strict=False):
                hits[name][chosen[batch.items.cpu().numpy()]] = right
            done += len(batch.items)
    counts = np.zeros(len(split), dtype=np.int64)
    counts[chosen] = 1
    return score.extended({name: Tally(each, counts) for name, each in hits.items()}, written=len(chosen))


def _written_field(module: nn.Module, split: Split, task: Task) -> int | None:
    """Which field the model writes, if both the task and the model are of that kind."""
    if not isinstance(task, DecodableTask) or not isinstance(module, Architecture) or split.form is not Form.POSITIONS:
        return None
    assert isinstance(split.targets, Ragged)
    field = target_of(module.program.graph)
    if field is None or not len(split):
        return None
    shown = list(split.inputs.values())[field]
    return field if np.array_equal(shown.lengths, split.targets.lengths) else None


def _right(
    module: Architecture, batch: Batch, field: int, task: DecodableTask, watch: Callable[[float], None]
) -> tuple[np.ndarray, np.ndarray]:
    """Which answers of a batch are right: written freely, and with their length known."""
    names = list(batch.lengths)
    lengths: Mapping[str, torch.Tensor] = {name: batch.lengths[name] for name in names if name != names[field]}
    others = [one for index, one in enumerate(batch.fields) if index != field]
    told = batch.lengths[names[field]] - int(task.end is not None)
    begin = batch.fields[field][:, :1] if not others else task.begin
    written = decode(
        module,
        module.program,
        others,
        lengths,
        begin,
        task.end,
        limit=None,
        answer_lengths=told,
        cache=True,
        watch=watch,
    )
    assert batch.scored is not None
    ignored = ~batch.scored
    targets = batch.targets[:, : written.choices.shape[1]]
    ignored = ignored[:, : targets.shape[1]]
    free = ((written.choices == targets) | ignored).all(1)
    behind = torch.arange(targets.shape[1], device=targets.device) >= told[:, None]
    known = ((written.tokens == targets) | ignored | behind).all(1)
    return free.cpu().numpy(), known.cpu().numpy()
