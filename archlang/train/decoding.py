"""The metrics of answers that a model writes without teacher forcing, token by token."""

from collections.abc import Callable
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
from archlang.train.generators import fixed_randomness
from archlang.train.score import Interrupted, Score

DEFAULT_ANSWERS = 1_000
"""The answers of a split that are written by default; more would hardly change the metrics."""

_BATCH = 256
"""The answers that are written at a time."""


class DecodingWatcher(Protocol):
    """Shows the progress of decoding."""

    def written(self, split: str, done: int, total: int) -> None: ...


def add_written(
    score: Score,
    module: nn.Module,
    split: Split,
    task: Task,
    device: torch.device,
    most: int = DEFAULT_ANSWERS,
    stopping: Callable[[], bool] = lambda: False,
    watcher: DecodingWatcher | None = None,
) -> Score:
    """Returns the score with `exact_match` and `oracle_match`, or unchanged if the task has no answers to write.

    If a split has more items than `most`, so many of them are chosen at even distances. A greedy run over the length of
    the batch's longest answer and one step yields both metrics. An answer is an exact match if the run chose each of
    its tokens and its end. It is an oracle match, with its length known, if each of its tokens is the most likely token
    other than the end. The model continues from the tokens that it chose, including an end. Without an end token the
    length is always known. An answer without an end in this run is wrong.

    Source: the program of Csordás et al., "The Devil is in the Detail", 2021.

    Raises:
        Interrupted: `stopping()` became true."""
    field = _written_field(module, split, task)
    if field is None or not most:
        return score
    assert isinstance(module, Architecture)
    assert isinstance(task, DecodableTask)
    items = np.unique(np.linspace(0, len(split) - 1, min(most, len(split))).astype(np.int64))
    sample = split.select(items)
    names = ("exact_match",) if task.end is None else ("exact_match", "oracle_match")
    hits = {name: np.zeros(len(split), dtype=np.int64) for name in names}
    done = 0

    def watch(share: float) -> None:
        if stopping():
            raise Interrupted
        if watcher is not None:
            watcher.written(score.split, done + int(share * len(batch.items)), len(sample))

    with fixed_randomness(device):
        for batch in Data(sample, device).batches_by_length(_BATCH):
            for name, matches in zip(names, _matches(module, batch, field, task, watch), strict=False):
                hits[name][items[batch.items.cpu().numpy()]] = matches
            done += len(batch.items)
    counts = np.zeros(len(split), dtype=np.int64)
    counts[items] = 1
    tallies = {name: Tally(metric_hits, counts) for name, metric_hits in hits.items()}
    return score.with_written(tallies, written=len(items))


def _written_field(module: nn.Module, split: Split, task: Task) -> int | None:
    """Returns the index of the field that the model writes; None if the task or the model has no such field."""
    if not isinstance(task, DecodableTask) or not isinstance(module, Architecture) or split.form is not Form.POSITIONS:
        return None
    assert isinstance(split.targets, Ragged)
    field = target_of(module.program.graph)
    if field is None or not len(split):
        return None
    answers = list(split.inputs.values())[field]
    return field if np.array_equal(answers.lengths, split.targets.lengths) else None


def _matches(
    module: Architecture, batch: Batch, field: int, task: DecodableTask, watch: Callable[[float], None]
) -> tuple[np.ndarray, np.ndarray]:
    """Returns which answers of a batch are exact matches, and which are oracle matches."""
    names = list(batch.lengths)
    source_lengths = {name: batch.lengths[name] for name in names if name != names[field]}
    sources = [source for index, source in enumerate(batch.fields) if index != field]
    answer_lengths = batch.lengths[names[field]] - int(task.end is not None)
    begin = batch.fields[field][:, :1] if not sources else task.begin
    written = decode(
        module,
        module.program,
        sources,
        source_lengths,
        begin,
        task.end,
        limit=None,
        answer_lengths=answer_lengths,
        cache=True,
        watch=watch,
    )
    assert batch.scored is not None
    targets = batch.targets[:, : written.choices.shape[1]]
    ignored = ~batch.scored[:, : targets.shape[1]]
    exact = ((written.choices == targets) | ignored).all(1)
    behind_answer = torch.arange(targets.shape[1], device=targets.device) >= answer_lengths[:, None]
    oracle = ((written.tokens == targets) | ignored | behind_answer).all(1)
    return exact.cpu().numpy(), oracle.cpu().numpy()
