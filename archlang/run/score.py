"""The loss of a batch, and how a model does on a whole split."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from archlang.run.data import Batch, Data
from archlang.tasks import metrics
from archlang.tasks.base import Ragged, Split, Task


@dataclass(frozen=True)
class Score:
    """What was measured on a split: each metric, the loss, and each metric by each value of each group."""

    split: str
    items: int
    loss: float
    metrics: Mapping[str, float]
    groups: Mapping[str, Mapping[int, Mapping[str, float]]] = field(default_factory=dict)


def forward(module: nn.Module, batch: Batch) -> Tensor:
    """The logits of a batch."""
    lengths = next(iter(batch.lengths.values())) if len(batch.lengths) == 1 else batch.lengths
    logits: Tensor = module(*batch.fields, lengths=lengths)
    return logits


def loss(logits: Float[Tensor, "..."], batch: Batch) -> Float[Tensor, ""]:
    """The mean cross entropy over samples, or over the scored positions of the batch."""
    if batch.scored is None:
        return F.cross_entropy(logits.float(), batch.targets)
    each = F.cross_entropy(logits.float().flatten(0, 1), batch.targets.flatten(), reduction="none")
    counted = batch.scored.flatten()
    return (each * counted).sum() / counted.sum().clamp(min=1)


@torch.no_grad()
def evaluate(module: nn.Module, data: Data, split: Split, name: str, task: Task, batch: int = 1024) -> Score:
    """Every metric of the task on a split. The module is put into evaluation mode, and back."""
    training = module.training
    module.eval()
    per_position = isinstance(split.targets, Ragged)
    found = np.zeros(len(split.targets.values) if isinstance(split.targets, Ragged) else len(split), dtype=np.int64)
    total = count = 0.0
    for part in data.in_order_of_length(batch):
        logits = forward(module, part)
        weight = float(part.scored.sum()) if part.scored is not None else float(len(part.items))
        total += float(loss(logits, part)) * weight
        count += weight
        chosen = logits.argmax(-1).cpu().numpy()
        items = part.items.cpu().numpy()
        if not per_position:
            found[items] = chosen
            continue
        assert isinstance(split.targets, Ragged)
        for row, item in zip(chosen, items, strict=True):
            start, stop = split.targets.offsets[item], split.targets.offsets[item + 1]
            found[start:stop] = row[: stop - start]
    module.train(training)
    tallies = {metric: metrics.tally(metric, task.unit, split, found) for metric in task.metrics}
    groups = {
        group: {
            int(value): {metric: _share(tally, values == value) for metric, tally in tallies.items()}
            for value in np.unique(values)
        }
        for group, values in split.groups.items()
    }
    measured = {metric: tally.share for metric, tally in tallies.items()}
    return Score(name, len(split), total / max(count, 1.0), measured, groups)


def _share(tally: metrics.Tally, chosen: np.ndarray) -> float:
    asked = int(tally.counts[chosen].sum())
    return float(tally.hits[chosen].sum() / asked) if asked else float("nan")
